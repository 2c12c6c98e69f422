"""Version 1 of `policy.yaml` as rules. All problems of a file are reported together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.policy.rules import (
    ACTIONS,
    ACTIONS_OF,
    FILE_KEYS,
    SCOPE_KEYS,
    SCOPES,
    BranchScope,
    PolicyKind,
    PolicyRule,
    PolicyRules,
    ScopeKey,
    other_kind,
)
from omnigraph.policy.yaml_nodes import (
    ProblemLog,
    YamlList,
    YamlMap,
    YamlNode,
    YamlScalar,
    join,
    parse_yaml,
    read_policy_text,
)
from omnigraph.suggestions import did_you_mean, listing

_KEYS: Mapping[PolicyKind, tuple[str, ...]] = {
    "graph": ("version", "groups", "protected_branches", "rules"),
    "server": ("version", "groups", "rules"),
}
_RULE_KEYS = ("id", "allow")
_SECOND_KEYS = frozenset({"attributes", "rows", "proposals"})
_SECOND_BODY_KEYS = frozenset(
    {
        "except",
        "role",
        "branches",
        "target_branches",
        "types",
        "properties",
        "queries",
        "when",
        "otherwise",
        "row_check",
    }
)
"""Keys of version 2 that version 1 does not have: of the file, and of the body of a rule."""
_ALLOW_KEYS = ("actors", "actions", *SCOPE_KEYS)


def read_rules(path: Path | str, kind: PolicyKind = "graph") -> PolicyRules:
    """Return the rules of a file; raises `PolicyInvalid` with all problems."""
    return parse_rules(read_policy_text(Path(path)), str(path), kind)


def parse_rules(text: str, source: str = "policy.yaml", kind: PolicyKind = "graph") -> PolicyRules:
    """Return the rules of a text; raises `PolicyInvalid` with all problems."""
    log = ProblemLog(source, "policy" if kind == "graph" else "server policy")
    return rules_of(parse_yaml(text, log), log, source, kind)


def rules_of(root: YamlNode | None, log: ProblemLog, source: str, kind: PolicyKind) -> PolicyRules:
    """Return the rules of a document of version 1; raises `PolicyInvalid` with all problems."""
    _check_second_version(root, log)
    members = log.expect_root(root, _KEYS[kind])
    groups = read_groups(members.get("groups"), log)
    protected = _protected(members.get("protected_branches"), log)
    rules = _RuleReader(groups, kind, log).rules(members.get("rules"))
    log.raise_any()
    return PolicyRules(groups, protected, rules, source, kind)


def _check_second_version(root: YamlNode | None, log: ProblemLog) -> None:
    """Report one problem, not one for each key, if a file without `version: 2` has keys of version 2."""
    if not isinstance(root, YamlMap) or log.problems:
        return
    found = next(_second_keys(root), None)
    if found is None:
        return
    line, key = found
    node = root.members.get("version")
    written = "is missing" if node is None else f"is {node.text}" if isinstance(node, YamlScalar) else "is not a number"
    hint = "add the line: version: 2" if node is None else "write: version: 2"
    place = node.line if node is not None else None
    log.add("version", f"{written}, but '{key}' on line {line} is a key of version 2", place, hint=hint)
    log.raise_any()


def _second_keys(root: YamlMap) -> Iterator[tuple[int, str]]:
    """Yield the keys of a file that version 2 alone has, with their lines."""
    yield from ((root.lines[key], key) for key in root.members if key in _SECOND_KEYS)
    rules = root.members.get("rules")
    for rule in rules.items if isinstance(rules, YamlList) else ():
        if not isinstance(rule, YamlMap):
            continue
        if "deny" in rule.members:
            yield rule.lines["deny"], "deny"
        body = rule.members.get("allow")
        if isinstance(body, YamlMap):
            yield from ((body.lines[key], key) for key in body.members if key in _SECOND_BODY_KEYS)
            actors = body.members.get("actors")
            if isinstance(actors, YamlMap) and "any" in actors.members:
                yield actors.lines["any"], "any"


def read_groups(node: YamlNode | None, log: ProblemLog) -> dict[str, tuple[str, ...]]:
    """Return the groups of a policy and their actors."""
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


@dataclass(frozen=True)
class _RuleReader:
    """Reads the rules of one file."""

    groups: Mapping[str, tuple[str, ...]]
    kind: PolicyKind
    log: ProblemLog

    def rules(self, node: YamlNode | None) -> tuple[PolicyRule, ...]:
        log = self.log
        found = []
        for path, item, members, rule_id in log.each_rule(node, _RULE_KEYS):
            rule = self._allow(members.get("allow"), rule_id or "", f"{path}.allow", item.line)
            if rule is not None:
                found.append(rule)
        return tuple(found)

    def _allow(self, node: YamlNode | None, rule: str, path: str, line: int) -> PolicyRule | None:
        log = self.log
        if node is None:
            log.add(path, "is missing", line, rule=rule, hint="a rule has 'allow' with 'actors' and 'actions'")
            return None
        members = log.expect_map(node, path, _ALLOW_KEYS, rule=rule)
        if not isinstance(node, YamlMap):
            return None
        group = self._group(members.get("actors"), rule, f"{path}.actors", node.line)
        actions = self._actions(members.get("actions"), rule, f"{path}.actions", node.line)
        scopes = {key: _scope(members[key], rule, join(path, key), log) for key in SCOPE_KEYS if key in members}
        if len(scopes) == 2:
            message = f"rule '{rule}' has both branch_scope and target_branch_scope"
            log.add(path, message, node.lines["target_branch_scope"], rule=rule, hint="write two rules")
        else:
            for key in scopes:
                _check_scope(key, actions, rule, join(path, key), log, node.lines[key])
        scope, target_scope = scopes.get("branch_scope"), scopes.get("target_branch_scope")
        return PolicyRule(rule, group or "", actions, scope, target_scope, line)

    def _group(self, node: YamlNode | None, rule: str, path: str, line: int) -> str | None:
        log = self.log
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
        if name is not None and name not in self.groups:
            hint = did_you_mean(name, self.groups) or f"the groups are {listing(self.groups) or 'none'}"
            log.add(f"{path}.group", f"rule '{rule}': there is no group '{name}'", node.line, rule=rule, hint=hint)
        return name

    def _actions(self, node: YamlNode | None, rule: str, path: str, line: int) -> tuple[str, ...]:
        log, known = self.log, ACTIONS_OF[self.kind]
        every = f"the actions are {', '.join(known)}"
        items = log.expect_list(node, path, rule=rule) if node is not None else []
        if node is None or (isinstance(node, YamlList) and not items):
            log.add(path, f"rule '{rule}' has no actions", line, rule=rule, hint=every)
        names = []
        for index, item in enumerate(items):
            name = log.expect_text(item, f"{path}[{index}]", rule=rule)
            if name is None:
                continue
            if name in known:
                names.append(name)
                continue
            near = did_you_mean(name, known)
            message, hint = f"rule '{rule}': there is no action '{name}'", f"{near} {every}" if near else every
            other = other_kind(name, self.kind)
            if other is not None:
                message = f"rule '{rule}': '{name}' is an action of a {other} policy, and this is a {self.kind} policy"
                hint = f"move it to the file of '{FILE_KEYS[other]}'"
            log.add(f"{path}[{index}]", message, item.line, rule=rule, hint=hint)
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
