"""The section `proposals` of a policy: rules by pattern of target branches.

proposals:
  main: { approvals: 2, from: { group: curators }, for_types: { Contract: { group: legal } } }
  "release/*": { approvals: 1, required_checks: [no_orphans], changes_max: 10000 }
"""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.policy.branch_patterns import pattern_problem
from omnigraph.policy.proposal_rules import LAND_TRIES, ProposalRules
from omnigraph.policy.yaml_nodes import ProblemLog, YamlMap, YamlNode, YamlScalar, join, plain_value
from omnigraph.suggestions import did_you_mean, listing

_KEYS = (
    "approvals", "from", "not_author", "for_types", "required_checks", "dismiss", "changes_max", "land_tries",
)  # fmt: skip
_APPROVALS_MAX = 100
_CHANGES_MAX = 2**53
_TRIES_MAX = 100


def parse_proposal_rules(
    node: YamlNode | None, groups: Mapping[str, tuple[str, ...]], log: ProblemLog
) -> tuple[ProposalRules, ...]:
    """Return the rules for proposals in file order; problems are added to the log."""
    if node is None:
        return ()
    if not isinstance(node, YamlMap):
        log.expect_map(node, "proposals", ())
        return ()
    found = []
    for pattern, body in node.members.items():
        path = f"proposals.{pattern}"
        problem = pattern_problem(pattern)
        if problem is not None:
            log.add(path, problem, node.lines[pattern])
        found.append(_ProposalReader(groups, log, path).rules(pattern.strip(), body))
    return tuple(found)


class _ProposalReader:
    def __init__(self, groups: Mapping[str, tuple[str, ...]], log: ProblemLog, path: str) -> None:
        self._groups = groups
        self._log = log
        self._path = path

    def rules(self, pattern: str, node: YamlNode) -> ProposalRules:
        members = self._log.expect_map(node, self._path, _KEYS)
        return ProposalRules(
            pattern,
            approvals=self._number(members, "approvals", 0, _APPROVALS_MAX) or 0,
            from_group=self._group(members["from"], join(self._path, "from")) if "from" in members else None,
            not_author=self._truth(members, "not_author"),
            for_types=self._types(members.get("for_types")),
            required_checks=self._names(members.get("required_checks")),
            dismiss=self._truth(members, "dismiss"),
            changes_max=self._number(members, "changes_max", 1, _CHANGES_MAX),
            land_tries=self._number(members, "land_tries", 1, _TRIES_MAX) or LAND_TRIES,
        )

    def _number(self, members: Mapping[str, YamlNode], name: str, least: int, most: int) -> int | None:
        node = members.get(name)
        if node is None:
            return None
        text = node.text if isinstance(node, YamlScalar) and node.kind == "an integer" else ""
        if not text.isdecimal() or not least <= int(text[:17]) <= most:
            self._log.add(join(self._path, name), f"must be an integer from {least} to {most:,}", node.line)
            return None
        return int(text)

    def _truth(self, members: Mapping[str, YamlNode], name: str) -> bool:
        node = members.get(name)
        value = True if node is None else plain_value(node)
        if not isinstance(value, bool):
            self._log.add(join(self._path, name), "must be true or false", node.line if node is not None else None)
            return True
        return value

    def _group(self, node: YamlNode, path: str) -> str:
        members = self._log.expect_map(node, path, ("group",))
        if not isinstance(node, YamlMap):
            return ""
        if "group" not in members:
            self._log.add(f"{path}.group", "is missing", node.line, hint="write: { group: NAME }")
            return ""
        name = self._log.expect_text(members["group"], f"{path}.group")
        if name is not None and name not in self._groups:
            hint = did_you_mean(name, self._groups) or f"the groups are {listing(self._groups) or 'none'}"
            self._log.add(f"{path}.group", f"there is no group '{name}'", node.line, hint=hint)
        return name or ""

    def _types(self, node: YamlNode | None) -> dict[str, str]:
        if node is None:
            return {}
        path = join(self._path, "for_types")
        if not isinstance(node, YamlMap):
            self._log.expect_map(node, path, ())
            return {}
        return {name: self._group(group, join(path, name)) for name, group in node.members.items()}

    def _names(self, node: YamlNode | None) -> tuple[str, ...]:
        path = join(self._path, "required_checks")
        items = self._log.expect_list(node, path) if node is not None else []
        names = (self._log.expect_text(item, f"{path}[{index}]") for index, item in enumerate(items))
        return tuple(dict.fromkeys(name for name in names if name is not None))
