"""A write as input of the integrity rules, and the structure of a rule.

A write is a `Delta`: for each table the rows that it puts (by id) and the ids that it deletes. Committed rows are read
only as far as the delta affects them.

A rule is a sequence of steps; a step is one or more checks that are reported together. Each check names the columns
that decide which rows it compares (`by`). Rows shuffled into buckets by these columns can be checked one bucket at a
time: that is how a bulk load checks data larger than memory, with the same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import concatenate, one_array
from omnigraph.errors import ConstraintViolation
from omnigraph.schema.catalog import EdgeType, NodeType

RuleKind = Literal["range", "check", "enum", "unique", "valid", "endpoint", "orphan", "cardinality"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A row that violates a rule; `row_id` is the row, `other_id` the row it collides with.

    `position` is the position of the row in the write. It is None for a committed row that is left without a node, and
    for a cardinality, whose `row_id` is the source node. `surplus` has the positions of the written edges to reject:
    the last ones above the maximum, or all below the minimum.
    """

    rule: RuleKind
    table_key: str
    row_id: str
    message: str
    property: str | None = None
    other_id: str | None = None
    position: int | None = None
    surplus: tuple[int, ...] = ()

    def error(self) -> ConstraintViolation:
        """Return the violation as an error."""
        return ConstraintViolation(self.message, code=f"{self.rule}_violation", hint=_HINTS.get(self.rule))


_HINTS: dict[RuleKind, str] = {
    "endpoint": "load or insert the node first, or together with the edge",
    "orphan": "overwrite the edge type in the same load, delete its edges first, or load with mode 'merge'",
}


MADE = "made"
"""An optional column of written rows: true if the write generated the id."""


@dataclass(frozen=True)
class TableDelta:
    """The changes of a write to one table.

    `rows` are put by id, `deleted` ids are removed. With `replaces`, all other committed rows are removed as well. With
    `appends`, the rows are inserted, and a committed row with one of their ids is an error of the write.
    """

    rows: pa.Table
    deleted: pa.Array = field(default_factory=lambda: pa.array([], pa.utf8()))
    replaces: bool = False
    appends: bool = False

    def written_ids(self) -> pa.Array:
        """Return the ids of all rows that are put or deleted."""
        return concatenate([one_array(self.rows["id"]), one_array(self.deleted)])


class Committed(Protocol):
    """Access of the rules to committed rows."""

    def rows_among(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """Read the rows whose `column` is one of `values`, which have the type of the column."""

    def read(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """Read all rows."""


class DeltaGuard(Protocol):
    """The rules for rows that a write must satisfy besides the integrity rules."""

    def check(self, delta: Delta) -> None:
        """Raise `Denied` for the first change that is not allowed."""

    def taken(self, delta: Delta) -> Iterator[Violation]:
        """Yield the written rows whose ids hidden rows have."""

    def visible_ends(self, delta: Delta, node: NodeType, ends: pa.Array) -> pa.Array:
        """Return the ids or keys of committed nodes that are visible."""

    def hides(self, type_: NodeType | EdgeType, name: str) -> bool:
        """Return True if a property does not exist for the actor."""

    def conceals(
        self,
        delta: Delta,
        type_: NodeType | EdgeType,
        rows: pa.Table,
        columns: Sequence[str],
        other: str | None = None,
    ) -> bool:
        """Return True if a violation may not name written rows and their values, or the committed row `other`."""

    def hides_edges(self, delta: Delta, edge: EdgeType, source: str) -> bool:
        """Return True if a node has unchanged outgoing edges of a type that are not visible."""

    def visible_edges(self, delta: Delta, edge: EdgeType, ids: pa.Array) -> pa.Array:
        """Return the ids of committed edges that are visible."""


@dataclass(frozen=True)
class Delta:
    """A write and the committed graph it applies to."""

    tables: Mapping[str, TableDelta]
    committed: Committed
    cascaded: bool = field(default=False, kw_only=True)
    """True if the write deletes all edges of the nodes that it deletes."""
    guard: DeltaGuard | None = field(default=None, kw_only=True)
    """The rules for rows; None if every change is allowed."""

    def surviving(
        self, table_key: str, columns: Sequence[str], column: str | None = None, values: pa.Array | None = None
    ) -> pa.Table:
        """Read committed rows that the write leaves unchanged; with `column`, those whose value is one of `values`."""
        table = self.tables.get(table_key)
        wanted = [*columns] if "id" in columns else ["id", *columns]
        if column is None or (table is not None and table.replaces):
            rows = self.committed.read(table_key, wanted)
        else:
            rows = self.committed.rows_among(table_key, column, values, wanted)
        if table is not None:
            rows = rows.slice(0, 0) if table.replaces else without(rows, "id", table.written_ids())
        return rows.select([*columns])

    def ends_among(self, node: NodeType, ends: pa.Array) -> pa.ChunkedArray | pa.Array:
        """Return the ids or keys of unchanged nodes at which a written edge may end."""
        found = self.surviving(node.table_key, [node.end_column], node.end_column, ends)[node.end_column]
        return found if self.guard is None else self.guard.visible_ends(self, node, one_array(pc.unique(found)))

    def lost_ends(self, node: NodeType) -> pa.Array:
        """Return the ids or keys of nodes that the write removes. A key is lost with the last row that has it."""
        table, column = self.tables[node.table_key], node.end_column
        gone = one_array(table.deleted)
        if column == "id" or not len(gone):
            return gone
        keys = one_array(pc.unique(self.committed.rows_among(node.table_key, "id", gone, [column])[column]))
        kept = self.surviving(node.table_key, [column], column, keys)[column]
        held = pa.concat_arrays([one_array(kept), one_array(table.rows[column])])
        return keys.filter(pc.invert(pc.is_in(keys, value_set=held)))

    def replaced(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """Read committed rows that the write replaces or deletes."""
        if self.tables[table_key].replaces:
            return self.committed.read(table_key, columns)
        return self.committed.rows_among(table_key, "id", self.tables[table_key].written_ids(), columns)


CheckFunction = Callable[[Delta], Iterator[Violation]]


@dataclass(frozen=True)
class RuleCheck:
    """One check of a rule.

    `by` names the columns of each table that decide which rows are compared; without it, rows are checked one by one.
    The check runs if rows of the table `written` are put or, with `on_loss`, deleted. It reads committed rows of the
    tables `stored` that remain and of the tables `lost` that are removed.
    """

    check: CheckFunction
    written: str
    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stored: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    on_loss: bool = False


@dataclass(frozen=True)
class IntegrityRule:
    """A condition on the rows of one table."""

    table_key: str
    steps: tuple[tuple[RuleCheck, ...], ...]
    is_endpoint: bool = False
    """True for the rule on the nodes of edges. It is the first one under a guard."""

    def __call__(self, delta: Delta) -> Iterator[Violation]:
        """Yield the violations of the rule, in order."""
        for parts in self.steps:
            if len(parts) == 1:
                yield from parts[0].check(delta)
            else:
                yield from _in_order(part.check(delta) for part in parts)


def _in_order(parts: Iterable[Iterator[Violation]]) -> Iterator[Violation]:
    """Yield the violations of several checks in the order of the write."""
    yield from sorted((violation for part in parts for violation in part), key=_position)


def _position(violation: Violation) -> int:
    return violation.position if violation.position is not None else -1


def without(rows: pa.Table, column: str, values: pa.Array) -> pa.Table:
    """Return the rows whose column is none of the values."""
    if not rows.num_rows or not len(values):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows[column], value_set=values)))
