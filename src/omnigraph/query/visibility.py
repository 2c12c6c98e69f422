"""What an actor may see of a graph: a condition per table, and a rule per guarded property.

A policy is compiled to a `Visibility` for one actor and branch. It is the only part of a policy that the engine sees.
Conditions refer to the row as the variable `ROW`. A row or value is visible where its condition is true; unknown is not
true.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256

from omnigraph.query.plan import ir

ROW = "row"
"""The variable of the judged row in a condition."""


@dataclass(frozen=True)
class Visibility:
    """The visible part of a graph. Tables and properties that are not named are visible."""

    rows: Mapping[str, ir.Condition | None] = field(default_factory=dict)
    """Table key → the condition of a visible row; None if no row is visible."""
    properties: Mapping[tuple[str, str], ir.Condition | None] = field(default_factory=dict)
    """Table key and property → the condition of a visible value, which is else null; None hides the property."""

    @cached_property
    def digest(self) -> str:
        """Identifies the visibility: actors with equal conditions share what is computed under it."""
        rows = [self.row_digest(key) for key in sorted(self.rows)]
        values = sorted((key, repr(condition)) for key, condition in self.properties.items())
        return _digest(repr((rows, values)))

    def row_digest(self, table_key: str) -> str:
        """Identify the condition of the rows of a guarded table."""
        return _digest(f"{table_key} {self.rows[table_key]!r}")


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:32]
