"""Evaluation of the `where` clause and of expressions of a statement.

A condition is split into conjuncts. Comparisons of a column with a constant are pushed down to the table as a filter,
and lists of ids as a lookup; the remaining conjuncts are evaluated on the rows that it returns, by the evaluator that
reads use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine import tuning
from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.cache.id_index import id_of_key, ids_of_keys
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.expr.evaluator import Evaluator, against_constant
from omnigraph.engine.expr.predicates import Test, make_test
from omnigraph.engine.search.searcher import Searcher
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.types import PropertyType

_ID = PropertyType("String")
_IDENTIFYING = ("id", "src", "dst")
"""Columns that identify a row or few rows."""


def bindings_of(rows: pa.Table) -> BindingTable:
    """Return rows as a binding table with one variable."""
    return BindingTable(rows.num_rows, {ir.ROW: Binding(MemoryTable.of(rows))})


@dataclass(frozen=True)
class IdList:
    """A condition that a column that identifies rows is one of some texts."""

    column: str
    values: tuple[str, ...]

    def mask(self, column: pa.ChunkedArray | pa.Array) -> pa.BooleanArray | pa.ChunkedArray:
        """Apply the condition to a column."""
        wanted = pa.array(self.values, pa.utf8())
        # Every call hashes the set, so all rows are tested in one call.
        return interruptible(lambda: pc.is_in(column, value_set=wanted), len(column) + len(wanted))


@dataclass(frozen=True)
class Lookup:
    """The rows with one of some texts in a column, and the tests that they must pass."""

    column: str
    values: tuple[str, ...]
    tests: tuple[Test | IdList, ...]


@dataclass(frozen=True)
class Selection:
    """A condition on the rows of one table."""

    tests: tuple[Test | IdList, ...]
    rest: tuple[ir.Condition, ...] = ()
    evaluator: Evaluator | None = None

    @property
    def columns(self) -> list[str]:
        """The columns that the conjuncts not pushed down refer to."""
        return list(dict.fromkeys(prop for condition in self.rest for prop in _columns_of(condition)))

    @property
    def is_never_true(self) -> bool:
        """True if no row satisfies the condition."""
        return any(test.always is False if isinstance(test, Test) else not test.values for test in self.tests)

    def sql(self) -> str | None:
        """Return the filter that is pushed down to the table if there is no lookup; None if there is none."""
        return " AND ".join(f"({test.sql()})" for test in self.tests if isinstance(test, Test)) or None

    def lookup(self) -> Lookup | None:
        """Return the lookup by a test that identifies rows, and the other tests; None if there is no such test.

        The id of a node comes first, then the end of an edge with the fewest values. Longer lists are not looked up.
        """
        found: list[Lookup] = []
        for test in self.tests:
            if isinstance(test, IdList):
                values = test.values
            elif test.column in _IDENTIFYING and test.type.is_text and test.op == "=" and test.always is None:
                values = (test.value,)
            else:
                continue
            if len(values) <= tuning.current.in_list_max:
                found.append(Lookup(test.column, values, tuple(other for other in self.tests if other is not test)))
        return min(found, key=lambda one: (one.column != "id", len(one.values)), default=None)

    def tests_after(self, lookup: Lookup | None) -> tuple[Test | IdList, ...]:
        """Return the tests of the rows that a lookup finds; without one, those that the filter of the table lacks."""
        return tuple(test for test in self.tests if isinstance(test, IdList)) if lookup is None else lookup.tests

    def id(self) -> str | None:
        """Return the only id that a test permits; None if there is no such test."""
        found = self.lookup()
        return found.values[0] if found is not None and found.column == "id" and len(found.values) == 1 else None

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
    only_key = key[0] if len(key) == 1 else "id"
    tests: list[Test | IdList] = []
    rest: list[ir.Condition] = []
    for condition in ir.conjuncts_of(where):
        test = _test(condition, evaluator, only_key) or _id_list(condition, evaluator, only_key)
        if test is None:
            rest.append(condition)
        else:
            tests.append(test)
    return Selection(tuple(tests), tuple(rest), evaluator)


def _test(condition: ir.Condition, evaluator: Evaluator, only_key: str) -> Test | None:
    """Return the test of a comparison with a constant; one by the only key column tests the id."""
    compared = against_constant(condition)
    if compared is None:
        return None
    prop, op, constant = compared
    test = make_test(prop.name, prop.type, op, evaluator.constant(constant))
    if test.column != only_key or test.op != "=" or test.always is not None:
        return test
    id_ = id_of_key(test.value, test.type)
    return test if id_ is None else Test("id", _ID, "=", id_)


def _id_list(condition: ir.Condition, evaluator: Evaluator, only_key: str) -> IdList | None:
    """Return the condition that the key, the id or an end of an edge is in a constant list; None for other ones."""
    if not isinstance(condition, ir.Compare) or condition.op != "contains_item":
        return None
    values, prop = condition.left, condition.right
    if not isinstance(values, ir.Const | ir.ParamRef) or not isinstance(prop, ir.Prop):
        return None
    if prop.name != only_key and (prop.name not in _IDENTIFYING or not prop.type.is_text):
        return None
    ids = ids_of_keys(evaluator.constant(values), prop.type)
    return None if ids is None else IdList("id" if prop.name == only_key else prop.name, tuple(ids))


def _columns_of(expr: ir.Expr) -> list[str]:
    found = [expr.name] if isinstance(expr, ir.Prop) else []
    return found + [name for part in ir.parts_of(expr) for name in _columns_of(part)]
