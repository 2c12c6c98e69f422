"""Commits and branches of the model, and counts of a run."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from support.graph_model import Schema, Tables


@dataclass
class ModelCommit:
    """What the model knows of a commit; `pins` tell table versions apart."""

    id: str
    parent: ModelCommit | None
    kind: str
    schema: Schema
    tables: Tables
    pins: dict[str, int]
    actor: str | None = None

    def line(self) -> list[ModelCommit]:
        """This commit and those before it."""
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
    """What a run did, to be told at its end."""

    steps: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    commits: int = 0
    lives: int = 0
