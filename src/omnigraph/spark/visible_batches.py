"""What rules for rows show of the batches that workers read.

The conditions of a visibility travel with the job. A worker applies them to each batch that it reads, with the
evaluator of the engine and before anything else: for predicates, scores, statistics and results, hidden rows do not
exist and masked values are null. Whether the ends of an edge are visible is a join of the driver's plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from omnigraph.arrays import with_nulls
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.visibility import NOTHING, with_absent_columns
from omnigraph.engine.expr.judge import judge
from omnigraph.pipeline.job import Job
from omnigraph.query.plan import ir
from omnigraph.query.visibility import Visibility
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import NodeType
from omnigraph.table_key import TableKey


@dataclass(frozen=True)
class TableRules:
    """The conditions on the rows and values of one table."""

    rows: ir.Condition | None
    """The condition of a visible row; None if all rows are visible."""
    values: Mapping[str, ir.Condition | None]
    """Guarded property → the condition of a visible value; None hides the property."""

    @cached_property
    def columns(self) -> list[str]:
        """The stored columns that the conditions read."""
        return list(dict.fromkeys(name for one in (self.rows, *self.values.values()) for name in _columns(one)))

    def check_columns(self, names: Iterable[str]) -> None:
        """Raise an error if a hidden property is to be read: the catalog of the caller does not have it."""
        for name in names:
            if name in self.values and self.values[name] is None:
                raise LookupError(f"'{name}' is hidden")

    def shown(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the visible rows of a batch that has the columns of the conditions; masked values are null."""
        rows = MemoryTable({name: batch.column(name) for name in self.columns}, batch.num_rows)
        shown = batch
        for name, condition in self.values.items():
            place = batch.schema.get_field_index(name)
            if condition is not None and place >= 0:
                column = with_nulls(batch.column(place), judge(condition, rows, None))
                shown = shown.set_column(place, pa.field(name, column.type), column)
        return shown if self.rows is None else shown.filter(pa.array(judge(self.rows, rows, None)))


def _columns(condition: ir.Condition | None) -> list[str]:
    parts = () if condition is None else ir.walk(condition)
    return [part.name for part in parts if isinstance(part, ir.Prop)]


def table_rules(visibility: Visibility | None, key: str, stored: pa.Schema) -> TableRules | None:
    """Return the rules of a table of some stored columns; None if all its rows and values are visible.

    A property that the version of the table does not have is null in conditions.
    """
    if visibility is None:
        return None

    def is_stored(prop: ir.Prop) -> bool:
        place = stored.get_field_index(prop.name)
        return place >= 0 and bool(stored.field(place).type == arrow_type(prop.type))

    def in_version(condition: ir.Condition) -> ir.Condition:
        return with_absent_columns(condition, is_stored)

    rows = None
    if key in visibility.rows:
        given = visibility.rows[key]
        rows = NOTHING if given is None else in_version(given)
    guarded = {name: one for (table, name), one in visibility.properties.items() if table == key}
    values = {name: None if one is None else in_version(one) for name, one in guarded.items()}
    return None if rows is None and not values else TableRules(rows, values)


def guarded_ends(job: Job, key: str) -> dict[str, NodeType]:
    """Return the ends of the edges of a table at which nodes can be hidden: column → type of the nodes."""
    table = TableKey.parse(key)
    if job.visibility is None or table.kind != "edge":
        return {}
    edge = job.catalog.edges[table.type_name]
    ends = {"src": job.catalog.nodes[edge.from_type], "dst": job.catalog.nodes[edge.to_type]}
    return {column: node for column, node in ends.items() if node.table_key in job.visibility.rows}
