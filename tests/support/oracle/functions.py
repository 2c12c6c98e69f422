"""Scalar functions as the reference describes them, one value at a time, in plain Python.

Dates are days since 1970-01-01 and instants milliseconds, so a function receives the scalar type of each argument.
"""

from __future__ import annotations

import calendar
import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

import numpy as np

from omnigraph.query.syntax import ast

_FLOATS = ("F32", "F64")
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86_400_000
_PARTS = (
    "year",
    "quarter",
    "month",
    "week",
    "day",
    "weekday",
    "day_of_year",
    "hour",
    "minute",
    "second",
    "millisecond",
)
_SAME_NUMBER = ("abs", "floor", "ceil", "round")
_SAME = ("date_add", "date_trunc", "slice", "head", "last", "item")
_TEXT = ("lower", "upper", "trim", "ltrim", "rtrim", "substring", "replace", "split", "reverse", "to_string")
_I64 = ("length", "sign", "date_diff", "to_integer", *_PARTS)
_GIVEN = {"sqrt": "F64", "to_float": "F64", "to_date": "Date", "to_datetime": "DateTime"}
NAMES = frozenset({*_SAME_NUMBER, *_SAME, *_TEXT, *_I64, *_GIVEN, "concat"})
WITH_UNIT = ("date_add", "date_diff", "date_trunc")


def common(kinds: Sequence[str]) -> str:
    """The common scalar type of several."""
    some = set(kinds)
    if len(some) == 1:
        return kinds[0]
    return "F64" if some & {*_FLOATS} else "U64" if some <= {"U32", "U64"} and "U64" in some else "I64"


def scalar_of(call: ast.CallExpr, scalar: Callable[[ast.Expr], str]) -> str:
    """The scalar type of a call or of the items of its list."""
    name = call.function
    if name in _GIVEN:
        return _GIVEN[name]
    if name in _TEXT:
        return "String"
    if name in _I64:
        return "I64"
    if name == "concat":
        return common([scalar(argument) for argument in call.arguments])
    kind = scalar(call.arguments[0])
    if name in _SAME:
        return kind
    return "F64" if kind in _FLOATS else "U64" if kind == "U64" else "I64"


def result(name: str, values: Sequence[Any], kinds: Sequence[str]) -> Any:
    """The result of a call, or None. Units of time are passed as values."""
    if any(value is None for value in values):
        return None
    if name in _PARTS:
        return _part(name, _moment(values[0], kinds[0]))
    if name in WITH_UNIT:
        return _with_unit(name, values, kinds[0])
    if name == "to_string":
        return _text_of(values[0], kinds[0])
    if name in ("to_date", "to_datetime"):
        return _dated(name, values[0], kinds[0])
    if name == "concat":
        if isinstance(values[0], str):
            return "".join(values)
        floats = any(kind in _FLOATS for kind in kinds)
        return [float(item) if floats else item for items in values for item in items]
    if name in _SAME_NUMBER:
        return _number(name, values, kinds[0])
    return _OTHERS[name](*values)


# -- numbers -----------------------------------------------------------------------------------------


def _number(name: str, values: Sequence[Any], kind: str) -> Any:
    value = values[0]
    if kind in _FLOATS:
        value = float(value)
        if name == "abs":
            return abs(value)
        if name in ("floor", "ceil"):
            return float(math.floor(value) if name == "floor" else math.ceil(value))
        return _rounded(Fraction(value), values[1] if len(values) > 1 else 0)
    low, high = (0, 2**64 - 1) if kind == "U64" else (-(2**63), 2**63 - 1)
    if name == "abs":
        value = abs(value)
    if name == "round" and len(values) > 1 and values[1] < 0:
        value = int(_half_up(Fraction(value), values[1]))
    return value if low <= value <= high else None


def _half_up(exact: Fraction, digits: int) -> Fraction:
    power = Fraction(10) ** digits
    return (-1 if exact < 0 else 1) * (math.floor(abs(exact) * power + Fraction(1, 2)) / power)


def _rounded(exact: Fraction, digits: int) -> float | None:
    try:
        return float(_half_up(exact, max(-330, min(1100, digits))))
    except OverflowError:
        return None


# -- text and lists ----------------------------------------------------------------------------------

_SPACES = "".join(
    chr(code) for code in (9, 10, 11, 12, 13, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F,
                           0x205F, 0x3000)
)  # fmt: skip


def _cased(text: str, change: Callable[[str], str]) -> str:
    return "".join(change(letter) if len(change(letter)) == 1 else letter for letter in text)


def _sliced(items: Any, start: int, count: int | None = None) -> Any:
    if count is not None and count < 0:
        return None
    first = max(len(items) + start, 0) if start < 0 else start
    return items[first:] if count is None else items[first : first + count]


def _item(items: Any, at: int) -> Any:
    return items[at] if -len(items) <= at < len(items) else None


def _split(text: str, by: str) -> list[str]:
    return text.split(by) if by else list(text) or [""]


def _whole(value: Any) -> int | None:
    if isinstance(value, str):
        value = value.strip(_SPACES)
        if not re.fullmatch(r"[+-]?[0-9]+", value):
            return None
    number = int(value) if isinstance(value, str) or math.isfinite(value) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def _float(value: Any) -> float | None:
    if not isinstance(value, str):
        return float(value)
    value = value.strip(_SPACES)
    if not re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?", value):
        return None
    return float(value) if math.isfinite(float(value)) else None


_OTHERS: Mapping[str, Callable[..., Any]] = {
    "sign": lambda x: (x > 0) - (x < 0),
    "sqrt": lambda x: math.sqrt(x) if x >= 0 else None,
    "lower": lambda s: _cased(s, str.lower),
    "upper": lambda s: _cased(s, str.upper),
    "trim": lambda s: s.strip(_SPACES),
    "ltrim": lambda s: s.lstrip(_SPACES),
    "rtrim": lambda s: s.rstrip(_SPACES),
    "substring": _sliced,
    "replace": lambda s, a, b: s.replace(a, b) if a else s,
    "split": _split,
    "reverse": lambda s: s[::-1],
    "length": len,
    "head": lambda items: _item(items, 0),
    "last": lambda items: _item(items, -1),
    "item": _item,
    "slice": _sliced,
    "to_integer": _whole,
    "to_float": _float,
}


# -- dates -------------------------------------------------------------------------------------------


def _moment(value: int, kind: str) -> datetime:
    days, rest = (value, 0) if kind == "Date" else divmod(value, _DAY)
    start = datetime.combine(date.fromordinal(days + _EPOCH), datetime.min.time())
    return start + timedelta(milliseconds=rest)


def _stored(moment: datetime, kind: str) -> int:
    days = moment.toordinal() - _EPOCH
    if kind == "Date":
        return days
    of_day = moment - datetime.combine(moment.date(), datetime.min.time())
    return days * _DAY + of_day // timedelta(milliseconds=1)


def _part(name: str, moment: datetime) -> int:
    match name:
        case "quarter":
            return (moment.month + 2) // 3
        case "week":
            return moment.isocalendar().week
        case "weekday":
            return moment.isoweekday()
        case "day_of_year":
            return moment.timetuple().tm_yday
        case "millisecond":
            return moment.microsecond // 1000
        case _:
            return int(getattr(moment, name))


def _added(moment: datetime, amount: int, unit: str) -> datetime | None:
    try:
        if unit in ("year", "quarter", "month"):
            months = moment.year * 12 + moment.month - 1 + amount * {"year": 12, "quarter": 3, "month": 1}[unit]
            year, month = divmod(months, 12)
            if not 1 <= year <= 9999:
                return None
            return moment.replace(year=year, month=month + 1, day=min(moment.day, _last_day(year, month + 1)))
        return moment + timedelta(**{f"{unit}s": amount})
    except OverflowError:
        return None


def _last_day(year: int, month: int) -> int:
    return calendar.monthrange(year, month)[1]


def _between(low: datetime, high: datetime, unit: str) -> int:
    """The largest number of units from `low` that does not exceed `high`."""
    if unit not in ("year", "quarter", "month"):
        return (high - low) // timedelta(**{f"{unit}s": 1})
    count = (high.year - low.year + 1) * {"year": 1, "quarter": 4, "month": 12}[unit]
    while (reached := _added(low, count, unit)) is None or reached > high:
        count -= 1
    return count


def _with_unit(name: str, values: Sequence[Any], kind: str) -> int | None:
    unit = values[-1].removesuffix("s")
    moment = _moment(values[0], kind)
    if name == "date_add":
        found = _added(moment, values[1], unit)
        return None if found is None else _stored(found, kind)
    if name == "date_diff":
        other = _moment(values[1], kind)
        return _between(moment, other, unit) if other >= moment else -_between(other, moment, unit)
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    match unit:
        case "year":
            start = start.replace(month=1, day=1)
        case "quarter":
            start = start.replace(month=(start.month - 1) // 3 * 3 + 1, day=1)
        case "month":
            start = start.replace(day=1)
        case "week":
            start -= timedelta(days=start.weekday())
        case "day":
            pass
        case _:
            start = moment - (moment - start) % timedelta(**{f"{unit}s": 1})
    return _stored(start, kind)


# -- conversions -------------------------------------------------------------------------------------


def _text_of(value: Any, kind: str) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if kind == "Date":
        return _moment(value, kind).strftime("%Y-%m-%d").rjust(10, "0")
    if kind == "DateTime":
        moment = _moment(value, kind)
        return f"{moment.isoformat(timespec='milliseconds')}Z"
    if isinstance(value, float):
        width = np.float32(value) if kind == "F32" else np.float64(value)
        return np.format_float_positional(width, unique=True, trim="-") if value else "0"
    return str(value)


def _dated(name: str, value: Any, kind: str) -> int | None:
    if isinstance(value, str):
        try:
            moment = datetime.fromisoformat(value.strip(_SPACES))
        except ValueError:
            return None
        kind = "DateTime"
        value = _stored(moment, kind)
    if name == "to_date":
        return value if kind == "Date" else value // _DAY
    return value if kind == "DateTime" else value * _DAY
