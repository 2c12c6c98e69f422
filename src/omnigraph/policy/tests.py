"""The file of test cases of a policy, `policy.tests.yaml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from omnigraph.policy.decide import Policy
from omnigraph.policy.rules import ACTIONS
from omnigraph.policy.yaml_nodes import ProblemLog, YamlMap, YamlNode, join, parse_yaml, read_policy_text
from omnigraph.suggestions import did_you_mean

Verdict = Literal["allow", "deny"]
_KEYS = ("version", "cases")
_REQUIRED = ("id", "actor", "action", "expect")
_CASE_KEYS = ("id", "actor", "action", "branch", "target_branch", "expect")


@dataclass(frozen=True)
class PolicyCase:
    """A request and its expected decision."""

    id: str
    actor: str
    action: str
    branch: str | None
    target_branch: str | None
    expect: Verdict


@dataclass(frozen=True)
class CaseOutcome:
    """A case and the decision of the policy."""

    case: PolicyCase
    actual: Verdict
    matched_rule: str | None

    @property
    def ok(self) -> bool:
        """True if the decision is the expected one."""
        return self.case.expect == self.actual

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as a JSON object."""
        return {
            "id": self.case.id,
            "expect": self.case.expect,
            "actual": self.actual,
            "ok": self.ok,
            "matched_rule": self.matched_rule,
        }


def read_cases(path: Path | str) -> tuple[PolicyCase, ...]:
    """Return the cases of a file; raises `PolicyInvalid` with all problems."""
    return parse_cases(read_policy_text(Path(path)), str(path))


def parse_cases(text: str, source: str = "policy.tests.yaml") -> tuple[PolicyCase, ...]:
    """Return the cases of a text; raises `PolicyInvalid` with all problems."""
    log = ProblemLog(source, "policy tests file")
    members = log.expect_root(parse_yaml(text, log), _KEYS)
    node = members.get("cases")
    items = log.expect_list(node, "cases") if node is not None else []
    found = [_case(item, f"cases[{index}]", log) for index, item in enumerate(items)]
    lines: dict[str, int] = {}
    for index, (item, case) in enumerate(zip(items, found, strict=True)):
        if case is not None and case.id in lines:
            message = f"case id '{case.id}' is repeated; it is also on line {lines[case.id]}"
            log.add(f"cases[{index}].id", message, item.line)
        if case is not None:
            lines.setdefault(case.id, item.line)
    log.raise_any()
    return tuple(case for case in found if case is not None)


def _case(node: YamlNode, path: str, log: ProblemLog) -> PolicyCase | None:
    members = log.expect_map(node, path, _CASE_KEYS)
    if not isinstance(node, YamlMap):
        return None
    for key in _REQUIRED:
        if key not in members:
            log.add(join(path, key), "is missing", node.line)
    texts = {key: log.expect_text(members[key], join(path, key)) for key in _CASE_KEYS if key in members}
    action = _one_of(texts, "action", ACTIONS, path, node, log)
    expect = _one_of(texts, "expect", ("allow", "deny"), path, node, log)
    case_id, actor = texts.get("id"), texts.get("actor")
    if case_id is None or actor is None or action is None or expect is None:
        return None
    verdict: Verdict = "allow" if expect == "allow" else "deny"
    return PolicyCase(case_id, actor, action, texts.get("branch"), texts.get("target_branch"), verdict)


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


def run_cases(policy: Policy, cases: Iterable[PolicyCase]) -> list[CaseOutcome]:
    """Return the decision on every case."""
    outcomes = []
    for case in cases:
        decision = policy.decide(case.actor, case.action, case.branch, case.target_branch)
        outcomes.append(CaseOutcome(case, "allow" if decision.allowed else "deny", decision.matched_rule))
    return outcomes
