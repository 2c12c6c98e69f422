"""Cedar text as policies in the JSON form of Cedar: `.cedar` files, and the conditions of rules."""

from __future__ import annotations

import json
import re
from typing import Any

from omnigraph.checkpoints import checkpoint, paced
from omnigraph.policy.cedar import load_cedarpy
from omnigraph.policy.statements import CedarSource, matched_patterns, reads_patterns
from omnigraph.policy.yaml_nodes import ProblemLog

_TOKENS = re.compile(
    r'"(?:[^"\\]|\\.)*"|//[^\n]*|(?P<open>[(\[{])|(?P<close>[)\]}])|(?P<end>;)'
    r"|(?P<operator>&&|\|\||[!.+*]|\bif\b|(?<=[\w)\]\"])\s*-)",
    re.DOTALL,
)
_BRACKETS_MAX = 64
"""Nested brackets of a Cedar text. The parser of Cedar uses the stack of the process, which it can exhaust."""
_OPERATORS_MAX = 4_000
"""Operators and brackets of one policy, which can be nested as a chain."""
_DEPTH_MAX = 118
"""Nested objects of a condition in the JSON form of Cedar, which reads at most 128."""
_TOO_DEEP = 'it is nested too deeply; instead of a long chain of \'||\', write a set: ["a", "b"].contains(resource.x)'
_CONDITION = "permit(principal, action, resource) when {\n%s\n};"


def parse_cedar_file(name: str, text: str, log: ProblemLog) -> CedarSource | None:
    """Return the policies of a file; None if it has problems.

    The id of a policy is its annotation `@id("…")`, else the name of the file and its number.
    """
    try:
        found = _parsed(text)
    except ValueError as error:
        log.add(name, f"is not Cedar: {error}")
        return None
    if found["templates"] or found["templateLinks"]:
        log.add(name, "has a template; templates are not supported", hint="write the policy out")
        return None
    policies: dict[str, Any] = {}
    # Cedar numbers the policies of a text in order: policy0, policy1, …
    ordered = sorted(found["staticPolicies"].items(), key=lambda item: int(item[0].removeprefix("policy")))
    for number, (_, policy) in enumerate(ordered, 1):
        annotations = policy.get("annotations") or {}
        policy_id = annotations.get("id") or f"{name}:{number}"
        if policy_id in policies:
            log.add(name, f"the id '{policy_id}' is repeated")
        if reads_patterns(policy) > sum(1 for _ in matched_patterns(policy["conditions"])):
            hint = "the names of a branch can be tested with 'like', too"
            log.add(name, f"'{policy_id}': 'matches' must be tested with 'contains' and a text", hint=hint)
        policies[policy_id] = {**policy, "annotations": {**annotations, "id": policy_id}}
    return CedarSource(name, policies)


def parse_condition(text: str) -> dict[str, Any]:
    """Return a condition in the JSON form of Cedar; raises ValueError if the text is not exactly one condition."""
    found = _parsed(_CONDITION % text)
    policies = list(found["staticPolicies"].values())
    if len(policies) != 1 or found["templates"] or len(policies[0]["conditions"]) != 1:
        raise ValueError("it is more than one condition")
    if policies[0]["conditions"][0]["kind"] != "when":
        raise ValueError("it is more than one condition")
    body: dict[str, Any] = policies[0]["conditions"][0]["body"]
    return body


def _parsed(text: str) -> Any:
    """Return policies in the JSON form of Cedar; raises ValueError for other texts and deep nesting."""
    _check_nesting(text)
    try:
        found = json.loads(load_cedarpy().policies_to_json_str(text))
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    level, depth = [found], 0
    while level:
        checkpoint()
        depth += 1
        if depth > _DEPTH_MAX:
            raise ValueError(_TOO_DEEP)
        items = (item for one in level for item in (one.values() if isinstance(one, dict) else one))
        level = [item for item in items if isinstance(item, dict | list)]
    return found


def _check_nesting(text: str) -> None:
    """Refuse a text that is nested so deeply that its parser could exhaust the stack."""
    depth = operators = 0
    for token in paced(_TOKENS.finditer(text)):
        match token.lastgroup:
            case "open":
                depth += 1
                operators += 1
            case "close":
                depth -= 1
            case "operator":
                operators += 1
            case "end":
                operators = 0
        if depth > _BRACKETS_MAX or operators > _OPERATORS_MAX:
            raise ValueError(_TOO_DEEP)
