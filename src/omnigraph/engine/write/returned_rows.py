"""The rows that a mutation returns: those of its named statements, projected like the rows of a read.

Each row binds every named variable to one row of its statement: several variables form a Cartesian product, in the
order of the statements, each by ascending id.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.cancellation import Watch
from omnigraph.engine.exec.context import Limits
from omnigraph.engine.exec.projection import Projection
from omnigraph.engine.expr.evaluator import Evaluator
from omnigraph.engine.search.searcher import Searcher
from omnigraph.errors import LimitReached
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog


def returned_rows(
    plan: ir.MutationIR, named: Mapping[str, pa.Table], catalog: Catalog, params: Mapping[str, Any]
) -> pa.Table:
    """Return the rows of `return`; without `return`, a table without columns."""
    if not plan.columns:
        return pa.table({})
    types = {op.name: op.type_name for op in plan.ops if op.name is not None and op.type_name in catalog.nodes}
    evaluator = Evaluator(catalog, params, Searcher(catalog, params, None, types), types)
    return Projection(plan, _product(named), evaluator, Watch()).table()


def _product(named: Mapping[str, pa.Table]) -> BindingTable:
    counts = [rows.num_rows for rows in named.values()]
    total, most = prod(counts), Limits().rows_max
    if total > most:
        raise LimitReached(
            f"the change would return {total:,} rows; the limit is {most:,}",
            resource="rows",
            limit=most,
            actual=total,
            hint="return the rows of fewer statements: each combination of their rows is one",
        )
    bound: dict[str, Binding] = {}
    for at, (name, rows) in enumerate(named.items()):
        order = pc.sort_indices(rows["id"]).to_numpy()
        numbers = np.tile(np.repeat(order, prod(counts[at + 1 :])), prod(counts[:at])).astype(np.int64)
        bound[name] = Binding(MemoryTable.of(rows), numbers)
    return BindingTable(total, bound)
