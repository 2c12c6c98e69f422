"""Scalar functions of dates and datetimes: parts, additions, differences.

Datetimes are in UTC. The calendar is the proleptic Gregorian calendar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from omnigraph.query.plan import ir
from omnigraph.query.scalars.arrays import filled, np, pa, pc, valid
from omnigraph.query.scalars.signature import DAY, INTEGER, MOMENT, Columns, Kind, Scalar, same_type
from omnigraph.scalar_types.dates import DATE_RANGE, DAY_MS
from omnigraph.types import PropertyType

_MS = {"week": 7 * DAY_MS, "day": DAY_MS, "hour": 3_600_000, "minute": 60_000, "second": 1_000, "millisecond": 1}
_MONTHS = {"year": 12, "quarter": 3, "month": 1}
_TIMES = ("hour", "minute", "second", "millisecond")
UNITS = (*_MONTHS, *_MS)
"""The units of time in the singular; the plural is equivalent."""

_BOTH = tuple(word for unit in UNITS for word in (unit, f"{unit}s"))
_UNIT = Kind("a unit of time", lambda _: False, units=_BOTH)
_OUT_OF_RANGE = "a date outside the years 1 to 9999"

Numbers = Any


# -- the calendar ------------------------------------------------------------------------------------


def _days_and_rest(array: Any) -> tuple[Numbers, Numbers]:
    """Return the days since 1970-01-01 and the milliseconds of the day."""
    values = filled(array).astype(np.int64)
    if pa.types.is_date32(array.type):
        return values, np.zeros(len(values), np.int64)
    return np.floor_divide(values, DAY_MS), np.mod(values, DAY_MS)


def _months(days: Numbers) -> Numbers:
    """Return the months since January 1970."""
    return days.astype("M8[D]").astype("M8[M]").astype(np.int64)


def _first_day(months: Numbers) -> Numbers:
    return months.astype("M8[M]").astype("M8[D]").astype(np.int64)


def _moved(days: Numbers, months: Numbers) -> Numbers:
    """Return the days that many months later; a day that the month does not have becomes its last day."""
    current = _months(days)
    of_month = days - _first_day(current)
    wanted = current + months
    return np.minimum(_first_day(wanted) + of_month, _first_day(wanted + 1) - 1)


def _column(days: Numbers, rest: Numbers, known: Numbers, like: Any) -> Any:
    """Return days and milliseconds of the day as dates or datetimes."""
    if pa.types.is_date32(like):
        return pa.array(np.where(known, days, 0).astype(np.int32), mask=~known).cast(like)
    return pa.array(np.where(known, days * DAY_MS + rest, 0), mask=~known).cast(like)


# -- parts -------------------------------------------------------------------------------------------


def _part(name: str) -> Callable[[Columns], Any]:
    def compute(columns: Columns) -> Any:
        (array,) = columns.arrays
        days, rest = _days_and_rest(array)
        return pa.array(_PARTS[name](days, rest), pa.int64(), mask=~valid(array))

    return compute


def _iso_week(days: Numbers, _: Numbers) -> Numbers:
    thursday = days - np.mod(days + 3, 7) + 3
    return (thursday - _first_day(_months(thursday) // 12 * 12)) // 7 + 1


_PARTS: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "year": lambda days, _: _months(days) // 12 + 1970,
    "quarter": lambda days, _: np.mod(_months(days), 12) // 3 + 1,
    "month": lambda days, _: np.mod(_months(days), 12) + 1,
    "week": _iso_week,
    "day": lambda days, _: days - _first_day(_months(days)) + 1,
    "weekday": lambda days, _: np.mod(days + 3, 7) + 1,
    "day_of_year": lambda days, _: days - _first_day(_months(days) // 12 * 12) + 1,
    "hour": lambda _, rest: rest // 3_600_000,
    "minute": lambda _, rest: rest // 60_000 % 60,
    "second": lambda _, rest: rest // 1_000 % 60,
    "millisecond": lambda _, rest: rest % 1_000,
}


# -- additions and differences -----------------------------------------------------------------------


def _unit_of(value: ir.Value) -> str:
    assert isinstance(value, ir.Const)
    return str(value.value).removesuffix("s")


def _with_unit(gives: Callable[[Sequence[ir.Value]], PropertyType]) -> Callable[[Sequence[ir.Value]], Any]:
    """Return a rule for the type of the result, which is None for a Date with a unit smaller than a day."""

    def rule(values: Sequence[ir.Value]) -> PropertyType | None:
        dates = [value.type.scalar for value in values if value.type.scalar in ("Date", "DateTime")]
        if len(set(dates)) > 1 or (dates[0] == "Date" and _unit_of(values[-1]) in _TIMES):
            return None
        return gives(values)

    return rule


def _add(columns: Columns) -> Any:
    array, amounts = columns.arrays[0], columns.arrays[1]
    unit = _unit_of(columns.call.arguments[2])  # type: ignore[arg-type]
    days, rest = _days_and_rest(array)
    # An amount beyond twice the range of the calendar always leaves the range.
    most = 20_000 * 12 // _MONTHS[unit] if unit in _MONTHS else 20_000 * 366 * DAY_MS // _MS[unit]
    if amounts.type == pa.uint64():
        amounts = pc.min_element_wise(amounts, pa.scalar(2**62, pa.uint64()))
    amount = filled(amounts.cast(pa.int64()))
    in_range = (amount >= -most) & (amount <= most)
    amount = np.where(in_range, amount, 0)
    if unit in _MONTHS:
        days = _moved(days, amount * _MONTHS[unit])
    else:
        total = rest + amount * _MS[unit]
        days, rest = days + np.floor_divide(total, DAY_MS), np.mod(total, DAY_MS)
    in_range &= (days >= DATE_RANGE[0]) & (days <= DATE_RANGE[1])
    return _column(days, rest, valid(array) & valid(amounts) & in_range, array.type)


def _difference(columns: Columns) -> Any:
    first, second = columns.arrays[0], columns.arrays[1]
    unit = _unit_of(columns.call.arguments[2])  # type: ignore[arg-type]
    known = valid(first) & valid(second)
    days, rest = _days_and_rest(first)
    other_days, other_rest = _days_and_rest(second)
    later = (other_days > days) | ((other_days == days) & (other_rest >= rest))
    sign = np.where(later, 1, -1)
    low, high = np.where(later, days, other_days), np.where(later, other_days, days)
    low_rest, high_rest = np.where(later, rest, other_rest), np.where(later, other_rest, rest)
    if unit in _MONTHS:
        months = _months(high) - _months(low)
        reached = _moved(low, months)
        months -= (reached > high) | ((reached == high) & (low_rest > high_rest))
        units = months // _MONTHS[unit]
    else:
        units = ((high - low) * DAY_MS + high_rest - low_rest) // _MS[unit]
    return pa.array(units * sign, pa.int64(), mask=~known)


def _truncate(columns: Columns) -> Any:
    array = columns.arrays[0]
    unit = _unit_of(columns.call.arguments[1])  # type: ignore[arg-type]
    days, rest = _days_and_rest(array)
    if unit in _TIMES:
        rest = rest // _MS[unit] * _MS[unit]
    else:
        rest = np.zeros(len(days), np.int64)
        if unit == "week":
            days = days - np.mod(days + 3, 7)
        elif unit != "day":
            days = _first_day(_months(days) // _MONTHS[unit] * _MONTHS[unit])
    return _column(days, rest, valid(array), array.type)


def _integer(_: Sequence[ir.Value]) -> PropertyType:
    return ir.I64


_SUMMARIES = {
    "year": (DAY, "the year"),
    "quarter": (DAY, "the quarter, 1 to 4"),
    "month": (DAY, "the month, 1 to 12"),
    "week": (DAY, "the ISO week, 1 to 53"),
    "day": (DAY, "the day of the month, 1 to 31"),
    "weekday": (DAY, "the day of the week, 1 (Monday) to 7 (Sunday)"),
    "day_of_year": (DAY, "the day of the year, 1 to 366"),
    "hour": (MOMENT, "the hour, 0 to 23"),
    "minute": (MOMENT, "the minute, 0 to 59"),
    "second": (MOMENT, "the second, 0 to 59"),
    "millisecond": (MOMENT, "the millisecond, 0 to 999"),
}

DATE_FUNCTIONS = (
    *(
        Scalar(name, f"{name}($x.{'at' if kind is MOMENT else 'date'})", (kind,), ir.I64, _part(name), summary)
        for name, (kind, summary) in _SUMMARIES.items()
    ),
    Scalar(
        "date_add", "date_add($x.date, 3, months)", (DAY, INTEGER, _UNIT), _with_unit(same_type), _add,
        "the date that many units later", no_result=_OUT_OF_RANGE,
    ),
    Scalar(
        "date_diff", "date_diff($x.from, $x.to, days)", (DAY, DAY, _UNIT), _with_unit(_integer), _difference,
        "the whole units from one date to another",
    ),
    Scalar(
        "date_trunc", "date_trunc($x.date, month)", (DAY, _UNIT), _with_unit(same_type), _truncate,
        "the start of the unit that contains a date",
    ),
)  # fmt: skip
