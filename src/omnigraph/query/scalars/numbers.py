"""Scalar functions of numbers."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_UP, Context, Decimal, Overflow
from typing import Any

from omnigraph.query.plan import ir
from omnigraph.query.scalars.arrays import by_row, constant, filled, np, pa, pc, stored_type, valid
from omnigraph.query.scalars.signature import INTEGER, NUMBER, VARIES, Columns, Scalar, same_number
from omnigraph.types import INTEGER_RANGES

_EXACT = Context(prec=2_000, Emin=-999_999, Emax=999_999, traps=[Overflow])
_DIGITS_MAX = 400
"""Rounding to more digits on either side leaves an F64 unchanged, or gives zero."""
_BEYOND = "a number beyond 64 bits"


def _absolute(columns: Columns) -> Any:
    (array,) = columns.arrays
    if columns.call.type.is_float:
        return pc.abs(array.cast(pa.float64()))
    wide = array.cast(stored_type(columns.call.type))
    if columns.call.type.scalar == "U64":
        return wide
    values = filled(wide)
    in_range = values != INTEGER_RANGES["I64"][0]
    return pa.array(np.abs(np.where(in_range, values, 0)), mask=~(valid(wide) & in_range))


def _sign(columns: Columns) -> Any:
    return pc.sign(columns.arrays[0]).cast(pa.int64(), safe=False)


def _whole(name: str) -> Callable[[Columns], Any]:
    """Return `floor` or `ceil`: integers are unchanged, and -0.0 becomes 0.0."""

    def compute(columns: Columns) -> Any:
        (array,) = columns.arrays
        if not columns.call.type.is_float:
            return array.cast(stored_type(columns.call.type))
        return pc.add(pc.call_function(name, [array.cast(pa.float64())]), 0.0)

    return compute


def _square_root(columns: Columns) -> Any:
    array = columns.arrays[0].cast(pa.float64(), safe=False)
    values = filled(array)
    in_range = values >= 0
    return pa.array(np.sqrt(np.where(in_range, values, 0.0)), mask=~(valid(array) & in_range))


def _round(columns: Columns) -> Any:
    digits = constant(columns, 1) if len(columns.arrays) == 2 else 0
    if not columns.call.type.is_float:
        if digits is not VARIES and digits >= 0:
            return columns.arrays[0].cast(stored_type(columns.call.type))
        return by_row(columns, lambda value, digits=0: _round_integer(value, digits, columns.call.type.scalar))
    array = columns.arrays[0].cast(pa.float64(), safe=False)
    if digits is VARIES:
        return by_row(Columns([array, columns.arrays[1]], columns.call), round_float)
    values = filled(array)
    found = values.copy()
    if abs(digits) > 22:
        sure = np.zeros(len(values), bool)
    else:
        # The power of ten and the rounded number are exact, so that only the last operation rounds. Scaling is not
        # exact for numbers close to a half; decimal arithmetic rounds these.
        power = 10.0 ** abs(digits)
        with np.errstate(all="ignore"):
            scaled = values * power if digits >= 0 else values / power
            nearest = np.floor(np.abs(scaled) + 0.5)
            tie = np.abs(np.abs(scaled) - np.floor(np.abs(scaled)) - 0.5)
            sure = (np.abs(scaled) < 2.0**40) & (tie > 1e-3)
            whole = np.copysign(nearest, scaled)
            found = np.where(sure, whole / power if digits >= 0 else whole * power, values)
    for row in np.flatnonzero(valid(array) & ~sure):
        found[row] = round_float(float(values[row]), digits)
    return pa.array(found + 0.0, mask=~(valid(array) & np.isfinite(found)))


def round_float(value: float, digits: int) -> float | None:
    """Return the F64 nearest to the number rounded to that many decimal digits, halves away from zero."""
    if value in (float("inf"), float("-inf")) or value != value:
        return None
    digits = max(-_DIGITS_MAX, min(_DIGITS_MAX, digits))
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-digits, _EXACT), ROUND_HALF_UP, _EXACT)
    try:
        return float(rounded) + 0.0
    except OverflowError:
        return None


def _round_integer(value: int, digits: int, type_: str) -> int | None:
    if digits >= 0:
        return value
    power = 10 ** min(-digits, 30)
    quotient, rest = divmod(abs(value), power)
    rounded = (quotient + (2 * rest >= power)) * power * (-1 if value < 0 else 1)
    low, high = INTEGER_RANGES["U64" if type_ == "U64" else "I64"]
    return rounded if low <= rounded <= high else None


NUMBERS = (
    Scalar(
        "abs", "abs($x.number)", (NUMBER,), same_number, _absolute,
        "the number without its sign", no_result=_BEYOND,
    ),
    Scalar("sign", "sign($x.number)", (NUMBER,), ir.I64, _sign, "-1, 0 or 1"),
    Scalar("floor", "floor($x.number)", (NUMBER,), same_number, _whole("floor"), "the greatest integer not above it"),
    Scalar("ceil", "ceil($x.number)", (NUMBER,), same_number, _whole("ceil"), "the least integer not below it"),
    Scalar(
        "round", "round($x.number) or round($x.number, digits)", (NUMBER, INTEGER), same_number, _round,
        "the nearest number with that many decimal digits, halves away from zero", least=1, no_result=_BEYOND,
    ),
    Scalar(
        "sqrt", "sqrt($x.number)", (NUMBER,), ir.F64, _square_root,
        "the square root", no_result="a number below 0",
    ),
)  # fmt: skip
