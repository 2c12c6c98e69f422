"""Evaluation of expressions: Arrow columns for values, masks for conditions, sortable codes for keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, assert_never, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import concatenate, one_array
from omnigraph.engine import tuning
from omnigraph.engine.cache.columns import ColumnSource
from omnigraph.engine.cache.table_cache import Mask, Numbers, TableData
from omnigraph.engine.cache.union_table import column_of
from omnigraph.engine.cache.visibility import VisibleTable
from omnigraph.engine.exec.binding_table import Binding, BindingTable
from omnigraph.engine.exec.cancellation import paced
from omnigraph.engine.exec.native_calls import in_batches, interruptible
from omnigraph.engine.expr import three_valued
from omnigraph.engine.expr.function_batches import COLUMN_BYTES_MAX, call_in_batches, repeated
from omnigraph.engine.expr.predicates import NUMPY, Op, flipped, make_test
from omnigraph.engine.expr.scalar_functions import arithmetic, function, matching, negative
from omnigraph.engine.expr.sort_keys import column_ranks, id_ranks_of, one_zero, ranks_of
from omnigraph.engine.expr.streamed_masks import batches_of, is_streamed, streamed_mask
from omnigraph.engine.expr.structs import build_nested, codes_of
from omnigraph.engine.expr.substring import contains_text
from omnigraph.engine.paths.path_table import path_values
from omnigraph.engine.search.searcher import Searcher
from omnigraph.query.plan import ir
from omnigraph.query.scalars.signature import VARIES
from omnigraph.scalar_types.columns import comparable, stored_array, stored_values
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog
from omnigraph.types import PropertyType

_COLUMNS = (ir.Prop, ir.Arithmetic, ir.Negative, ir.Function)
"""Expressions with a value in each row. A tuple is tested faster than a union."""
_ORDERED = ("=", "!=", "<", "<=", ">", ">=")


class Evaluator:
    """Evaluates the expressions of one execution."""

    def __init__(
        self,
        catalog: Catalog,
        params: Mapping[str, Any],
        searcher: Searcher,
        types: Mapping[str, str],
        *,
        strict: bool = False,
        bytes_max: int = COLUMN_BYTES_MAX,
    ) -> None:
        self.types = types
        """Variable → node type."""
        self.strict = strict
        """An operation without a result raises an error instead of returning null; used for values that are stored."""
        self.bytes_max = bytes_max
        """Largest size of a computed column in bytes."""
        self.catalog = catalog
        self.params = params
        self.searcher = searcher

    # -- conditions ------------------------------------------------------------------------------

    def mask(self, condition: ir.Condition, bindings: BindingTable) -> Mask:
        """Return a mask of the rows where the condition is true."""
        variables = list(dict.fromkeys(ir.variables_of(condition)))
        if len(variables) == 1:
            bound = bindings.bound[variables[0]]
            data = bound.data
            stored = unmasked(data, condition)
            if stored is not None and is_streamed(condition, stored, bound.count):
                passing = streamed_mask(self, condition, variables[0], stored)
                return passing if bound.whole else passing[bound.numbers]
            if not bound.whole and bindings.count >= bound.data.row_count:
                # Evaluate every entity once, however often it occurs.
                every = Binding.every(bound.data)
                return self._mask(condition, BindingTable(every.count, {variables[0]: every}))[bound.numbers]
        elif variables:
            batches = batches_of(condition, bindings)
            if batches is not None:
                return np.concatenate([self._mask(condition, batch) for batch in batches])
        return self._mask(condition, bindings)

    def _mask(self, condition: ir.Condition, bindings: BindingTable) -> Mask:
        if isinstance(condition, ir.TextMatch):
            return self.searcher.matches(condition, bindings.bound[condition.prop.var])
        if not isinstance(condition, ir.Compare):
            return three_valued.where_true(self, condition, bindings)
        result = self._compare(condition, bindings)
        if isinstance(result, np.ndarray):
            return result
        if isinstance(result, pa.Array | pa.ChunkedArray):
            filled = pc.fill_null(result, False) if result.null_count else result
            return np.asarray(filled.to_numpy(zero_copy_only=False), dtype=bool)
        return np.full(bindings.count, bool(result))

    def _compare(self, compare: ir.Compare, bindings: BindingTable) -> pa.Array | Mask | bool:
        left, right, op = compare.left, compare.right, compare.op
        if op in _ORDERED and isinstance(left, ir.CONSTANTS) and not isinstance(right, ir.CONSTANTS):
            left, right, op = right, left, flipped(cast(Op, op))
        if isinstance(right, ir.CONSTANTS) and isinstance(left, _COLUMNS):
            return self._compare_with_constant(left, op, self.constant(right), bindings)
        if isinstance(right, ir.Computed) and isinstance(left, _COLUMNS) and not any(ir.variables_of(right)):
            return self._compare_with_constant(left, op, stored_values(self.value(right, BindingTable()))[0], bindings)
        if op == "contains_item" and isinstance(left, ir.CONSTANTS) and isinstance(right, _COLUMNS):
            return self._is_in(right, self.constant(left), bindings)
        if op == "matches":  # of a constant text with a pattern, which is always a constant
            pattern = self.constant(cast(ir.Const, right))
            found = matching(self.value(left, BindingTable()), pattern) if pattern is not None else None
            return bool(found is not None and found[0].as_py())
        a, b = self.value(left, bindings), self.value(right, bindings)
        if _is_f32(left) or _is_f32(right):
            a, b = _rounded(a), _rounded(b)
        return in_batches(partial(_compare_columns, op), a, b)

    def _compare_with_constant(
        self, prop: ir.Prop | ir.Computed, op: str, value: Any, bindings: BindingTable
    ) -> pa.Array | Mask | bool:
        if value is None:
            return False
        quick = self._compare_numbers(prop, op, value, bindings) if isinstance(prop, ir.Prop) else None
        if quick is not None:
            return quick
        column = self.value(prop, bindings)
        return in_batches(_test_of(prop.type, op, value), column)

    def _compare_numbers(self, prop: ir.Prop, op: str, value: Any, bindings: BindingTable) -> Mask | None:
        """Compare plain numbers, or the dictionary codes of texts; None if the column has neither."""
        bound = bindings.bound[prop.var]
        if op in NUMPY and not prop.type.is_list:
            if prop.type.is_integer or prop.type.is_float:
                test = make_test(prop.name, prop.type, cast(Op, op), value)
                numbers = bound.plain(prop.name) if test.always is None else None
                if numbers is not None:
                    return test.of_numbers(numbers)
            elif op in ("=", "!=") and prop.type.is_text:
                data = bound.data
                if bound.count >= tuning.current.text_codes_rows_min:
                    codes = data.codes(prop.name, bound.count)
                else:
                    codes = data.known_codes(prop.name) if isinstance(data, TableData) else None
                if codes is not None:
                    rows = codes.rows if bound.whole else codes.rows[bound.numbers]
                    code = codes.of.get(value, -2)
                    return cast(Mask, rows == code) if op == "=" else cast(Mask, (rows != code) & (rows >= 0))
        return None

    def _is_in(self, prop: ir.Prop | ir.Computed, values: list[Any] | None, bindings: BindingTable) -> pa.Array | bool:
        """Test whether a property equals one of some constants, each converted to the type of the column."""
        tests = [make_test("value", prop.type, "=", value) for value in paced(values or ())]
        wanted = one_zero(stored_array([test.value for test in tests if test.always is None], arrow_type(prop.type)))
        column = one_zero(self.value(prop, bindings))
        # Every call hashes the set, so all rows are tested in one call.
        return interruptible(lambda: pc.is_in(column, value_set=wanted), len(column) + len(wanted))

    # -- values ----------------------------------------------------------------------------------

    def constant(self, expr: ir.Const | ir.ParamRef) -> Any:
        """Return the value of a constant or parameter in stored form."""
        return self.params[expr.name] if isinstance(expr, ir.ParamRef) else expr.value

    def value(self, expr: ir.Expr, bindings: BindingTable) -> pa.Array:
        """Return the value of an expression in every row."""
        match expr:
            case ir.Prop():
                return bindings.bound[expr.var].column(expr.name)
            case ir.GroupValue():
                return bindings.bound[ir.GROUP].column(str(expr.index))
            case ir.Const() | ir.ParamRef():
                constant = stored_array([self.constant(expr)], arrow_type(expr.type))
                return repeated(constant, bindings.count, self.bytes_max)
            case ir.TextMatch() | ir.Compare() | ir.Logic() | ir.Not() | ir.IsNull():
                return self._truth(expr, bindings)
            case ir.Arithmetic() | ir.Negative() | ir.Function():
                batches = batches_of(expr, bindings)
                if batches is not None:
                    return concatenate([self.computed(expr, batch) for batch in batches])
                return self.computed(expr, bindings)
            case ir.Nearest() | ir.Bm25() | ir.Rrf() | ir.Why():
                return self._rank_value(expr, bindings)
            case ir.Entity() | ir.PathPart() | ir.Object() | ir.ListOf():
                return self._nested_value(expr, bindings)
            case ir.Aggregate() | ir.ColumnRef():
                raise AssertionError(f"{type(expr).__name__} has no value per row")
            case _:
                assert_never(expr)

    def _truth(self, expr: ir.Condition, bindings: BindingTable) -> pa.Array:
        if isinstance(expr, ir.TextMatch):
            return pa.array(self.mask(expr, bindings))
        return three_valued.truth(self, expr, bindings)

    def _rank_value(self, expr: ir.Nearest | ir.Bm25 | ir.Rrf | ir.Why, bindings: BindingTable) -> pa.Array:
        match expr:
            case ir.Nearest():
                distances, known = self.searcher.distances(expr, bindings.bound[expr.prop.var])
                return pa.array(distances, mask=~known)
            case ir.Bm25():
                return pa.array(self.searcher.scores(expr, bindings.bound[expr.prop.var]))
            case ir.Rrf():
                # A fused score depends on every candidate, so it is computed once, when the rows are ordered.
                return bindings.bound[ir.RANKED].column("score")
            case ir.Why():
                return bindings.bound[ir.RANKED].column("why")
            case _:
                assert_never(expr)

    def _nested_value(self, expr: ir.Entity | ir.PathPart | ir.Object | ir.ListOf, bindings: BindingTable) -> pa.Array:
        match expr:
            case ir.Entity():
                return self.entity(expr, bindings)
            case ir.PathPart():
                return path_values(expr, bindings.bound[expr.var])
            case ir.Object() | ir.ListOf():
                return build_nested(expr, lambda part: self.value(part, bindings))
            case _:
                assert_never(expr)

    def computed(self, expr: ir.Computed, bindings: BindingTable) -> pa.Array:
        """Return the result of arithmetic or a scalar function in every row."""
        if isinstance(expr, ir.Arithmetic):
            left, right = self.value(expr.left, bindings), self.value(expr.right, bindings)
            compute = partial(arithmetic, expr.op, type_=expr.type, strict=self.strict)
            return in_batches(compute, left, right)
        if isinstance(expr, ir.Negative):
            value = self.value(expr.value, bindings)
            if expr.type.is_float:
                return negative(value)
            zero = pa.array(np.zeros(bindings.count, np.int64))
            return arithmetic("-", zero, value, expr.type, strict=self.strict)
        if expr.name == "type":
            id_, name = (self.value(argument, bindings) for argument in expr.arguments)
            return pc.if_else(id_.is_valid(), name, pa.scalar(None, name.type))
        if expr.name == "case":
            return self._case(expr, bindings)
        if not expr.arguments:
            return function(expr, [], [], strict=self.strict)
        fixed = [isinstance(argument, ir.Const | ir.ParamRef) for argument in expr.arguments]
        constants = [self.constant(a) if isinstance(a, ir.Const | ir.ParamRef) else VARIES for a in expr.arguments]
        columns = [
            stored_array([self.constant(a)], arrow_type(a.type))
            if isinstance(a, ir.Const | ir.ParamRef)
            else self.value(a, bindings)
            for a in expr.arguments
        ]
        call = partial(self._call, expr, constants)
        return call_in_batches(expr.name, call, columns, fixed, bindings.count, self.bytes_max)

    def _call(self, expr: ir.Function, constants: list[Any], *arrays: pa.Array) -> pa.Array:
        return function(expr, arrays, constants, strict=self.strict)

    def _case(self, expr: ir.Function, bindings: BindingTable) -> pa.Array:
        """Evaluate `case`: a row gets the value of its first true condition; its other values are not computed."""
        wanted = arrow_type(expr.type)
        *pairs, otherwise = expr.arguments
        left = np.arange(bindings.count)
        positions, branches = [left[:0]], [pa.nulls(0, wanted)]
        for test, value in zip(pairs[::2], pairs[1::2], strict=True):
            true = self.mask(cast(ir.Condition, test), bindings.take(left, unique=True))
            positions.append(left[true])
            branches.append(self._branch(value, bindings, left[true], wanted))
            left = left[~true]
        positions.append(left)
        branches.append(self._branch(otherwise, bindings, left, wanted))
        place = np.empty(bindings.count, np.int64)
        place[np.concatenate(positions)] = np.arange(bindings.count)
        return concatenate(branches).take(pa.array(place))

    def _branch(self, value: ir.Expr, bindings: BindingTable, rows: Numbers, wanted: pa.DataType) -> pa.Array:
        if not len(rows) or (isinstance(value, ir.Const) and value.value is None):
            return pa.nulls(len(rows), wanted)
        found = self.value(value, bindings.take(rows, unique=True)).cast(wanted, safe=False)
        return one_array(found)

    def entity(self, expr: ir.Entity, bindings: BindingTable) -> pa.Array:
        """Return nodes as structs of their id and properties, without Blobs."""
        bound = bindings.bound[expr.var]
        names = [name for name, _ in expr.type.fields]
        stored = [column_of(bound.data, name) for name in names]
        bound.expect(stored)
        columns = [bound.column(name) for name in stored]
        missing = columns[0].is_null() if columns[0].null_count else None  # absent nodes of an optional block
        return pa.StructArray.from_arrays(columns, names=names, mask=missing)

    def floats(self, expr: ir.Expr, bindings: BindingTable) -> np.ndarray[Any, Any] | None:
        """Return the value of an expression in every row as floats; None if it is not a number or may be null."""
        values = bindings.bound[expr.var].plain(expr.name) if isinstance(expr, ir.Prop) else None
        return None if values is None else values.astype(np.float64, copy=False)

    # -- keys ------------------------------------------------------------------------------------

    def groups(self, expr: ir.Expr, bindings: BindingTable) -> np.ndarray[Any, Any]:
        """Return grouping codes: equal for equal values, in no particular order; null is -1."""
        if isinstance(expr, ir.Entity):
            return bindings.bound[expr.var].numbers
        if isinstance(expr, ir.Prop):
            bound = bindings.bound[expr.var]
            type_name = self.types.get(expr.var)
            if type_name is not None and self.catalog.node(type_name).id_column == expr.name:
                return bound.numbers  # keys are unique and not null
            if expr.type.is_text and not expr.type.is_list:
                coded = bound.data.codes(expr.name, bound.count)
                if coded is not None:
                    return coded.rows if bound.whole else coded.rows[bound.numbers]
        return self.codes(expr, bindings)

    def codes(self, expr: ir.Expr, bindings: BindingTable) -> np.ndarray[Any, Any]:
        """Return sort codes: in the order of the values, equal for equal values; null is -1 and sorts first."""
        if isinstance(expr, ir.Entity):
            bound = bindings.bound[expr.var]
            return id_ranks_of(bound)
        if isinstance(expr, ir.Object | ir.ListOf):
            return codes_of(expr, lambda part: self.value(part, bindings), lambda part: self.codes(part, bindings))
        if isinstance(expr, ir.Prop):
            bound = bindings.bound[expr.var]
            if bindings.count * 4 > bound.data.row_count:
                name = expr.name
                ranks = bound.data.derived(f"ranks:{name}", lambda: column_ranks(bound.data, name))
                return _values_of_rows(ranks, bound)
        return ranks_of(self.value(expr, bindings))


def unmasked(data: ColumnSource, condition: ir.Condition) -> TableData | None:
    """Return the stored table if it has the values of a condition as they are visible; else None."""
    if isinstance(data, VisibleTable):
        names = {part.name for part in ir.walk(condition) if isinstance(part, ir.Prop)}
        return None if any(map(data.is_guarded, names)) else data.base
    return data if isinstance(data, TableData) else None


def _test_of(type_: PropertyType, op: str, value: Any) -> Callable[[pa.Array], pa.Array]:
    """Return the comparison of a column with a constant that is not null."""
    match op:
        case "ends_with":
            return partial(pc.ends_with, pattern=value)
        case "matches":
            return lambda column: matching(column, value)
        case "contains_text":
            return partial(contains_text, pattern=value)
        case "starts_with":
            return partial(pc.starts_with, pattern=value)
        case "contains_item":
            return lambda column: _lists_contain(column, type_.item, value)
        case _:
            return make_test("value", type_, cast(Op, op), value).mask


def against_constant(condition: ir.Expr) -> tuple[ir.Prop, Op, ir.Const | ir.ParamRef] | None:
    """Return (property, operator, constant) if a condition compares a property with a constant; else None."""
    if not isinstance(condition, ir.Compare) or condition.op not in _ORDERED:
        return None
    left, right, op = condition.left, condition.right, cast(Op, condition.op)
    if isinstance(left, ir.Const | ir.ParamRef):
        left, right, op = right, left, flipped(op)
    return (left, op, right) if isinstance(left, ir.Prop) and isinstance(right, ir.Const | ir.ParamRef) else None


def _values_of_rows(values: Numbers, bound: Binding) -> Numbers:
    """Select the values of the rows of a variable from those of all rows of its table."""
    return values if bound.whole else values[bound.numbers]


def _lists_contain(lists: pa.Array, item: PropertyType, value: Any) -> pa.Array:
    """Return which lists contain a value; null for a null list."""
    test = make_test("item", item, "=", value)
    lists = one_array(lists)
    hits = pc.fill_null(test.mask(pc.list_flatten(lists)), False)
    parents = pc.list_parent_indices(lists).filter(hits)
    found = np.zeros(len(lists), bool)
    found[parents.to_numpy(zero_copy_only=False)] = True
    return pa.array(found, mask=pc.is_null(lists).to_numpy(zero_copy_only=False))


def _compare_columns(op: str, a: pa.Array, b: pa.Array) -> pa.Array:
    """Compare two columns."""
    if op in ("contains_text", "starts_with", "ends_with", "contains_item") or _needs_python(a.type, b.type):
        return pa.array(
            [_compare_values(op, x, y) for x, y in zip(stored_values(a), stored_values(b), strict=True)], pa.bool_()
        )
    if pa.types.is_boolean(a.type):
        a, b = comparable(a), comparable(b)
    compute = {"=": "equal", "!=": "not_equal", "<": "less", "<=": "less_equal", ">": "greater", ">=": "greater_equal"}
    return pc.call_function(compute[op], [a, b])


def _needs_python(a: pa.DataType, b: pa.DataType) -> bool:
    """Return True if Arrow would round one of these numbers to compare them."""
    mixed = pa.types.is_integer(a) != pa.types.is_integer(b) and pa.types.is_floating(a) != pa.types.is_floating(b)
    return mixed or {a, b} == {pa.uint64(), pa.int64()} or (pa.uint64() in (a, b) and pa.int32() in (a, b))


def _is_f32(expr: ir.Expr) -> bool:
    """Return True for an F32 column or value: the other side of a comparison is rounded to 32 bits."""
    return isinstance(expr, ir.Prop | ir.Function) and expr.type.scalar == "F32"


def _rounded(values: pa.Array) -> pa.Array:
    """Return numbers, or lists of numbers, as 32-bit floats."""
    return values.cast(pa.list_(pa.float32()) if pa.types.is_list(values.type) else pa.float32(), safe=False)


def _compare_values(op: str, x: Any, y: Any) -> bool | None:
    if x is None or y is None:
        return None
    match op:
        case "contains_text" | "contains_item":
            return y in x
        case "starts_with":
            return bool(x.startswith(y))
        case "ends_with":
            return bool(x.endswith(y))
        case "=":
            return bool(x == y)
        case "!=":
            return bool(x != y)
        case "<":
            return bool(x < y)
        case "<=":
            return bool(x <= y)
        case ">":
            return bool(x > y)
        case _:
            return bool(x >= y)
