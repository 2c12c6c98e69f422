"""A write as the rules of a graph see it, and what a rule is.

A write is a `Delta`: per table the rows it puts in place (by id) and the ids it takes away. Committed rows are seen
only as far as the delta makes them matter.

A rule is a sequence of steps, a step one or more parts that are reported together. Each part says by which
columns rows meet (`by`): dealt into buckets by these, every bucket can be judged alone. That is how a bulk
pipeline checks what fits no memory, with the very same functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ConstraintViolation

RuleKind = Literal["range", "check", "enum", "unique", "endpoint", "orphan", "cardinality"]


@dataclass(frozen=True, slots=True)
class Violation:
    """A row that breaks a rule; `row_id` is the row, `other_id` a second one it collides with.

    `position` is the row's place among the written ones. A committed row that is left behind has none, and
    neither has the source of a cardinality: that is a node. `surplus` are the places of the written edges it has to
    do without: the last ones of the write where it has too many, all of them where it has too few.
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
        """The violation as an error."""
        return ConstraintViolation(self.message, code=f"{self.rule}_violation")


@dataclass(frozen=True)
class TableDelta:
    """What a write does to one table.

    `rows` are put in place by id, `deleted` ids are taken away; with `replaces`, every committed row
    that is not among `rows` is gone too.
    """

    rows: pa.Table
    deleted: pa.Array = field(default_factory=lambda: pa.array([], pa.utf8()))
    replaces: bool = False

    def written_ids(self) -> pa.Array:
        """The ids of all rows it puts in place or takes away."""
        return pa.concat_arrays([one_array(self.rows["id"]), one_array(self.deleted)])


class Committed(Protocol):
    """The committed rows a rule may need to see."""

    def rows_among(self, table_key: str, column: str, values: pa.Array, columns: Sequence[str]) -> pa.Table:
        """The rows whose `column` is one of `values`, which are of its type."""

    def read(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """All rows."""


@dataclass(frozen=True)
class Delta:
    """A write, and the graph it is made on."""

    tables: Mapping[str, TableDelta]
    committed: Committed

    def surviving(
        self, table_key: str, columns: Sequence[str], column: str | None = None, values: pa.Array | None = None
    ) -> pa.Table:
        """Committed rows the write leaves as they are; with `column`, those whose value there is one of `values`."""
        table = self.tables.get(table_key)
        wanted = [*columns] if "id" in columns else ["id", *columns]
        if column is None or (table is not None and table.replaces):
            rows = self.committed.read(table_key, wanted)
        else:
            rows = self.committed.rows_among(table_key, column, values, wanted)
        if table is not None:
            rows = rows.slice(0, 0) if table.replaces else without(rows, "id", table.written_ids())
        return rows.select([*columns])

    def replaced(self, table_key: str, columns: Sequence[str]) -> pa.Table:
        """Committed rows the write puts others in place of, or takes away."""
        if self.tables[table_key].replaces:
            return self.committed.read(table_key, columns)
        return self.committed.rows_among(table_key, "id", self.tables[table_key].written_ids(), columns)


Look = Callable[[Delta], Iterator[Violation]]


@dataclass(frozen=True)
class Part:
    """One look at a write.

    `by` names the columns of each table that decide which rows meet; none: no two do. It looks only when rows of
    the table `written` are written, or, `on_loss`, taken away, and then at committed rows of the tables `stored`
    that stay and of the tables `lost` that go.
    """

    check: Look
    written: str
    by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    stored: frozenset[str] = frozenset()
    lost: frozenset[str] = frozenset()
    on_loss: bool = False


@dataclass(frozen=True)
class Rule:
    """What must hold for the rows of one table."""

    table_key: str
    steps: tuple[tuple[Part, ...], ...]

    def __call__(self, delta: Delta) -> Iterator[Violation]:
        """What breaks the rule, in order."""
        for parts in self.steps:
            if len(parts) == 1:
                yield from parts[0].check(delta)
            else:
                yield from _in_order(part.check(delta) for part in parts)


def _in_order(parts: Iterable[Iterator[Violation]]) -> Iterator[Violation]:
    """Violations of several columns as they come in the write."""
    yield from sorted((violation for part in parts for violation in part), key=_position)


def _position(violation: Violation) -> int:
    return violation.position if violation.position is not None else -1


def without(rows: pa.Table, column: str, values: pa.Array) -> pa.Table:
    """The rows whose column is none of the values."""
    if not rows.num_rows or not len(values):
        return rows
    return rows.filter(pc.invert(pc.is_in(rows[column], value_set=values)))


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """The values in one piece."""
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
