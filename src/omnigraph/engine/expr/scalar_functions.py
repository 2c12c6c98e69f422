"""Arithmetic and scalar functions over columns.

Integers are computed exactly, floats in 64 bits. An operation without a result in its type (division by zero, a number
outside 64 bits) returns null, so that a row outside the match cannot fail the query. For values that are stored
(`strict`) it raises an error instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.cache.table_cache import Mask
from omnigraph.errors import InputError
from omnigraph.query.plan import ir
from omnigraph.query.scalars import SCALARS, Columns
from omnigraph.schema.arrow import arrow_type
from omnigraph.types import INTEGER_RANGES, PropertyType

_I64_MAX = 2**63 - 1
_CERTAIN = 2.0**62
"""An operation on integers of 64 bits whose result in floats is below this magnitude has a result of 64 bits."""

_FLOATS: Mapping[str, Callable[[Any, Any], Any]] = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_INTEGERS: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": lambda a, b: abs(a) % abs(b) * (-1 if a < 0 else 1),
}


def arithmetic(op: str, left: pa.Array, right: pa.Array, type_: PropertyType, *, strict: bool = False) -> pa.Array:
    """Return `left op right` row by row as a column of `type_`."""
    known = _valid(left) & _valid(right)
    if type_.is_float:
        values, sound = _float_result(op, left, right)
    else:
        values, sound = _integer_result(op, left, right, known, type_)
    if strict and not sound[known].all():
        raise InputError(
            f"'{op}' has no {type_.scalar} result for some row: a division by zero, or a number beyond 64 bits",
            code="no_result",
        )
    return pa.array(values, arrow_type(type_), mask=~(known & sound))


def negative(values: pa.Array) -> pa.Array:
    """Return floats with the opposite sign."""
    return pc.negate(values.cast(pa.float64()))


def _float_result(op: str, left: pa.Array, right: pa.Array) -> tuple[np.ndarray[Any, Any], Mask]:
    a, b = (_filled(side, pa.float64()) for side in (left, right))
    with np.errstate(all="ignore"):
        values = _FLOATS[op](a, b)
    return values, np.isfinite(values)


def _integer_result(
    op: str, left: pa.Array, right: pa.Array, known: Mask, type_: PropertyType
) -> tuple[np.ndarray[Any, Any], Mask]:
    """Compute integers with numpy, and those whose result may need more than 64 bits with Python integers."""
    a, b = (_filled(side, side.type) for side in (left, right))
    sound = np.asarray(b != 0) if op == "%" else np.ones(len(a), bool)
    low, high = INTEGER_RANGES[type_.scalar]
    x, y = a.astype(np.int64), np.where(sound, b.astype(np.int64), 1)
    fits = _fits(a) & _fits(b)
    if op == "%":
        found = np.fmod(x, y)
    else:
        found = _INTEGERS[op](x, y)
        # Floats show that the result has 64 bits: their error is far below the distance to 2⁶³.
        fits &= np.abs(_FLOATS[op](x.astype(np.float64), y.astype(np.float64))) < _CERTAIN
    exact = known & sound & ~fits
    sound &= ~fits | ((found >= low) & (found <= min(high, _I64_MAX)))
    values = np.where(fits & sound, found, 0).astype(np.uint64 if type_.scalar == "U64" else np.int64)
    for row in np.flatnonzero(exact):
        value = _INTEGERS[op](int(a[row]), int(b[row]))
        sound[row] = low <= value <= high
        if sound[row]:
            values[row] = value
    return values, sound


def _fits(values: np.ndarray[Any, Any]) -> Mask:
    """Return which integers are within 64 bits with a sign."""
    return np.asarray(values <= _I64_MAX) if values.dtype == np.uint64 else np.ones(len(values), bool)


def _filled(values: pa.Array, type_: pa.DataType) -> np.ndarray[Any, Any]:
    """Return the values as a numpy array; null becomes zero."""
    filled = pc.fill_null(values.cast(type_, safe=False), pa.scalar(0, type_))
    result: np.ndarray[Any, Any] = filled.to_numpy(zero_copy_only=False)
    return result


def _valid(values: pa.Array) -> Mask:
    return np.asarray(values.is_valid().to_numpy(zero_copy_only=False), dtype=bool)


# -- functions ---------------------------------------------------------------------------------------


def function(
    call: ir.Function, arguments: Sequence[pa.Array], constants: Sequence[Any], *, strict: bool = False
) -> pa.Array:
    """Apply a scalar function row by row; `constants` contains the value of each constant argument."""
    scalar = SCALARS[call.name]
    arrays = [one_array(array) for array in arguments]
    found = scalar.compute(Columns(arrays, call, list(constants)))
    if strict and scalar.no_result is not None and found.null_count:
        known = np.all([_valid(array) for array in arrays], axis=0)
        if not _valid(found)[known].all():
            message = f"'{call.name}' has no result for some row: {scalar.no_result}"
            raise InputError(message, code="no_result")
    return found


def matching(column: pa.Array, pattern: str) -> pa.Array:
    """Return which texts contain a match of a regular expression (RE2)."""
    try:
        return pc.match_substring_regex(column, pattern=pattern)
    except pa.ArrowInvalid as error:
        reason = str(error).removeprefix("Invalid regular expression: ").strip()
        raise InputError(f"the pattern is not a valid regular expression (RE2): {reason}", code="bad_pattern") from None
