"""Evaluation of the `where` clause and of expressions of a statement.

A condition is split into conjuncts. Comparisons of a column with a constant are pushed down to the table as a filter;
the remaining conjuncts are evaluated on the rows that it returns, by the evaluator that reads use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.id_index import id_of_key
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.expr.evaluator import Evaluator, against_constant
from omnigraph.engine.expr.predicates import Test, make_test
from omnigraph.engine.search.searcher import Searcher
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.types import PropertyType

_ID = PropertyType("String")
_IDENTIFYING = ("id", "src", "dst")
"""Columns that identify a row or few rows, the most selective first."""


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

    def lookup(self) -> tuple[str, str, tuple[Test, ...]] | None:
        """Return the column and the value of a test that identifies rows, and the other tests; None if there is none.

        The id of a node comes first, then the ends of an edge.
        """
        for column in _IDENTIFYING:
            for test in self.tests:
                if test.column == column and test.op == "=" and test.always is None:
                    return column, test.value, tuple(other for other in self.tests if other is not test)
        return None

    def id(self) -> str | None:
        """Return the id that a test requires; None if there is no such test."""
        found = self.lookup()
        return found[1] if found is not None and found[0] == "id" else None

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


def select(where: ir.Condition, evaluator: Evaluator, key: Sequence[str] = ()) -> Selection:
    """Split a condition into conjuncts for the table and conjuncts for the evaluator; `key` is the key of the table."""
    tests: list[Test] = []
    rest: list[ir.Condition] = []
    for condition in ir.conjuncts_of(where):
        test = _test(condition, evaluator)
        if test is None:
            rest.append(condition)
        else:
            tests.append(_by_id(test) if len(key) == 1 and test.column == key[0] else test)
    return Selection(tuple(tests), tuple(rest), evaluator)


def _by_id(test: Test) -> Test:
    """Return the test on `id` with the same result as a test on the only key column, if there is one."""
    if test.op != "=" or test.always is not None:
        return test
    id_ = id_of_key(test.value, test.type)
    return test if id_ is None else Test("id", _ID, "=", id_)


def _test(condition: ir.Condition, evaluator: Evaluator) -> Test | None:
    compared = against_constant(condition)
    if compared is None:
        return None
    prop, op, constant = compared
    return make_test(prop.name, prop.type, op, evaluator.constant(constant))


def _columns_of(expr: ir.Expr) -> list[str]:
    found = [expr.name] if isinstance(expr, ir.Prop) else []
    return found + [name for part in ir.parts_of(expr) for name in _columns_of(part)]
