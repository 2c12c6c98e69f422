"""Authorization: policy files as Cedar policies. Imports no storage and no interface.

    rules             actions; the rules and groups of version 1
    statements        the rules of version 2
    branch_patterns   patterns of branch names
    load              policy files of either version, and the Cedar files beside them
    yaml_nodes        YAML text → nodes with line numbers; collects the problems of a file
    yaml              nodes → rules of version 1
    statements_yaml   nodes → rules of version 2
    cedar_files       Cedar text → policies
    cedar_schema      the Cedar schema of a graph
    cedar             version 1 → Cedar policies, and their evaluation
    statements_cedar  version 2 → Cedar policies, and the decisions on branches
    rows              Cedar policies for rows → conditions
    row_policies      the rules for rows and properties of one graph
    decide            decisions: cache, denial reasons, explanations
    describe          rules as short texts
    differences       the differences between two policies
    breakage          rules that a change of the schema would break
    tests             the file of test cases
    advice            warnings about valid policies
    starter           the files that `omnigraph policy init` writes

The names of the package are imported on first use; cedarpy and YAML, when a policy is compiled or read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from omnigraph.policy.decide import Policy, PolicyDecision, load_policy, load_server_policy
    from omnigraph.policy.rules import PolicyRule, PolicyRules
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

_HOMES = {
    "Policy": "decide",
    "PolicyDecision": "decide",
    "load_policy": "decide",
    "load_server_policy": "decide",
    "PolicyRule": "rules",
    "PolicyRules": "rules",
    "parse_rules": "yaml",
    "read_rules": "yaml",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph.policy' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"omnigraph.policy.{home}"), name)
