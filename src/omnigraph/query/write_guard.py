"""What an actor may change of a graph: a condition per table and action, and a condition per guarded property.

A policy is compiled to a `WriteGuard` for one actor and branch, as it is compiled to a `Visibility` for reads. It is
the only part of a policy that writes see. Conditions refer to the row as the variable `ROW`. An action is allowed on a
row where its condition is true; unknown is not true.

| change | required |
|---|---|
| insert | `row_insert` for the new row |
| update | the old row is visible; `row_update` for the old and the new row |
| delete | the row is visible; `row_delete` for it |
| assignment of a property | `property_write` for the old row, if there is one, and the new row |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from omnigraph.query.plan import ir
from omnigraph.query.visibility import Visibility

RowAction = Literal["row_insert", "row_update", "row_delete"]
ROW_CHANGES: tuple[RowAction, ...] = ("row_insert", "row_update", "row_delete")


@dataclass(frozen=True)
class WriteGuard:
    """The rows and properties that may be changed. Tables and properties that are not named may be changed."""

    visibility: Visibility = field(default_factory=Visibility)
    """The visible part of the graph: `row_read` and `property_read`."""
    rows: Mapping[tuple[RowAction, str], ir.Condition | None] = field(default_factory=dict)
    """Action and table key → the condition of a row on which it is allowed; None if there is no such row."""
    properties: Mapping[tuple[str, str], ir.Condition | None] = field(default_factory=dict)
    """Table key and property → the condition of a row whose property may be assigned; None if there is none."""
    rules: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Action and table key → the rules that name them, for messages."""
    property_rules: Mapping[tuple[str, str], tuple[str, ...]] = field(default_factory=dict)
    """Table key and property → the rules that let it be assigned, for messages."""
