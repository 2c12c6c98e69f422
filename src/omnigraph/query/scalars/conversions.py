"""Scalar functions that convert a value to another type. A text that denotes no value of the type has no result."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

from omnigraph.errors import ValueFormatError
from omnigraph.query.plan import ir
from omnigraph.query.scalars.arrays import by_row, pa, stored_type
from omnigraph.query.scalars.signature import PRINTABLE, Columns, Kind, Scalar
from omnigraph.query.scalars.texts import WHITE_SPACE
from omnigraph.scalar_types.dates import parse_date, parse_datetime
from omnigraph.types import INTEGER_RANGES, PropertyType

_INTEGER = re.compile(r"[+-]?[0-9]+")
_FLOAT = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_NUMBER_OR_TEXT = Kind("a number or a String", lambda type_: type_.is_numeric or type_.is_text)
_DATE_OR_TEXT = Kind(
    "a Date, a DateTime or a String",
    lambda type_: type_.is_text or (not type_.is_list and type_.scalar in ("Date", "DateTime")),
)
_LOW, _HIGH = INTEGER_RANGES["I64"]


def _argument(columns: Columns) -> PropertyType:
    type_ = columns.call.arguments[0].type
    assert isinstance(type_, PropertyType)
    return type_


def _to_string(columns: Columns) -> Any:
    type_ = _argument(columns)
    kind = type_.kind
    if kind.is_float:
        return by_row(columns, lambda value: kind.text(value) if math.isfinite(value) else None)
    if kind.number is not None:
        return by_row(columns, kind.text, plain=True)
    return columns.arrays[0].cast(pa.utf8())


def _to_integer(columns: Columns) -> Any:
    type_ = _argument(columns)
    if type_.is_integer and type_.scalar != "U64":
        return columns.arrays[0].cast(pa.int64())
    return by_row(columns, _integer_in if type_.is_text else _integer_of)


def _integer_in(text: str) -> int | None:
    text = text.strip(WHITE_SPACE)
    # Python refuses to convert thousands of digits.
    if not _INTEGER.fullmatch(text) or len(text.lstrip("+-0")) > 20:
        return None
    return _integer_of(int(text))


def _integer_of(number: float) -> int | None:
    if not math.isfinite(number):
        return None
    whole = math.trunc(number)
    return whole if _LOW <= whole <= _HIGH else None


def _to_float(columns: Columns) -> Any:
    if not _argument(columns).is_text:
        return columns.arrays[0].cast(pa.float64(), safe=False)
    return by_row(columns, _float_in)


def _float_in(text: str) -> float | None:
    text = text.strip(WHITE_SPACE)
    if not _FLOAT.fullmatch(text):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _dated(parse: Callable[[str], int]) -> Callable[[Columns], Any]:
    def read(text: str) -> int | None:
        try:
            return parse(text.strip(WHITE_SPACE))
        except ValueFormatError:
            return None

    def compute(columns: Columns) -> Any:
        if _argument(columns).is_text:
            return by_row(columns, read, plain=True)
        (array,) = columns.arrays
        if array.type == stored_type(columns.call.type):
            return array
        # Arrow casts a datetime to a date by truncation, and a date to a datetime at midnight.
        return array.cast(pa.timestamp("ms")).cast(stored_type(columns.call.type))

    return compute


CONVERSIONS = (
    Scalar(
        "to_string", "to_string($x.value)", (PRINTABLE,), ir.STRING, _to_string,
        "the value as text, as JSON writes it", no_result="a number that is not finite",
    ),
    Scalar(
        "to_integer", "to_integer($x.text)", (_NUMBER_OR_TEXT,), ir.I64, _to_integer,
        "the number without its fraction, or the integer a text holds", no_result="no integer of 64 bits",
    ),
    Scalar(
        "to_float", "to_float($x.text)", (_NUMBER_OR_TEXT,), ir.F64, _to_float,
        "the number as F64, or the number a text holds", no_result="no finite number",
    ),
    Scalar(
        "to_date", "to_date($x.at)", (_DATE_OR_TEXT,), PropertyType("Date"), _dated(parse_date),
        "the day of an instant, or the date a text holds", no_result="no date",
    ),
    Scalar(
        "to_datetime", "to_datetime($x.date)", (_DATE_OR_TEXT,), ir.DATETIME, _dated(parse_datetime),
        "the start of a day, or the instant a text holds", no_result="no date",
    ),
)  # fmt: skip
