"""Version 1 of `policy.yaml` as rules. All problems of a file are reported together."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from omnigraph.policy.rules import ACTIONS, SCOPE_KEYS, SCOPES, BranchScope, PolicyRule, PolicyRules, ScopeKey
from omnigraph.policy.yaml_nodes import ProblemLog, YamlList, YamlMap, YamlNode, join, parse_yaml, read_policy_text
from omnigraph.suggestions import did_you_mean, listing

_KEYS = ("version", "groups", "protected_branches", "rules")
_RULE_KEYS = ("id", "allow")
_ALLOW_KEYS = ("actors", "actions", *SCOPE_KEYS)


def read_rules(path: Path | str) -> PolicyRules:
    """Return the rules of a file; raises `PolicyInvalid` with all problems."""
    return parse_rules(read_policy_text(Path(path)), str(path))


def parse_rules(text: str, source: str = "policy.yaml") -> PolicyRules:
    """Return the rules of a text; raises `PolicyInvalid` with all problems."""
    log = ProblemLog(source, "policy")
    members = log.expect_root(parse_yaml(text, log), _KEYS)
    groups = _groups(members.get("groups"), log)
    protected = _protected(members.get("protected_branches"), log)
    rules = _rules(members.get("rules"), groups, log)
    log.raise_any()
    return PolicyRules(groups, protected, rules, source)


def _groups(node: YamlNode | None, log: ProblemLog) -> dict[str, tuple[str, ...]]:
    if node is None:
        return {}
    if not isinstance(node, YamlMap):
        log.expect_map(node, "groups", ())
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for group, actors in node.members.items():
        path = join("groups", group)
        if not group.strip():
            log.add("groups", f"a group name must not be blank (got {group!r})", node.lines[group])
        items = log.expect_list(actors, path)
        if isinstance(actors, YamlList) and not items:
            log.add(path, f"group '{group}' has no actors", actors.line, hint="list an actor, or remove the group")
        names = [log.expect_text(item, f"{path}[{index}]") for index, item in enumerate(items)]
        found[group] = tuple(name for name in names if name is not None)
    return found


def _protected(node: YamlNode | None, log: ProblemLog) -> frozenset[str]:
    """Return the protected branches, trimmed as the names of a request are."""
    items = log.expect_list(node, "protected_branches") if node is not None else []
    names = [log.expect_text(item, f"protected_branches[{index}]") for index, item in enumerate(items)]
    return frozenset(name.strip() for name in names if name is not None)


def _rules(node: YamlNode | None, groups: Mapping[str, tuple[str, ...]], log: ProblemLog) -> tuple[PolicyRule, ...]:
    items = log.expect_list(node, "rules") if node is not None else []
    found = []
    lines: dict[str, int] = {}
    for index, item in enumerate(items):
        path = f"rules[{index}]"
        members = log.expect_map(item, path, _RULE_KEYS)
        if not isinstance(item, YamlMap):
            continue
        id_node = members.get("id")
        rule_id = log.expect_text(id_node, join(path, "id")) if id_node is not None else None
        if id_node is None:
            log.add(join(path, "id"), "is missing", item.line, hint="give the rule a unique id")
        if rule_id is not None and rule_id in lines:
            message = f"rule id '{rule_id}' is repeated; it is also on line {lines[rule_id]}"
            log.add(join(path, "id"), message, item.line, rule=rule_id)
        lines.setdefault(rule_id or "", item.line)
        rule = _allow(members.get("allow"), rule_id or "", f"{path}.allow", groups, log, item.line)
        if rule is not None:
            found.append(rule)
    return tuple(found)


def _allow(
    node: YamlNode | None, rule: str, path: str, groups: Mapping[str, tuple[str, ...]], log: ProblemLog, line: int
) -> PolicyRule | None:
    if node is None:
        log.add(path, "is missing", line, rule=rule, hint="a rule has 'allow' with 'actors' and 'actions'")
        return None
    members = log.expect_map(node, path, _ALLOW_KEYS, rule=rule)
    if not isinstance(node, YamlMap):
        return None
    group = _group(members.get("actors"), rule, f"{path}.actors", groups, log, node.line)
    actions = _actions(members.get("actions"), rule, f"{path}.actions", log, node.line)
    scopes = {key: _scope(members[key], rule, join(path, key), log) for key in SCOPE_KEYS if key in members}
    if len(scopes) == 2:
        message = f"rule '{rule}' has both branch_scope and target_branch_scope"
        log.add(path, message, node.lines["target_branch_scope"], rule=rule, hint="write two rules")
    else:
        for key in scopes:
            _check_scope(key, actions, rule, join(path, key), log, node.lines[key])
    return PolicyRule(rule, group or "", actions, scopes.get("branch_scope"), scopes.get("target_branch_scope"))


def _group(
    node: YamlNode | None, rule: str, path: str, groups: Mapping[str, tuple[str, ...]], log: ProblemLog, line: int
) -> str | None:
    if node is None:
        log.add(path, "is missing", line, rule=rule, hint="write: actors: { group: NAME }")
        return None
    members = log.expect_map(node, path, ("group",), rule=rule)
    if not isinstance(node, YamlMap):
        return None
    if "group" not in members:
        log.add(f"{path}.group", "is missing", node.line, rule=rule, hint="write: actors: { group: NAME }")
        return None
    name = log.expect_text(members["group"], f"{path}.group", rule=rule)
    if name is not None and name not in groups:
        hint = did_you_mean(name, groups) or f"the groups are {listing(groups) or 'none'}"
        log.add(f"{path}.group", f"rule '{rule}': there is no group '{name}'", node.line, rule=rule, hint=hint)
    return name


def _actions(node: YamlNode | None, rule: str, path: str, log: ProblemLog, line: int) -> tuple[str, ...]:
    known = f"the actions are {', '.join(ACTIONS)}"
    items = log.expect_list(node, path, rule=rule) if node is not None else []
    if node is None or (isinstance(node, YamlList) and not items):
        log.add(path, f"rule '{rule}' has no actions", line, rule=rule, hint=known)
    names = []
    for index, item in enumerate(items):
        name = log.expect_text(item, f"{path}[{index}]", rule=rule)
        if name is None:
            continue
        if name in ACTIONS:
            names.append(name)
        else:
            near = did_you_mean(name, ACTIONS)
            hint = f"{near} {known}" if near else known
            log.add(f"{path}[{index}]", f"rule '{rule}': there is no action '{name}'", item.line, rule=rule, hint=hint)
    return tuple(dict.fromkeys(names))


def _scope(node: YamlNode, rule: str, path: str, log: ProblemLog) -> BranchScope | None:
    text = log.expect_text(node, path, rule=rule)
    for scope in SCOPES:
        if text == scope:
            return scope
    if text is not None:
        message = f"rule '{rule}': there is no scope '{text}'"
        hint = did_you_mean(text, SCOPES) or f"the scopes are {', '.join(SCOPES)}"
        log.add(path, message, node.line, rule=rule, hint=hint)
    return None


def _check_scope(key: ScopeKey, actions: tuple[str, ...], rule: str, path: str, log: ProblemLog, line: int) -> None:
    """Report the actions that a scope cannot limit."""
    for action in actions:
        needed = ACTIONS[action]
        if needed == key:
            continue
        hint = (
            f"'{action}' takes {needed}; move it to a rule with that key"
            if needed
            else f"'{action}' takes no scope; move it to a rule without one"
        )
        log.add(path, f"rule '{rule}': {key} does not apply to action '{action}'", line, rule=rule, hint=hint)
