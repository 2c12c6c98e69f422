"""The file of test cases of a policy, `policy.tests.yaml`.

Version 2 has cases on rows, too: `type` and `data` instead of a branch alone, and the expected view of properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.errors import Hint, InputError, NotFound
from omnigraph.policy.decide import Policy, PolicyDecision
from omnigraph.policy.query_calls import QueryLookup, decide_call, kinds_of
from omnigraph.policy.rules import ACTIONS, KNOWN_ACTIONS, ROW_ACTIONS
from omnigraph.policy.statements import QueryFacts, attributes_key
from omnigraph.policy.yaml_nodes import (
    ProblemLog,
    YamlMap,
    YamlNode,
    join,
    parse_yaml,
    plain_value,
    read_policy_text,
    version_of,
)
from omnigraph.suggestions import did_you_mean, listing

if TYPE_CHECKING:
    from omnigraph.policy.rows.row_decisions import PropertyView
    from omnigraph.policy.rows.row_policies import RowPolicies

Verdict = Literal["allow", "deny"]
_KEYS = ("version", "cases")
_TEXTS = ("id", "actor", "action", "branch", "target_branch", "expect")
_CASE_KEYS: Mapping[int, tuple[str, ...]] = {
    1: _TEXTS,
    2: (*_TEXTS, "type", "query", "changes", "definer", "data", "groups", "attributes", "properties"),
}
_ACTIONS: Mapping[int, tuple[str, ...]] = {1: tuple(ACTIONS), 2: (*KNOWN_ACTIONS, *ROW_ACTIONS)}
_VIEWS: tuple[PropertyView, ...] = ("show", "mask", "hide")


@dataclass(frozen=True)
class PolicyCase:
    """A request and its expected decision."""

    id: str
    actor: str
    action: str
    branch: str | None
    target_branch: str | None
    expect: Verdict
    type: str | None = None
    """The type of the row of a case on a row."""
    data: Mapping[str, Any] | None = None
    properties: Mapping[str, str] | None = None
    """Property → its expected view: show, mask or hide."""
    groups: tuple[str, ...] = ()
    """Groups of the token of the actor."""
    attributes: Mapping[str, Any] | None = None
    """Attributes of the token of the actor."""
    query: str | None = None
    """The name of a stored query."""
    changes: bool | None = None
    """Whether the stored query changes the graph; None if the case does not say it."""
    definer: bool | None = None
    """Whether the stored query runs with the rights of its definer; None if the case does not say it."""
    place: str | None = field(default=None, compare=False)
    """The file and the line of the case."""


@dataclass(frozen=True)
class CaseOutcome:
    """A case and the decision of the policy."""

    case: PolicyCase
    actual: Verdict
    matched_rule: str | None
    properties: Mapping[str, str] | None = None
    """The actual views of the properties that the case lists."""
    denied_by: tuple[str, ...] = ()
    """The rules that deny the request."""

    @property
    def ok(self) -> bool:
        """True if the decision and the views of properties are the expected ones."""
        return self.case.expect == self.actual and self.case.properties == self.properties

    def describe(self) -> str:
        """Return the difference between the expected and the actual decision as one line."""
        if self.case.expect != self.actual:
            return f"{self.case.id}: want {self.case.expect}, got {self.actual} ({self._reason()})"
        wanted, found = self.case.properties or {}, self.properties or {}
        wrong = [f"{name}: want {view}, got {found[name]}" for name, view in wanted.items() if found[name] != view]
        return f"{self.case.id}: {'; '.join(wrong)}"

    def _reason(self) -> str:
        deciding = self.denied_by if self.actual == "deny" else (self.matched_rule,) if self.matched_rule else ()
        if not deciding:
            return "no rule allows it" if self.actual == "deny" else "by default"
        return f"{'rule' if len(deciding) == 1 else 'rules'} {listing(deciding)}"

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        members = {
            "id": self.case.id,
            "expect": self.case.expect,
            "actual": self.actual,
            "ok": self.ok,
            "matched_rule": self.matched_rule,
        }
        return members if self.properties is None else {**members, "properties": dict(self.properties)}


def read_cases(path: Path | str) -> tuple[PolicyCase, ...]:
    """Return the cases of a file; raises `PolicyInvalid` with all problems."""
    return parse_cases(read_policy_text(Path(path)), str(path))


def parse_cases(text: str, source: str = "policy.tests.yaml") -> tuple[PolicyCase, ...]:
    """Return the cases of a text; raises `PolicyInvalid` with all problems."""
    log = ProblemLog(source, "policy tests file")
    root = parse_yaml(text, log)
    version = 2 if isinstance(root, YamlMap) and version_of(root.members) == 2 else 1
    members = log.expect_root(root, _KEYS, version=version)
    node = members.get("cases")
    items = log.expect_list(node, "cases") if node is not None else []
    found = [_case(item, f"cases[{index}]", log, version, source) for index, item in enumerate(items)]
    lines: dict[str, int] = {}
    for index, (item, case) in enumerate(zip(items, found, strict=True)):
        if case is not None and case.id in lines:
            message = f"case id '{case.id}' is repeated; it is also on line {lines[case.id]}"
            log.add(f"cases[{index}].id", message, item.line)
        if case is not None:
            lines.setdefault(case.id, item.line)
    log.raise_any()
    return tuple(case for case in found if case is not None)


def _case(node: YamlNode, path: str, log: ProblemLog, version: int, source: str) -> PolicyCase | None:
    members = log.expect_map(node, path, _CASE_KEYS[version])
    if not isinstance(node, YamlMap):
        return None
    on_row = version == 2 and "type" in members
    for key in ("id", "actor", "expect") if on_row else ("id", "actor", "action", "expect"):
        if key not in members:
            log.add(join(path, key), "is missing", node.line)
    known = (*_TEXTS, "type", "query")
    texts = {key: log.expect_text(members[key], join(path, key)) for key in known if key in members}
    action = _one_of(texts, "action", ROW_ACTIONS if on_row else _ACTIONS[version], path, node, log)
    expect = _one_of(texts, "expect", ("allow", "deny"), path, node, log)
    case_id, actor = texts.get("id"), texts.get("actor")
    if action is None and on_row and "action" not in members:
        action = "row_read"
    if case_id is None or actor is None or action is None or expect is None:
        return None
    if action in ROW_ACTIONS and not on_row:
        log.add(join(path, "type"), f"is missing: action '{action}' is an action on rows", node.line)
    verdict: Verdict = "allow" if expect == "allow" else "deny"
    return PolicyCase(
        case_id,
        actor,
        action,
        texts.get("branch"),
        texts.get("target_branch"),
        verdict,
        texts.get("type"),
        _mapping(members.get("data"), join(path, "data"), log),
        _views(members.get("properties"), join(path, "properties"), log, on_row=on_row),
        tuple(_names(members.get("groups"), join(path, "groups"), log)),
        _mapping(members.get("attributes"), join(path, "attributes"), log),
        texts.get("query"),
        _truth(members, "changes", path, log),
        _truth(members, "definer", path, log),
        f"'{source}', line {node.line}",
    )


def _truth(members: Mapping[str, YamlNode], key: str, path: str, log: ProblemLog) -> bool | None:
    """Return what a case says of its stored query."""
    node = members.get(key)
    if node is None:
        return None
    value = plain_value(node)
    if not isinstance(value, bool):
        log.add(join(path, key), "must be true or false", node.line)
    elif "query" not in members:
        log.add(join(path, key), "is for a case with a 'query'", node.line)
    return value if isinstance(value, bool) else None


def _mapping(node: YamlNode | None, path: str, log: ProblemLog) -> Mapping[str, Any] | None:
    if node is None:
        return None
    if not isinstance(node, YamlMap):
        log.expect_map(node, path, ())
        return None
    return {name: plain_value(value) for name, value in node.members.items()}


def _names(node: YamlNode | None, path: str, log: ProblemLog) -> list[str]:
    items = log.expect_list(node, path) if node is not None else []
    texts = [log.expect_text(item, f"{path}[{index}]") for index, item in enumerate(items)]
    return [text for text in texts if text is not None]


def _views(node: YamlNode | None, path: str, log: ProblemLog, *, on_row: bool) -> Mapping[str, str] | None:
    if node is None:
        return None
    if not isinstance(node, YamlMap) or not on_row:
        log.add(path, "must be a map of properties, in a case with a type", node.line)
        return None
    found = {}
    for name, value in node.members.items():
        text = log.expect_text(value, join(path, name))
        if text is not None and text not in _VIEWS:
            log.add(join(path, name), f"must be one of {', '.join(_VIEWS)} (got '{text}')", value.line)
        found[name] = text or "show"
    return found


def _one_of(
    texts: Mapping[str, str | None], key: str, known: Iterable[str], path: str, node: YamlMap, log: ProblemLog
) -> str | None:
    text = texts.get(key)
    allowed = tuple(known)
    if text is None or text in allowed:
        return text
    hint = did_you_mean(text, allowed)
    log.add(join(path, key), f"must be one of {', '.join(allowed)} (got '{text}')", node.lines[key], hint=hint)
    return None


def run_cases(
    policy: Policy,
    cases: Iterable[PolicyCase],
    rows: RowPolicies | None = None,
    queries: QueryLookup | None = None,
) -> list[CaseOutcome]:
    """Return the decision on every case; cases on rows need the rules for rows of a graph.

    `queries` finds the stored query of a case that does not say of which kind it is.
    """
    outcomes = []
    for case in cases:
        try:
            outcomes.append(_run(policy, case, rows, queries))
        except (InputError, NotFound) as error:
            where = f" ({case.place})" if case.place is not None else ""
            text = f"case '{case.id}'{where}: {error.message}"
            raise type(error)(text, code=error.code, hint=error.hint) from None
    return outcomes


def _run(policy: Policy, case: PolicyCase, rows: RowPolicies | None, queries: QueryLookup | None) -> CaseOutcome:
    if case.type is not None:
        return _run_row_case(case, case.type, rows)
    decision = decide_case(policy, case, queries)
    if decision is None:
        raise InputError(
            f"the decision depends on whether the stored query '{case.query}' changes the graph, "
            "or runs with the rights of its definer",
            code="query_kind_needed",
            hint=Hint(
                "write 'changes' and 'definer' in the case",
                cli="write 'changes' and 'definer' in the case, or give the graph that stores the query as --graph",
            ),
        )
    verdict: Verdict = "allow" if decision.allowed else "deny"
    return CaseOutcome(case, verdict, decision.matched_rule, denied_by=decision.denied_by)


def decide_case(policy: Policy, case: PolicyCase, queries: QueryLookup | None) -> PolicyDecision | None:
    """Return the decision on a case without a row; None if it depends on the kind of a query that is not known."""
    name = case.query
    decide = partial(
        policy.decide,
        case.actor,
        case.action,
        case.branch,
        case.target_branch,
        groups=case.groups,
        attributes=attributes_key(case.attributes),
    )
    if name is None:
        return decide()
    kinds = kinds_of(case.changes, case.definer)

    def known() -> QueryFacts | None:
        found = None if queries is None else queries(name, case.branch or "main")
        return found if found in kinds else None

    return decide_call(partial(decide, name=name), kinds, known)


def _run_row_case(case: PolicyCase, type_name: str, rows: RowPolicies | None) -> CaseOutcome:
    if rows is None:
        raise InputError(
            f"a case about rows of '{type_name}' needs the schema of the graph",
            code="schema_needed",
            hint=Hint("give the row policies of a schema", cli="give --schema FILE or --graph URI"),
        )
    key = rows.table_key(type_name)
    actor = rows.actor(case.actor, case.groups, case.attributes)
    data, branch = case.data or {}, case.branch or "main"
    judged = rows.decisions.judge(actor, case.action, key, data, branch)
    views = None
    if case.properties is not None:
        actual = rows.decisions.property_views(actor, key, data, branch)
        missing = [name for name in case.properties if name not in actual]
        if missing:
            raise InputError(f"'{type_name}' has no property '{missing[0]}'", hint=did_you_mean(missing[0], actual))
        views = {name: actual[name] for name in case.properties}
    verdict: Verdict = "allow" if judged.allowed else "deny"
    return CaseOutcome(case, verdict, judged.allowing[0] if judged.allowing else None, views, judged.denying)
