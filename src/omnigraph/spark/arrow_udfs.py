"""Expressions of a query, evaluated in the workers by the evaluator of the engine.

A batch stands for a table whose rows are numbered as they come; each variable of the query sees its own columns of
it. So there is one meaning of null, of mixed numbers, of words and of dates, whoever evaluates.
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
from omnigraph.spark.runner import use_one_thread


def nodes_of(tree: Any) -> Iterator[Any]:
    """A plan or an expression and everything it is made of."""
    yield tree
    if isinstance(tree, tuple):
        parts: Iterable[Any] = tree
    elif dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        parts = (getattr(tree, field.name) for field in dataclasses.fields(tree))
    else:
        return
    for part in parts:
        yield from nodes_of(part)


def props_of(expr: Any) -> Iterator[ir.Prop]:
    """Every property an expression reads, whatever it is made of."""
    return (node for node in nodes_of(expr) if isinstance(node, ir.Prop))


Some = TypeVar("Some")


def by_id(expr: Some) -> Some:
    """The expression with every node in it told by its id: inside an expression only whether it is there matters."""
    if isinstance(expr, ir.Entity):
        return cast(Some, ir.Prop(expr.var, "id", ir.NULL))
    if isinstance(expr, tuple):
        return cast(Some, tuple(by_id(part) for part in expr))
    if dataclasses.is_dataclass(expr) and not isinstance(expr, type):
        parts = {field.name: by_id(getattr(expr, field.name)) for field in dataclasses.fields(expr)}
        return cast(Some, dataclasses.replace(expr, **parts))
    return expr


def shown_in(expr: ir.Expr) -> Iterator[ir.Entity]:
    """The nodes an expression shows as a whole, alone or inside objects and lists."""
    if isinstance(expr, ir.Entity):
        yield expr
    elif isinstance(expr, ir.Object | ir.ListOf) or (isinstance(expr, ir.Aggregate) and expr.function == "collect"):
        for part in ir.parts_of(expr):
            yield from shown_in(part)


def in_workers(expr: ir.Expr) -> ir.Expr:
    """The expression as workers evaluate it: nodes that are shown stay, all others are told by their ids."""
    if isinstance(expr, ir.Object | ir.ListOf):
        return ir.with_parts(expr, in_workers)
    return expr if isinstance(expr, ir.Entity) else by_id(expr)


def seen_by(expr: ir.Expr) -> Iterator[tuple[str, str]]:
    """Variable and property of everything an expression looks at."""
    for node in nodes_of(expr):
        if isinstance(node, ir.Prop):
            yield node.var, node.name
        elif isinstance(node, ir.Entity):
            yield from ((node.var, name) for name, _ in node.type.fields)
        elif isinstance(node, ir.GroupValue):
            yield ir.GROUP, str(node.index)


@dataclass(frozen=True)
class Conditions:
    """Conditions on one variable, judged while its table is read."""

    var: str
    conditions: tuple[ir.Condition, ...]
    params: Mapping[str, Any]

    @cached_property
    def columns(self) -> list[str]:
        """The stored columns they look at."""
        return list(dict.fromkeys(prop.name for prop in props_of(self.conditions)))

    def mask(self, batch: pa.RecordBatch, job: Job) -> Mask:
        """Which rows pass all of them."""
        rows = MemoryTable({name: batch.column(name) for name in self.columns}, batch.num_rows)
        frame = BindingTable(batch.num_rows, {self.var: Binding(rows)})
        evaluator = _evaluator(job.catalog, self.params)
        mask: Mask = np.ones(batch.num_rows, bool)
        for condition in self.conditions:
            mask &= evaluator.mask(condition, frame)
        return mask


@dataclass(frozen=True)
class Column:
    """Where a frame has a property of a variable, and how it is stored."""

    name: str
    type: pa.DataType


@dataclass(frozen=True)
class Step:
    """On a frame of several variables: conditions that keep rows, and values that become columns."""

    job: Job
    params: Mapping[str, Any]
    columns: Mapping[tuple[str, str], Column]
    conditions: tuple[ir.Condition, ...] = ()
    values: tuple[tuple[str, ir.Expr], ...] = ()
    """Name of the new column → what it holds."""

    def apply(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What becomes of a batch."""
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


class StepTasks:
    """A step on its way to the workers."""

    def __init__(self, step: Step) -> None:
        self._step = pickle.dumps(step)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """What a task of Spark does."""
        use_one_thread()
        step: Any = pickle.loads(self._step)  # noqa: S301 (made by the driver of this very job)
        for batch in batches:
            yield step.apply(batch)


def _evaluator(catalog: Catalog, params: Mapping[str, Any]) -> Evaluator:
    return Evaluator(catalog, params, Searcher(catalog, params, None, {}), {})
