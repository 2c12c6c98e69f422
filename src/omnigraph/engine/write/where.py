"""Evaluation of the `where` clause and of expressions of a statement.

A condition is split into conjuncts. Comparisons of a column with a constant are pushed down to the table as a filter;
the remaining conjuncts are evaluated on the rows that it returns, by the evaluator that reads use.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.expr.evaluator import Evaluator, against_constant
from omnigraph.engine.expr.predicates import Test, make_test
from omnigraph.engine.search.searcher import Searcher
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog


def bindings_of(rows: pa.Table) -> BindingTable:
    """Return rows as a binding table with one variable."""
    return BindingTable(rows.num_rows, {ir.ROW: Binding(MemoryTable.of(rows))})


@dataclass(frozen=True)
class Selection:
    """A condition on the rows of one table."""

    tests: tuple[Test, ...]
    rest: tuple[ir.Condition, ...] = ()
    evaluator: Evaluator | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that the conjuncts not pushed down refer to."""
        return list(dict.fromkeys(prop for condition in self.rest for prop in _columns_of(condition)))

    def sql(self) -> str | None:
        """Return the filter that is pushed down to the table; None if there is none."""
        return " AND ".join(f"({test.sql()})" for test in self.tests) or None

    def of_stored(self, rows: pa.Table) -> pa.Table:
        """Filter rows that already passed the pushed-down filter."""
        for condition in self.rest:
            assert self.evaluator is not None
            rows = rows.filter(pa.array(self.evaluator.mask(condition, bindings_of(rows))))
        return rows

    def of_all(self, rows: pa.Table) -> pa.Table:
        """Filter rows by all conjuncts."""
        for test in self.tests:
            rows = rows.filter(test.mask(rows[test.column]))
        return self.of_stored(rows)


def row_evaluator(catalog: Catalog, params: Mapping[str, Any], *, strict: bool = False) -> Evaluator:
    """Return an evaluator of expressions over the rows of a statement, without search functions."""
    return Evaluator(catalog, params, Searcher(catalog, params, None, {}), {}, strict=strict)


def select(where: ir.Condition, evaluator: Evaluator) -> Selection:
    """Split a condition into conjuncts for the table and conjuncts for the evaluator."""
    tests: list[Test] = []
    rest: list[ir.Condition] = []
    for condition in ir.conjuncts_of(where):
        test = _test(condition, evaluator)
        if test is None:
            rest.append(condition)
        else:
            tests.append(test)
    return Selection(tuple(tests), tuple(rest), evaluator)


def _test(condition: ir.Condition, evaluator: Evaluator) -> Test | None:
    compared = against_constant(condition)
    if compared is None:
        return None
    prop, op, constant = compared
    return make_test(prop.name, prop.type, op, evaluator.constant(constant))


def _columns_of(expr: ir.Expr) -> list[str]:
    found = [expr.name] if isinstance(expr, ir.Prop) else []
    return found + [name for part in ir.parts_of(expr) for name in _columns_of(part)]
