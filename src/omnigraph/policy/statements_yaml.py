"""Version 2 of `policy.yaml` as statements. All problems of a file are reported together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from omnigraph.errors import InputError
from omnigraph.policy.branch_patterns import pattern_problem
from omnigraph.policy.proposal_yaml import parse_proposal_rules
from omnigraph.policy.rules import (
    FILE_KEYS,
    KNOWN_ACTIONS,
    PROPERTY_ACTIONS,
    ROW_ACTIONS,
    SCOPE_KEYS,
    SCOPES,
    SERVER_ACTIONS,
    STATEMENT_ACTIONS,
    PolicyKind,
    ScopeKey,
    other_kind,
)
from omnigraph.policy.statements import (
    ATTRIBUTE_TYPES,
    CALLS,
    FAMILIES,
    ROLES,
    AttributeType,
    AttributeValue,
    BranchSelector,
    CedarSource,
    Effect,
    Grant,
    Otherwise,
    PolicyStatements,
    Statement,
    typed_attribute,
)
from omnigraph.policy.yaml import read_groups
from omnigraph.policy.yaml_nodes import ProblemLog, YamlList, YamlMap, YamlNode, YamlScalar, join, plain_value
from omnigraph.suggestions import did_you_mean, listing

_KEYS: Mapping[PolicyKind, tuple[str, ...]] = {
    "graph": ("version", "groups", "attributes", "protected_branches", "rows", "proposals", "rules"),
    "server": ("version", "groups", "attributes", "rules"),
}
_AUDIT_MAX = 1_000
"""Largest number of rows of a variable that the audit judges in each read."""
_RULE_KEYS = ("id", "allow", "deny")
_BODY_KEYS = (
    "actors", "except", "role", "actions", "branches", "target_branches", *SCOPE_KEYS,
    "types", "properties", "queries", "when", "otherwise", "row_check",
)  # fmt: skip
_SERVER_KEYS = ("actors", "except", "actions", "when")
_SELECTORS: Mapping[str, ScopeKey] = {
    "branches": "branch_scope",
    "branch_scope": "branch_scope",
    "target_branches": "target_branch_scope",
    "target_branch_scope": "target_branch_scope",
}
"""Key that selects branches → the family of actions that it limits."""

_ANY = BranchSelector("any")
_Choice = TypeVar("_Choice", bound=str)


def parse_statements(
    root: YamlNode | None, log: ProblemLog, source: str, kind: PolicyKind, cedar_files: Iterable[CedarSource] = ()
) -> PolicyStatements:
    """Return the statements of a document of version 2; raises `PolicyInvalid` with all problems."""
    members = log.expect_root(root, _KEYS[kind], version=2)
    groups = read_groups(members.get("groups"), log)
    declared, attributes = _attributes(members.get("attributes"), log)
    protected = _patterns(members.get("protected_branches"), "protected_branches", None, log)
    reader = _StatementReader(groups, kind, log)
    rules = reader.statements(members.get("rules"))
    rows_default = _rows_default(members.get("rows"), log)
    files = tuple(cedar_files)
    _check_ids(rules, files, log)
    audit = _rows_audit(members.get("rows"), log)
    proposals = parse_proposal_rules(members.get("proposals"), groups, log)
    found = PolicyStatements(
        groups, protected, rules, declared, attributes, rows_default, files, source, kind, audit, proposals
    )
    if rows_default is None and not log.problems and found.has_row_rules:
        log.add(
            "rows.default",
            "is missing: the policy has rules for rows or properties",
            hint="add 'rows: { default: allow }' to show the rows of types without a rule, or 'deny' to hide them",
        )
    log.raise_any()
    return found


def _check_ids(rules: tuple[Statement, ...], files: tuple[CedarSource, ...], log: ProblemLog) -> None:
    places = {rule.id: "a rule of the file" for rule in rules}
    for file in files:
        for policy_id in file.policies:
            if policy_id in places:
                log.add("", f"'{file.path}': the id '{policy_id}' is also that of {places[policy_id]}")
            places.setdefault(policy_id, f"a policy of '{file.path}'")


def _attributes(
    node: YamlNode | None, log: ProblemLog
) -> tuple[dict[str, AttributeType], dict[str, dict[str, AttributeValue]]]:
    if node is None:
        return {}, {}
    if not isinstance(node, YamlMap):
        log.expect_map(node, "attributes", ())
        return {}, {}
    declared: dict[str, AttributeType] = {}
    types = node.members.get("declare")
    if isinstance(types, YamlMap):
        for name, value in types.members.items():
            path = f"attributes.declare.{name}"
            if name == "id":
                log.add(path, "every actor has the attribute 'id'; it cannot be declared", types.lines[name])
            text = log.expect_text(value, path)
            chosen = _chosen(text, ATTRIBUTE_TYPES, value, path, "type", log) if text is not None else None
            if chosen is not None:
                declared[name] = chosen
    else:
        log.add(
            "attributes.declare",
            "must be a map of attributes and their types",
            types.line if types else node.line,
            hint="write: declare: { tenant: String }",
        )
    values: dict[str, dict[str, AttributeValue]] = {}
    names = tuple(types.members) if isinstance(types, YamlMap) else ()
    for actor, given in node.members.items():
        if actor != "declare":
            values[actor] = _values_of(actor, given, names, declared, log)
    return declared, values


def _values_of(
    actor: str, node: YamlNode, names: Iterable[str], declared: Mapping[str, AttributeType], log: ProblemLog
) -> dict[str, AttributeValue]:
    path = f"attributes.{actor}"
    members = log.expect_map(node, path, names)
    found: dict[str, AttributeValue] = {}
    for name, value in members.items():
        if name not in declared:
            continue
        try:
            found[name] = typed_attribute(name, plain_value(value), declared[name], f"actor '{actor}'")
        except InputError as error:
            log.add(join(path, name), error.message, value.line, hint=error.hint)
    return found


def _rows_default(node: YamlNode | None, log: ProblemLog) -> Effect | None:
    if node is None:
        return None
    members = log.expect_map(node, "rows", ("default", "audit"))
    value = members.get("default")
    if value is None:
        log.add("rows.default", "is missing", node.line, hint="write: rows: { default: allow }, or deny")
        return None
    effects: tuple[Effect, ...] = ("allow", "deny")
    return _chosen(log.expect_text(value, "rows.default"), effects, value, "rows.default", "default", log)


def _rows_audit(node: YamlNode | None, log: ProblemLog) -> int:
    value = node.members.get("audit") if isinstance(node, YamlMap) else None
    if value is None:
        return 0
    text = value.text if isinstance(value, YamlScalar) and value.kind == "an integer" else ""
    if not text.isdecimal() or not 1 <= int(text[:9]) <= _AUDIT_MAX:
        hint = "it is the number of rows that are judged again in each read; leave it out to turn the audit off"
        log.add("rows.audit", f"must be an integer from 1 to {_AUDIT_MAX:,}", value.line, hint=hint)
        return 0
    return int(text)


def _patterns(node: YamlNode | None, path: str, rule: str | None, log: ProblemLog) -> tuple[str, ...]:
    items = log.expect_list(node, path, rule=rule) if node is not None else []
    found = []
    for index, item in enumerate(items):
        text = log.expect_text(item, f"{path}[{index}]", rule=rule)
        problem = pattern_problem(text) if text is not None else None
        if problem is not None:
            log.add(f"{path}[{index}]", problem, item.line, rule=rule)
        elif text is not None:
            found.append(text.strip())
    return tuple(dict.fromkeys(found))


def _chosen(
    text: str | None,
    known: tuple[_Choice, ...],
    node: YamlNode,
    path: str,
    what: str,
    log: ProblemLog,
    rule: str | None = None,
) -> _Choice | None:
    for one in known:
        if text == one:
            return one
    if text is not None:
        hint = did_you_mean(text, known) or f"the {what}s are {', '.join(known)}"
        log.add(path, f"there is no {what} '{text}'", node.line, rule=rule, hint=hint)
    return None


@dataclass(frozen=True)
class _StatementReader:
    """Reads the rules of one file."""

    groups: Mapping[str, tuple[str, ...]]
    kind: PolicyKind
    log: ProblemLog

    def statements(self, node: YamlNode | None) -> tuple[Statement, ...]:
        log = self.log
        found = []
        for path, item, members, rule in log.each_rule(node, _RULE_KEYS):
            effects = [effect for effect in ("allow", "deny") if effect in members]
            if len(effects) != 1:
                problem = "has both 'allow' and 'deny'" if effects else "has neither 'allow' nor 'deny'"
                log.add(path, f"rule '{rule or ''}' {problem}", item.line, rule=rule)
                continue
            effect: Effect = "allow" if effects == ["allow"] else "deny"
            statement = self._statement(members[effect], rule or "", effect, f"{path}.{effect}")
            if statement is not None:
                found.append(statement)
        return tuple(found)

    def _statement(self, node: YamlNode, rule: str, effect: Effect, path: str) -> Statement | None:
        log = self.log
        members = log.expect_map(node, path, _BODY_KEYS if self.kind == "graph" else _SERVER_KEYS, rule=rule)
        if not isinstance(node, YamlMap):
            return None
        group = self._actors(members.get("actors"), rule, f"{path}.actors", node.line)
        except_group = self._group(members["except"], rule, f"{path}.except") if "except" in members else None
        selectors = self._selectors(node, rule, path)
        role = None
        if "role" in members:
            role = self._role(node, rule, effect, path)
            grants = self._role_grants(role, selectors, rule, path, node) if role is not None else ()
        else:
            actions = self._actions(members.get("actions"), rule, f"{path}.actions", node.line)
            self._check_family(actions, rule, path, node)
            self._check_selectors(actions, selectors, rule, path, node)
            chosen = next(iter(selectors.values()), _ANY)
            grants = (Grant(actions, chosen),) if actions else ()
        if not grants:
            return None
        statement = Statement(
            rule,
            effect,
            group,
            grants,
            except_group,
            role,
            types=self._names(members.get("types"), rule, f"{path}.types", any_name=True),
            properties=self._names(members.get("properties"), rule, f"{path}.properties"),
            queries=_patterns(members.get("queries"), f"{path}.queries", rule, log),
            when=log.expect_text(members["when"], f"{path}.when", rule=rule) if "when" in members else None,
            otherwise=self._otherwise(members.get("otherwise"), rule, f"{path}.otherwise"),
            row_check=self._row_check(members.get("row_check"), rule, f"{path}.row_check"),
            line=node.line,
        )
        self._check_places(statement, node, path)
        return statement

    def _actors(self, node: YamlNode | None, rule: str, path: str, line: int) -> str | None:
        """Return the group of a rule; None for every actor."""
        hint = "write: actors: { group: NAME }, or: actors: { any: true }"
        if node is None:
            self.log.add(path, "is missing", line, rule=rule, hint=hint)
            return ""
        members = self.log.expect_map(node, path, ("group", "any"), rule=rule)
        if not isinstance(node, YamlMap) or (members and {*members}.isdisjoint({"group", "any"})):
            return ""
        if len(members) != 1:
            self.log.add(path, "must have exactly one of 'group' and 'any'", node.line, rule=rule, hint=hint)
            return ""
        if "any" in members:
            value = members["any"]
            if plain_value(value) is not True:
                self.log.add(f"{path}.any", "must be true", value.line, rule=rule, hint=hint)
            return None
        return self._group(node, rule, path)

    def _group(self, node: YamlNode, rule: str, path: str) -> str:
        members = self.log.expect_map(node, path, ("group",), rule=rule)
        if not isinstance(node, YamlMap):
            return ""
        if "group" not in members:
            self.log.add(f"{path}.group", "is missing", node.line, rule=rule)
            return ""
        name = self.log.expect_text(members["group"], f"{path}.group", rule=rule)
        if name is not None and name not in self.groups:
            hint = did_you_mean(name, self.groups) or f"the groups are {listing(self.groups) or 'none'}"
            self.log.add(f"{path}.group", f"rule '{rule}': there is no group '{name}'", node.line, rule=rule, hint=hint)
        return name or ""

    def _actions(self, node: YamlNode | None, rule: str, path: str, line: int) -> tuple[str, ...]:
        log = self.log
        known: tuple[str, ...] = (*STATEMENT_ACTIONS, *ROW_ACTIONS, *PROPERTY_ACTIONS)
        if self.kind == "server":
            known = tuple(SERVER_ACTIONS)
        every = f"the actions are {', '.join(known)}"
        items = log.expect_list(node, path, rule=rule) if node is not None else []
        if node is None or (isinstance(node, YamlList) and not items):
            hint = f"{every}; or name a role: {', '.join(ROLES)}" if self.kind == "graph" else every
            log.add(path, f"rule '{rule}' has no actions", line, rule=rule, hint=hint)
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
            if other is None and self.kind == "server" and name in FAMILIES:
                other = "graph"
            if other is not None:
                message = f"rule '{rule}': '{name}' is an action of a {other} policy, and this is a {self.kind} policy"
                hint = f"move it to the file of '{FILE_KEYS[other]}'"
            log.add(f"{path}[{index}]", message, item.line, rule=rule, hint=hint)
        return tuple(dict.fromkeys(names))

    def _role(self, node: YamlMap, rule: str, effect: Effect, path: str) -> str | None:
        log, value = self.log, node.members["role"]
        if effect == "deny":
            log.add(f"{path}.role", "a rule that denies names actions, not a role", value.line, rule=rule)
        for key in ("actions", "types", "properties", "queries", "otherwise", "row_check"):
            if key in node.members:
                log.add(join(path, key), f"a rule with a role has no '{key}'", node.lines[key], rule=rule)
        text = log.expect_text(value, f"{path}.role", rule=rule)
        return _chosen(text, tuple(ROLES), value, f"{path}.role", "role", log, rule)

    def _role_grants(
        self, role: str, selectors: Mapping[str, BranchSelector], rule: str, path: str, node: YamlMap
    ) -> tuple[Grant, ...]:
        """Return the grants of a role. `branches` limits all actions of the role that concern a branch."""
        for key in selectors:
            if key != "branches":
                hint = "write 'branches', which limits the whole role"
                self.log.add(
                    join(path, key), f"a rule with a role has no '{key}'", node.lines[key], rule=rule, hint=hint
                )
        chosen = selectors.get("branches")
        if chosen is None or chosen.is_any:
            return tuple(Grant(actions, BranchSelector(scope), actions == CALLS) for actions, scope in ROLES[role])
        grants = []
        for actions, scope in ROLES[role]:
            if actions == CALLS:
                # The rights of the caller decide on the branch.
                grants.append(Grant(actions, BranchSelector(scope), own_rights=True))
                continue
            if scope != "any":
                hint = f"the role '{role}' grants {', '.join(actions)} on {scope} branches; list the actions instead"
                self.log.add(
                    f"{path}.branches", f"'branches' cannot limit the role '{role}'", node.lines["branches"], rule=rule,
                    hint=hint,
                )  # fmt: skip
                return ()
            limited = tuple(action for action in actions if KNOWN_ACTIONS.get(action) is not None)
            grants.append(Grant(limited, chosen))
        return tuple(grants)

    def _selectors(self, node: YamlMap, rule: str, path: str) -> dict[str, BranchSelector]:
        found = {}
        for key in _SELECTORS:
            if key in node.members:
                selector = self._selector(node.members[key], key, rule, join(path, key))
                if selector is not None:
                    found[key] = selector
        if len(found) > 1:
            names = " and ".join(found)
            line = max(node.lines[key] for key in found)
            self.log.add(path, f"rule '{rule}' has both {names}", line, rule=rule, hint="write two rules")
        return found

    def _selector(self, node: YamlNode, key: str, rule: str, path: str) -> BranchSelector | None:
        log = self.log
        if isinstance(node, YamlScalar) or key in SCOPE_KEYS:
            text = log.expect_text(node, path, rule=rule)
            if text in SCOPES or text is None or key in SCOPE_KEYS:
                scope = _chosen(text, SCOPES, node, path, "scope", log, rule)
                return BranchSelector(scope) if scope is not None else None
            problem = pattern_problem(text)
            if problem is not None:
                log.add(path, problem, node.line, rule=rule)
            return BranchSelector(None, (text.strip(),))
        patterns = _patterns(node, path, rule, log)
        if isinstance(node, YamlList) and not node.items:
            log.add(path, "selects no branch", node.line, rule=rule, hint="list a pattern, or remove the key")
        for word in set(patterns) & set(SCOPES):
            hint = f"write '{key}: {word}' without a list; a branch of that name cannot be selected"
            log.add(path, f"'{word}' is not a pattern", node.line, rule=rule, hint=hint)
        return BranchSelector(None, patterns)

    def _check_family(self, actions: tuple[str, ...], rule: str, path: str, node: YamlMap) -> None:
        families = {FAMILIES[action] for action in actions}
        if len(families) > 1:
            names = " and ".join(
                f"'{next(a for a in actions if FAMILIES[a] == family)}'" for family in sorted(families)
            )
            self.log.add(
                f"{path}.actions",
                f"rule '{rule}': {names} cannot be in one rule",
                node.lines.get("actions", node.line),
                rule=rule,
                hint="actions on branches, rows and properties need rules of their own",
            )

    def _check_selectors(
        self, actions: tuple[str, ...], selectors: Mapping[str, BranchSelector], rule: str, path: str, node: YamlMap
    ) -> None:
        """Report the actions that a selection of branches cannot limit."""
        for key in selectors:
            for action in actions:
                needed = "branch_scope" if FAMILIES[action] != "graph" else KNOWN_ACTIONS[action]
                if needed == _SELECTORS[key]:
                    continue
                wanted = {"branch_scope": "'branches'", "target_branch_scope": "'target_branches'"}.get(needed or "")
                hint = (
                    f"'{action}' takes {wanted}; move it to a rule with that key"
                    if wanted
                    else f"'{action}' takes no branch; move it to a rule without one"
                )
                message = f"rule '{rule}': {key} does not apply to action '{action}'"
                self.log.add(join(path, key), message, node.lines[key], rule=rule, hint=hint)

    def _names(self, node: YamlNode | None, rule: str, path: str, *, any_name: bool = False) -> tuple[str, ...]:
        log = self.log
        if node is None or (any_name and isinstance(node, YamlScalar) and node.text == "any"):
            return ()
        items = log.expect_list(node, path, rule=rule)
        if isinstance(node, YamlList) and not items:
            log.add(path, "is empty", node.line, rule=rule, hint="list a name, or remove the key")
        names = [log.expect_text(item, f"{path}[{index}]", rule=rule) for index, item in enumerate(items)]
        return tuple(dict.fromkeys(name.strip() for name in names if name is not None))

    def _otherwise(self, node: YamlNode | None, rule: str, path: str) -> Otherwise:
        choices: tuple[Otherwise, ...] = ("hide", "mask")
        if node is None:
            return "hide"
        return (
            _chosen(self.log.expect_text(node, path, rule=rule), choices, node, path, "choice", self.log, rule)
            or "hide"
        )

    def _row_check(self, node: YamlNode | None, rule: str, path: str) -> Any:
        if node is None:
            return "always"
        text = self.log.expect_text(node, path, rule=rule)
        return _chosen(text, ("always", "skip"), node, path, "choice", self.log, rule) or "always"

    def _check_places(self, statement: Statement, node: YamlMap, path: str) -> None:
        """Report keys that do not fit the actions, and keys that the actions need."""
        log, rule, members = self.log, statement.id, node.members
        if statement.role is not None:
            return
        families = {FAMILIES[action] for action in statement.actions}
        fits = {
            "types": not families.isdisjoint({"row", "property"}),
            "properties": "property" in families,
            "otherwise": "property" in families,
            "queries": set(statement.actions) <= {"invoke_query"},
            "row_check": set(statement.actions) <= {"branch_merge", "proposal_land"},
        }
        if "row_check" in members and statement.effect == "deny":
            message = f"rule '{rule}': a rule that denies has no 'row_check'"
            log.add(f"{path}.row_check", message, node.lines["row_check"], rule=rule)
        for key, fitting in fits.items():
            if key in members and not fitting:
                message = f"rule '{rule}': '{key}' does not apply to action '{statement.actions[0]}'"
                log.add(join(path, key), message, node.lines[key], rule=rule)
        needed = {"types": fits["types"], "properties": fits["properties"]}
        for key, needs in needed.items():
            if needs and key not in members:
                hint = "write 'types: any' for all types" if key == "types" else None
                log.add(join(path, key), "is missing", node.line, rule=rule, hint=hint)
