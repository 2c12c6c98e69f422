"""Commits and branches of the model, and counts of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from support.graph_model import Schema, Tables


@dataclass
class ModelCommit:
    """A commit of the model; `pins` identify table versions."""

    id: str
    parent: ModelCommit | None
    kind: str
    schema: Schema
    tables: Tables
    pins: dict[str, int]
    actor: str | None = None

    def line(self) -> list[ModelCommit]:
        """This commit and its ancestors."""
        found = [self]
        while found[-1].parent is not None:
            found.append(found[-1].parent)
        return found


@dataclass
class Branch:
    head: ModelCommit
    fork: ModelCommit | None


@dataclass
class Tally:
    """Counts of a run."""

    steps: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    lives: int = 0
