"""Evaluation of query expressions in Spark workers, by the evaluator of the engine.

A batch acts as a table with row numbers 0 to n; each variable of the query sees its own columns of the batch. Nulls,
mixed numbers, text search and dates therefore have the same semantics on Spark and in process.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

import numpy as np
import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.table_cache import Mask
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.search.searcher import Searcher
from omnigraph.pipeline.job import Job
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.arrow_interop import from_wire, to_wire
from omnigraph.spark.runner import prepare_worker


def walk_tree(tree: Any) -> Iterator[Any]:
    """Yield a plan or an expression and all its descendants."""
    yield tree
    if isinstance(tree, tuple):
        parts: Iterable[Any] = tree
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        parts = (getattr(tree, field.name) for field in dataclasses.fields(tree))
    else:
        return
    for part in parts:
        yield from walk_tree(part)


def properties_in(expr: Any) -> Iterator[ir.Prop]:
    """Yield every property that an expression reads."""
    return (node for node in walk_tree(expr) if isinstance(node, ir.Prop))


Some = TypeVar("Some")


def entities_as_ids(expr: Some) -> Some:
    """Replace every entity in an expression by its id: within an expression only its presence matters."""
    if isinstance(expr, ir.Entity):
        return cast(Some, ir.Prop(expr.var, "id", ir.NULL))
    if isinstance(expr, tuple):
        return cast(Some, tuple(entities_as_ids(part) for part in expr))
    if dataclasses.is_dataclass(expr) and not isinstance(expr, type):
        parts = {field.name: entities_as_ids(getattr(expr, field.name)) for field in dataclasses.fields(expr)}
        return cast(Some, dataclasses.replace(expr, **parts))
    return expr


def returned_entities(expr: ir.Expr) -> Iterator[ir.Entity]:
    """Yield the entities that an expression returns with all their fields, alone or inside objects and lists."""
    if isinstance(expr, ir.Entity):
        yield expr
    elif isinstance(expr, ir.Object | ir.ListOf) or (isinstance(expr, ir.Aggregate) and expr.function == "collect"):
        for part in ir.parts_of(expr):
            yield from returned_entities(part)


def entity_fields(entity: ir.Entity, catalog: Catalog) -> Iterator[tuple[str, str]]:
    """Yield the fields of a node with the property of each; the field `type` of a union is its `ir.TYPE`."""
    union = entity.type_name not in catalog.nodes
    for name, _ in entity.type.fields:
        yield name, ir.TYPE if union and name == "type" else name


_WHOLE = "#node"
"""Suffix of a variable whose columns are the fields of a whole node."""


def for_workers(expr: ir.Expr) -> ir.Expr:
    """Return the expression that workers evaluate: returned entities stay, all others become ids."""
    if isinstance(expr, ir.Object | ir.ListOf):
        return ir.with_parts(expr, for_workers)
    if isinstance(expr, ir.Entity):
        return dataclasses.replace(expr, var=expr.var + _WHOLE)
    if isinstance(expr, ir.PathPart):
        return cast(ir.Expr, ir.Prop(expr.var, path_part_column(expr.part), cast(Any, expr.type)))
    return entities_as_ids(expr)


def path_part_column(part: str) -> str:
    """Return the property of a path that is the whole path, its nodes or its edges, as objects."""
    return f"#part:{part}"


def columns_in(expr: ir.Expr, catalog: Catalog) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield every column that the expression of a worker reads: (its name there, variable and property)."""
    for node in walk_tree(expr):
        if isinstance(node, ir.Prop):
            yield (node.var, node.name), (node.var, node.name)
        elif isinstance(node, ir.Entity):
            var = node.var.removesuffix(_WHOLE)
            yield from (((node.var, name), (var, prop)) for name, prop in entity_fields(node, catalog))
        elif isinstance(node, ir.GroupValue):
            yield (ir.GROUP, str(node.index)), (ir.GROUP, str(node.index))


@dataclass(frozen=True)
class ScanPredicates:
    """Predicates on one variable, evaluated while its table is scanned."""

    var: str
    conditions: tuple[ir.Condition, ...]
    params: Mapping[str, Any]
    type_name: str | None = None
    """The type of the nodes, if the variable has several."""

    @cached_property
    def columns(self) -> list[str]:
        """The stored columns that the predicates read."""
        names = dict.fromkeys(prop.name for prop in properties_in(self.conditions))
        return [name for name in names if name != ir.TYPE]

    def mask(self, batch: pa.RecordBatch, job: Job) -> Mask:
        """Return the mask of rows that satisfy all predicates."""
        columns = {name: batch.column(name) for name in self.columns}
        if self.type_name is not None:
            columns[ir.TYPE] = pa.repeat(pa.scalar(self.type_name), batch.num_rows)
        rows = MemoryTable(columns, batch.num_rows)
        frame = BindingTable(batch.num_rows, {self.var: Binding(rows)})
        evaluator = _evaluator(job.catalog, self.params)
        mask: Mask = np.ones(batch.num_rows, bool)
        for condition in self.conditions:
            mask &= evaluator.mask(condition, frame)
        return mask


@dataclass(frozen=True)
class FrameColumn:
    """The DataFrame column of a property, and its stored type."""

    name: str
    type: pa.DataType


@dataclass(frozen=True)
class BatchStep:
    """Filter and projection on batches with several variables."""

    job: Job
    params: Mapping[str, Any]
    columns: Mapping[tuple[str, str], FrameColumn]
    conditions: tuple[ir.Condition, ...] = ()
    values: tuple[tuple[str, ir.Expr], ...] = ()
    """Name and expression of each new column."""

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Filter a batch and append the computed columns."""
        evaluator = _evaluator(self.job.catalog, self.params)
        frame = self._frame(batch)
        for condition in self.conditions:
            kept = np.flatnonzero(evaluator.mask(condition, frame))
            if len(kept) < batch.num_rows:
                batch = batch.take(pa.array(kept))
                frame = self._frame(batch)
        arrays, names = list(batch.columns), list(batch.schema.names)
        for name, expr in self.values:
            arrays.append(to_wire(one_array(evaluator.value(expr, frame))))
            names.append(name)
        return pa.record_batch(arrays, names=names)

    def _frame(self, batch: pa.RecordBatch) -> BindingTable:
        seen: dict[str, dict[str, pa.Array]] = {}
        for (var, prop), column in self.columns.items():
            seen.setdefault(var, {})[prop] = from_wire(batch.column(column.name), column.type)
        return BindingTable(
            batch.num_rows, {var: Binding(MemoryTable(columns, batch.num_rows)) for var, columns in seen.items()}
        )


class BatchStepTask:
    """A pickled `BatchStep`, applied by a Spark task to its batches."""

    def __init__(self, step: BatchStep) -> None:
        self._step = pickle.dumps(step)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Apply the step to every batch of the partition."""
        prepare_worker()
        step: Any = pickle.loads(self._step)  # noqa: S301 (made by the driver of this job)
        for batch in batches:
            yield step.apply(batch)


def _evaluator(catalog: Catalog, params: Mapping[str, Any]) -> Evaluator:
    return Evaluator(catalog, params, Searcher(catalog, params, None, {}), {})
