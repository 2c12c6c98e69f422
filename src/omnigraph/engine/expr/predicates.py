"""Comparisons with the same meaning in storage and in memory.

A condition on stored rows is pushed down to the table as SQL; on rows in memory it is a mask over Arrow columns. Both
use `Test`, in which the constant is already converted to the type of the column by mathematical value: `I32 = 2.7` is
never true, `I32 < 2.7` is `<= 2`, a number outside the range of the column decides the result, and for an F32 column
the constant is first rounded to 32 bits. A comparison with null is not true.
"""

from __future__ import annotations

import math
import struct
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.fast_dataclass import dataclass
from omnigraph.scalar_types.columns import comparable, stored_values
from omnigraph.schema.arrow import arrow_type, property_type
from omnigraph.storage.lance.tables import sql_text
from omnigraph.types import INTEGER_RANGES, PropertyType

Op = Literal["=", "!=", "<", "<=", ">", ">="]
_FLIPPED: dict[str, Op] = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_COMPUTE = {
    "=": pc.equal,
    "!=": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


NUMPY = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
"""The same comparisons for numpy arrays without nulls."""


@dataclass(frozen=True, slots=True)
class Test:
    """A comparison `column op value` with the value in the stored form of the column; `always` is a constant result."""

    column: str
    type: PropertyType
    op: Op
    value: Any
    always: bool | None = None
    """True: every row with a value passes. False: no row passes. None: values must be compared."""

    def sql(self) -> str:
        """Return the test as an SQL filter."""
        name = f"`{self.column}`"
        if self.always is not None:
            return f"{name} IS NOT NULL" if self.always else "false"
        return f"{name} {self.op} {sql_literal(self.value, self.type)}"

    def mask(self, column: pa.ChunkedArray | pa.Array) -> pa.BooleanArray | pa.ChunkedArray:
        """Apply the test to a column; the result is null where the value is null."""
        if self.always is not None:
            return pc.and_(pc.is_valid(column), self.always)
        value = pa.scalar(self.value, arrow_type(self.type))
        if pa.types.is_boolean(value.type):
            column, value = comparable(column), comparable(value)
        return _COMPUTE[self.op](column, value)

    def of_numbers(self, numbers: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.bool_]]:
        """Apply a test without constant result to numbers of the column without nulls."""
        passing: np.ndarray[Any, np.dtype[np.bool_]] = NUMPY[self.op](numbers, numbers.dtype.type(self.value))
        return passing


def make_test(column: str, type_: PropertyType, op: Op, value: Any) -> Test:
    """Convert a comparison with a constant in stored form, or null, to the type of the column."""
    if value is None:
        return Test(column, type_, op, None, always=False)
    if isinstance(value, float) and math.isnan(value):
        return Test(column, type_, op, None, always=op == "!=")
    if isinstance(value, float) and math.isinf(value):
        return _decided(column, type_, op, above=value > 0)
    if type_.is_integer:
        return _integer_test(column, type_, op, value)
    if type_.is_float:
        return _float_test(column, type_, op, value)
    return Test(column, type_, op, value)


def flipped(op: Op) -> Op:
    """Return the operator with its sides exchanged."""
    return _FLIPPED[op]


def _integer_test(column: str, type_: PropertyType, op: Op, value: int | float) -> Test:
    if isinstance(value, float):
        if not value.is_integer():
            floor = math.floor(value)
            if op in ("=", "!="):
                return Test(column, type_, op, None, always=op == "!=")
            # Between two integers: `<` becomes `<=` the floor, `>` becomes `>` the floor.
            return _integer_test(column, type_, "<=" if op in ("<", "<=") else ">", floor)
        value = int(value)
    low, high = INTEGER_RANGES[type_.scalar]
    if value > high or value < low:
        return _decided(column, type_, op, above=value > high)
    return Test(column, type_, op, value)


def _float_test(column: str, type_: PropertyType, op: Op, value: int | float) -> Test:
    if arrow_type(type_) == pa.float32():
        try:
            rounded = _round_f32(value)
        except OverflowError:
            return _decided(column, type_, op, above=value > 0)
        return Test(column, type_, op, rounded)
    if isinstance(value, int):
        try:
            exact = float(value)
        except OverflowError:
            return _decided(column, type_, op, above=value > 0)
        if int(exact) != value:
            # No float equals this integer; it is strictly between two floats.
            if op in ("=", "!="):
                return Test(column, type_, op, None, always=op == "!=")
            below = exact if exact < value else math.nextafter(exact, -math.inf)
            return Test(column, type_, "<=" if op in ("<", "<=") else ">", below)
        value = exact
    return Test(column, type_, op, value)


def _round_f32(value: int | float) -> float:
    """Return the nearest 32-bit float. A 64-bit integer is rounded once, not to a 64-bit float first."""
    if isinstance(value, int) and value.bit_length() <= 64:
        return float(np.array(value).astype(np.float32))
    return float(struct.unpack("<f", struct.pack("<f", float(value)))[0])


def _decided(column: str, type_: PropertyType, op: Op, *, above: bool) -> Test:
    """Return the test against a constant above or below the range of the column."""
    passes = op == "!=" or (op in ("<", "<=") if above else op in (">", ">="))
    return Test(column, type_, op, None, always=passes)


def sql_literal(value: Any, type_: PropertyType) -> str:
    """Return a stored value as an SQL literal of the type of its column."""
    literal = type_.kind.sql
    return sql_text(value) if literal is None else literal(value)


def sql_in(column: str, values: pa.Array) -> str:
    """Return an SQL filter for rows whose column equals one of some values of its type."""
    type_ = property_type(values.type)
    return f"`{column}` IN ({', '.join(sql_literal(value, type_) for value in stored_values(values))})"
