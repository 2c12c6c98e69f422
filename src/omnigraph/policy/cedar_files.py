"""Cedar text as policies in the JSON form of Cedar: `.cedar` files, and the conditions of rules."""

from __future__ import annotations

import json
from typing import Any

from omnigraph.policy.cedar import load_cedarpy
from omnigraph.policy.statements import CedarSource, matched_patterns, reads_patterns
from omnigraph.policy.yaml_nodes import ProblemLog

_CONDITION = "permit(principal, action, resource) when {\n%s\n};"


def parse_cedar_file(name: str, text: str, log: ProblemLog) -> CedarSource | None:
    """Return the policies of a file; None if it has problems.

    The id of a policy is its annotation `@id("…")`, else the name of the file and its number.
    """
    try:
        found = json.loads(load_cedarpy().policies_to_json_str(text))
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
    found = json.loads(load_cedarpy().policies_to_json_str(_CONDITION % text))
    policies = list(found["staticPolicies"].values())
    if len(policies) != 1 or found["templates"] or len(policies[0]["conditions"]) != 1:
        raise ValueError("it is more than one condition")
    if policies[0]["conditions"][0]["kind"] != "when":
        raise ValueError("it is more than one condition")
    body: dict[str, Any] = policies[0]["conditions"][0]["body"]
    return body
