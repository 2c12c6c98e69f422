"""Authorization: `policy.yaml` as Cedar policies. Imports no storage and no interface.

    rules       actions, rules and groups of a policy
    yaml_nodes  YAML text → nodes with line numbers; collects the problems of a file
    yaml        nodes → rules
    cedar       rules → Cedar policies, and their evaluation; the only module that imports cedarpy
    decide      decisions: cache, denial reasons, explanations
    tests       the file of test cases
    advice      warnings about valid policies
    starter     the files that `omnigraph policy init` writes

cedarpy is imported when the first policy is compiled.
"""

from __future__ import annotations

from omnigraph.policy.decide import Policy, PolicyDecision, load_policy
from omnigraph.policy.rules import PolicyRule, PolicyRules
from omnigraph.policy.yaml import parse_rules, read_rules

__all__ = ["Policy", "PolicyDecision", "PolicyRule", "PolicyRules", "load_policy", "parse_rules", "read_rules"]
