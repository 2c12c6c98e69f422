"""What looks at the single values of a group: `distinct`, `collect`; and what looks at groups as a whole: `having`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.data import Numbers
from omnigraph.engine.evaluate import Evaluator
from omnigraph.engine.frames import Bound, Frame
from omnigraph.engine.selection import RowsData
from omnigraph.query import ir
from omnigraph.schema.arrow import arrow_type


def over_values(call: ir.Aggregate, frame: Frame, groups: Numbers | None, count: int, evaluator: Evaluator) -> pa.Array:
    """An aggregate over the values of each group one by one, in their order; null is none of them."""
    codes = evaluator.codes(call.argument, frame).astype(np.int64)
    groups = np.zeros(frame.count, np.int64) if groups is None else groups
    rows = np.flatnonzero(codes >= 0)
    rows = rows[np.lexsort((codes[rows], groups[rows]))]
    if call.distinct:
        rows = rows[_first_of_runs(groups[rows], codes[rows])]
    elif frame.weight is not None:
        rows = np.repeat(rows, frame.weight[rows])
    sizes = np.bincount(groups[rows], minlength=count)[:count]
    if call.function == "count":
        return pa.array(sizes.astype(np.int64))
    values = evaluator.value(call.argument, frame.take(rows))
    if call.function == "collect":
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        item = arrow_type(call.type).value_type
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values.cast(item)).cast(arrow_type(call.type))
    ends = np.cumsum(sizes)
    empty = sizes == 0
    if call.function in ("min", "max"):
        chosen = ends - sizes if call.function == "min" else ends - 1
        return values.take(pa.array(chosen, mask=empty)).cast(arrow_type(call.type))
    floats = values.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    # Of no rows at all `bincount` makes integers.
    totals = np.bincount(groups[rows], weights=floats, minlength=count)[:count].astype(np.float64)
    return pa.array(totals / np.where(empty, 1, sizes) if call.function == "avg" else totals, mask=empty)


def _first_of_runs(groups: Numbers, codes: Numbers) -> np.ndarray[Any, Any]:
    """Which rows differ from the one before them; the rows are in order."""
    first = np.ones(len(groups), bool)
    first[1:] = (groups[1:] != groups[:-1]) | (codes[1:] != codes[:-1])
    return first


def judged(
    plan: ir.QueryIR, computed: Mapping[int, pa.Array], heads: Frame, count: int, evaluator: Evaluator
) -> Numbers:
    """The groups of which every condition behind `having` is true."""
    wanted = {int(name) for condition in plan.having for name in _columns_of(condition)}
    arrays = {
        str(index): computed[index] if index in computed else evaluator.value(plan.columns[index].expr, heads)
        for index in wanted
    }
    # A table needs a column to know how many rows it has.
    table = pa.table(arrays or {"": pa.nulls(count)})
    frame = Frame(count, {ir.GROUP: Bound(RowsData(table))})
    mask = np.ones(count, bool)
    for condition in plan.having:
        mask &= evaluator.mask(condition, frame)
    return np.flatnonzero(mask)


def _columns_of(expr: ir.Expr) -> list[str]:
    found = [expr.name] if isinstance(expr, ir.Prop) and expr.var == ir.GROUP else []
    return found + [name for part in ir.parts_of(expr) for name in _columns_of(part)]
