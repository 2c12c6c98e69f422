"""The files of deploy/, parsed, and what the program knows about the same things."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from omnigraph.config_keys import SERVER_SETTINGS
from omnigraph.server.process.lifecycle import READ_GRACE_S

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
_INTERPOLATION = re.compile(r"\$\{(\w+)(?::(-|\?)([^}]*))?\}")
_SIZES = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}
STOP_SLACK_S = 5.0
"""The time between the end of all work and the end of the process, with a margin."""


def stop_time(drain_s: float, grace_s: float) -> float:
    """Return the longest time from the stop signal to the end of a server."""
    return drain_s + max(READ_GRACE_S, grace_s) + STOP_SLACK_S


@cache
def known_variables() -> set[str]:
    """Return every OMNIGRAPH_ variable that the program reads."""
    read = {setting.variable for setting in SERVER_SETTINGS}
    read |= {name for setting in SERVER_SETTINGS for name in setting.older_variables}
    for path in (ROOT / "src").rglob("*.py"):
        read |= set(re.findall(r"\bOMNIGRAPH_[A-Z_]+\b", path.read_text(encoding="utf-8")))
    return read


def files() -> list[Path]:
    """Return every file of deploy/."""
    return sorted(path for path in DEPLOY.rglob("*") if path.is_file())


# -- Containerfile ------------------------------------------------------------------------------------


@dataclass
class Stage:
    """One stage of a Containerfile: its instructions in order."""

    base: str
    name: str | None
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, word: str) -> list[str]:
        return [argument for found, argument in self.instructions if found == word]

    def last(self, word: str) -> str:
        return self.all(word)[-1]

    @property
    def environment(self) -> dict[str, str]:
        pairs = (pair.partition("=") for text in self.all("ENV") for pair in shlex.split(text))
        return {name: value for name, _, value in pairs}


def read_containerfile(path: Path) -> tuple[dict[str, str], list[Stage]]:
    """Return the arguments before the first stage, and the stages."""
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    text = "\n".join(lines).replace("\\\n", " ")
    arguments: dict[str, str] = {}
    stages: list[Stage] = []
    for line in filter(None, map(str.strip, text.splitlines())):
        word, _, rest = line.partition(" ")
        if word == "FROM":
            base, _, name = rest.partition(" AS ")
            stages.append(Stage(base, name or None))
        elif not stages:
            assert word == "ARG", line
            name, _, value = rest.partition("=")
            arguments[name] = value
        else:
            stages[-1].instructions.append((word, " ".join(rest.split())))
    return arguments, stages


# -- compose ------------------------------------------------------------------------------------------


def read_compose(variables: Mapping[str, str]) -> dict[str, Any]:
    """Return the compose file with its variables replaced; a required one that is missing raises KeyError."""

    def value_of(match: re.Match[str]) -> str:
        name, kind, default = match.groups()
        if variables.get(name):
            return variables[name]
        if kind == "-":
            return str(default)
        raise KeyError(name)

    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    document: dict[str, Any] = yaml.safe_load(_INTERPOLATION.sub(value_of, code))
    return document


# -- systemd ------------------------------------------------------------------------------------------


def read_unit(path: Path) -> dict[str, dict[str, list[str]]]:
    """Return the sections of a unit file: key → values in order."""
    sections: dict[str, dict[str, list[str]]] = {}
    current: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            current = sections.setdefault(line.strip("[]"), {})
        elif line and not line.startswith("#"):
            key, equals, value = line.partition("=")
            assert equals, line
            current.setdefault(key, []).append(value)
    return sections


# -- Kubernetes ---------------------------------------------------------------------------------------


def read_manifests() -> dict[str, dict[str, Any]]:
    """Return the resources of the kustomize base by kind, as they are in the files."""
    folder = DEPLOY / "kubernetes"
    names = yaml.safe_load((folder / "kustomization.yaml").read_text(encoding="utf-8"))["resources"]
    documents = [yaml.safe_load((folder / name).read_text(encoding="utf-8")) for name in names]
    return {document["kind"]: document for document in documents}


def values_of(document: Any, key: str) -> Iterator[Any]:
    """Yield every value of a key, at any depth."""
    match document:
        case dict():
            for name, value in document.items():
                if name == key:
                    yield value
                yield from values_of(value, key)
        case list():
            for item in document:
                yield from values_of(item, key)


def size_of(text: str) -> int:
    """Return the bytes of a Kubernetes quantity such as 4Gi."""
    return int(text[:-2]) * _SIZES[text[-2:]]


def words_of(exec_form: str) -> list[str]:
    """Return the words of an instruction in exec form."""
    words: list[str] = json.loads(exec_form)
    return words
