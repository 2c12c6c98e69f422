"""Authorization: policy files as Cedar policies. Imports no storage and no interface.

    rules       actions, rules and groups of a policy
    yaml_nodes  YAML text → nodes with line numbers; collects the problems of a file
    yaml        nodes → rules
    cedar       rules → Cedar policies, and their evaluation; the only module that imports cedarpy
    decide      decisions: cache, denial reasons, explanations
    tests       the file of test cases
    advice      warnings about valid policies
    starter     the files that `omnigraph policy init` writes

cedarpy and YAML are imported when the first policy is compiled or read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.policy.decide import Policy, PolicyDecision, load_policy, load_server_policy
from omnigraph.policy.rules import PolicyRule, PolicyRules

if TYPE_CHECKING:
    from omnigraph.policy.yaml import parse_rules, read_rules

__all__ = [
    "Policy",
    "PolicyDecision",
    "PolicyRule",
    "PolicyRules",
    "load_policy",
    "load_server_policy",
    "parse_rules",
    "read_rules",
]


def __getattr__(name: str) -> Any:
    if name not in ("parse_rules", "read_rules"):
        raise AttributeError(f"module 'omnigraph.policy' has no attribute '{name}'")
    from omnigraph.policy import yaml  # noqa: PLC0415

    return getattr(yaml, name)
