"""Policy files: a `policy.yaml` of either version, and the Cedar files beside one of version 2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import InputError
from omnigraph.policy.rules import PolicyKind, PolicyRules
from omnigraph.policy.statements import CedarSource, PolicyStatements
from omnigraph.policy.yaml import rules_of
from omnigraph.policy.yaml_nodes import ProblemLog, YamlMap, parse_yaml, read_policy_text, version_of

POLICY_FILE, TESTS_FILE = "policy.yaml", "policy.tests.yaml"

AnyPolicy = PolicyRules | PolicyStatements
"""A valid policy of version 1 or 2."""


@dataclass(frozen=True)
class PolicyText:
    """The texts of a policy."""

    path: Path
    """The YAML file."""
    text: str
    cedar: Mapping[Path, str]
    """The Cedar files beside it; a policy of version 1 has none."""
    version: int | None = None
    """The version of the file; None if it has no valid one."""

    @property
    def digest_text(self) -> str:
        """All texts in one, for a digest."""
        parts = [self.text, *(part for path, text in self.cedar.items() for part in (path.name, text))]
        return "".join(f"{len(part)} {part}" for part in parts)


def policy_path(path: Path | str) -> Path:
    """Return the YAML file of a policy that is given as a file or as a folder."""
    found = Path(path)
    return found / POLICY_FILE if found.is_dir() else found


def tests_path(path: Path | str) -> Path:
    """Return the default tests file of a policy that is given as a file or as a folder."""
    return policy_path(path).with_name(TESTS_FILE)


def cedar_paths(path: Path | str) -> list[Path]:
    """Return the Cedar files beside a policy, by name."""
    return sorted(policy_path(path).parent.glob("*.cedar"))


def read_policy(path: Path | str, kind: PolicyKind = "graph") -> PolicyText:
    """Return the texts of a policy that is given as a file or as a folder.

    The Cedar files beside a file of version 2 are part of the policy of a graph. A file of version 1 in a folder that
    is given as the policy must have none: they would have no effect.
    """
    yaml_path = policy_path(path)
    text = read_policy_text(yaml_path)
    version = _version(text)
    if kind == "server" or version != 2:
        found = cedar_paths(path) if kind == "graph" and Path(path).is_dir() else []
        if found:
            raise InputError(
                f"'{found[0]}' has no effect: '{yaml_path}' is a policy of version 1",
                code="policy_invalid",
                hint="write 'version: 2', or remove the Cedar files",
            )
        return PolicyText(yaml_path, text, {}, version)
    return PolicyText(yaml_path, text, {found: read_policy_text(found) for found in cedar_paths(path)}, version)


def parse_policy(texts: PolicyText, kind: PolicyKind = "graph") -> AnyPolicy:
    """Return the policy of some texts; raises `PolicyInvalid` with all problems."""
    source = str(texts.path)
    log = ProblemLog(source, "policy" if kind == "graph" else "server policy")
    root = parse_yaml(texts.text, log)
    if not isinstance(root, YamlMap) or version_of(root.members) != 2:
        return rules_of(root, log, source, kind)
    from omnigraph.policy.cedar_files import parse_cedar_file  # noqa: PLC0415 (a policy of version 1 needs neither)
    from omnigraph.policy.statements_yaml import parse_statements  # noqa: PLC0415

    files: list[CedarSource] = []
    for path, text in texts.cedar.items():
        file = parse_cedar_file(path.name, text, log)
        if file is not None:
            files.append(file)
    return parse_statements(root, log, source, kind, files)


def parse_policy_text(text: str, source: str = POLICY_FILE, kind: PolicyKind = "graph") -> AnyPolicy:
    """Return the policy of a YAML text without Cedar files; raises `PolicyInvalid` with all problems."""
    return parse_policy(PolicyText(Path(source), text, {}), kind)


def _version(text: str) -> int | None:
    root = parse_yaml(text, ProblemLog("", ""))
    return version_of(root.members) if isinstance(root, YamlMap) else None
