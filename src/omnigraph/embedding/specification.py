"""Specifications of offline embeddings, and the manifests that contain one.

A specification states for each type which property receives the vector and which properties form its text. A manifest
is a project's file about its seed data; only its two paths and the specification are read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from omnigraph.errors import InputError

DEFAULT_OUTPUT = "./build/seed.embedded.jsonl"


@dataclass(frozen=True, slots=True)
class TypeTarget:
    """Target property of a type and the properties that form its text, in order."""

    target: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Specification:
    """Dimension and targets of the vectors; `name` is the origin of the specification, for messages."""

    dimension: int
    types: Mapping[str, TypeTarget]
    model: str | None = None
    name: str = "specification"


@dataclass(frozen=True, slots=True)
class SeedFiles:
    """Settings of a manifest for embedding its seed data."""

    input: Path
    output: Path
    specification: Specification


def read_specification(path: Path) -> Specification:
    """Read the specification in a JSON file."""
    text = _read_text(path)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"'{path}' is not JSON: {error}") from None
    return parse_specification(document, name=str(path))


def parse_specification(document: Any, *, name: str) -> Specification:
    """Parse a specification; `InputError` names the invalid key."""
    members = _object(document, f"'{name}'", required={"dimension", "types"}, optional={"model"})
    dimension, model = members["dimension"], members.get("model")
    if type(dimension) is not int or dimension < 1:
        raise InputError(f"'{name}': 'dimension' must be an integer of at least 1")
    if model is not None:
        _text(model, f"'{name}': 'model'")
    types = members["types"]
    if not isinstance(types, dict) or not types:
        raise InputError(f"'{name}': 'types' must be an object with at least one type")
    targets = {str(type_): _target(value, f"'{name}': 'types.{type_}'") for type_, value in types.items()}
    return Specification(dimension, targets, model, name)


def read_manifest(path: Path) -> SeedFiles:
    """Read the two paths and the specification of a manifest in YAML or JSON; paths are relative to its folder."""
    document = _parse_manifest(path, _read_text(path))
    if not isinstance(document, dict):
        raise InputError(f"manifest '{path}' must be a map of keys")
    source = _path(document, path, "sources.raw_seed") or _path(document, path, "seed.data")
    if source is None:
        raise InputError(f"manifest '{path}' names no input: 'sources.raw_seed' is missing")
    if document.get("embeddings") is None:
        raise InputError(f"manifest '{path}' has no key 'embeddings'")
    return SeedFiles(
        path.parent / source,
        path.parent / (_path(document, path, "artifacts.embedded_seed") or DEFAULT_OUTPUT),
        parse_specification(document["embeddings"], name=f"{path}: embeddings"),
    )


def _target(value: Any, where: str) -> TypeTarget:
    members = _object(value, where, required={"target", "fields"}, optional=set())
    fields = members["fields"]
    if not isinstance(fields, list) or not fields:
        raise InputError(f"{where}: 'fields' must be a list with at least one property")
    for field in fields:
        _text(field, f"{where}: each of 'fields'")
    return TypeTarget(_text(members["target"], f"{where}: 'target'"), tuple(fields))


def _object(value: Any, where: str, *, required: set[str], optional: set[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"{where} must be an object")
    for name in sorted(required):
        if name not in value:
            raise InputError(f"{where}: '{name}' is missing")
    for name in value:
        if name not in required | optional:
            known = ", ".join(f"'{known}'" for known in sorted(required | optional))
            raise InputError(f"{where}: there is no key '{name}'; the keys are {known}")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str) or not value:
        raise InputError(f"{where} must be a string that is not empty")
    return value


def _path(document: dict[str, Any], manifest: Path, key: str) -> str | None:
    section, name = key.split(".")
    members = document.get(section)
    if members is None:
        return None
    if not isinstance(members, dict):
        raise InputError(f"manifest '{manifest}': '{section}' must be a map of keys")
    value = members.get(name)
    return None if value is None else _text(value, f"manifest '{manifest}': '{key}'")


def _parse_manifest(path: Path, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        if path.suffix == ".json":
            raise InputError(f"manifest '{path}' is not JSON: {error}") from None
    try:
        yaml = import_module("yaml")
    except ImportError:
        raise InputError(
            f"manifest '{path}' is YAML, and PyYAML, which reads it, is not installed",
            hint="pip install pyyaml, or write the manifest as JSON",
        ) from None
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"manifest '{path}' is not YAML: {reason}") from None


def _read_text(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'", code="no_such_file") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}", code="unreadable_file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"'{path}' is not UTF-8 text: byte {error.start} is wrong", code="not_utf8") from None
