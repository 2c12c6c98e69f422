"""Nodes and edges of a file without their values, from which a schema is inferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Declared:
    """The type that a file declares for a value, in the schema language, and the reason for it."""

    type: str
    reason: str


@dataclass(frozen=True)
class ScannedNode:
    """A node: its labels, its id and the names of its values."""

    space: str
    id: str | None
    labels: Sequence[str]
    values: Sequence[str]
    declared: Mapping[str, Declared]
    id_name: str = ""
    id_type: str = "String"


@dataclass(frozen=True)
class ScannedEdge:
    """An edge: its type, its ends and the names of its values."""

    spaces: tuple[str, str]
    ends: tuple[str | None, str | None]
    relationship: str | None
    values: Sequence[str]
    declared: Mapping[str, Declared]
