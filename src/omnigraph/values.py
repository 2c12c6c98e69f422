"""Values of property types: read from JSON, spelt as ids, written as JSON.

A value is held in the form the table stores: Date as days and DateTime as milliseconds since
1970-01-01 UTC, F32 as the float it rounds to, a vector as a list of such floats. Reading is strict: a
string is no number, `3.0` is no integer, `1` is no Bool. Python values that JSON does not have (dates, numpy scalars,
Decimal, enums, UUID, paths, bytes) are accepted where their type fits. Rules of a constraint (enum membership,
`@range`, …) are not applied here.

Dates and datetimes lie in the years 1 to 9999. Earlier releases stored others, given as numbers: they are written as
ISO 8601 text with an expanded year (`+12345-01-01`), and Python objects hold that text in place of a date.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import struct
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any
from uuid import UUID

from omnigraph.errors import ValueFormatError
from omnigraph.types import INTEGER_RANGES, PropertyType

JS_SAFE_MAX = 2**53 - 1
DAY_MS = 86_400_000
DATE_RANGE = (-719_162, 2_932_896)
"""The first and last day of the years 1 to 9999, as days since 1970-01-01."""
DATETIME_RANGE = (DATE_RANGE[0] * DAY_MS, (DATE_RANGE[1] + 1) * DAY_MS - 1)
"""The first and last millisecond of the years 1 to 9999."""

_ARROW_NAMES = {"I32": "Int32", "I64": "Int64", "U32": "UInt32", "U64": "UInt64"}
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(r"[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?(Z|[+-]\d{2}:\d{2})?", re.ASCII)
_EXPANDED = re.compile(r"([+-][0-9]{4,}|[0-9]{4})(-[0-9]{2}-[0-9]{2})(.*)", re.ASCII)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_JSON = frozenset({type(None), bool, int, float, str, list, dict})
_DAYS_IN_MONTH = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


# -- dates -------------------------------------------------------------------------------------------


def parse_date(text: str) -> int:
    """Days since 1970-01-01 of `YYYY-MM-DD`; a longer datetime counts by its UTC date."""
    match = _DATE.match(text)
    if match and match.end() == len(text):
        return check_date(_days(text, match))
    return parse_datetime(text) // DAY_MS


def parse_datetime(text: str) -> int:
    """Milliseconds since the epoch of an ISO date or datetime; no zone means UTC, digits past ms are cut."""
    match = _DATE.match(text)
    if match is None:
        raise ValueFormatError(
            f"'{_short(text)}' is not a date",
            hint="write YYYY-MM-DD, or YYYY-MM-DDTHH:MM:SS with an optional zone",
        )
    milliseconds = _days(text, match) * DAY_MS
    if match.end() == len(text):
        return check_datetime(milliseconds)
    time = _TIME.fullmatch(text, match.end())
    if time is None:
        raise ValueFormatError(
            f"'{_short(text)}' is not a datetime",
            hint="write YYYY-MM-DDTHH:MM, then optionally :SS, .fraction and Z or +HH:MM",
        )
    hour, minute, second = int(time[1]), int(time[2]), int(time[3] or 0)
    zone = time[5]
    offset = 0
    if zone and zone != "Z":
        zone_hour, zone_minute = int(zone[1:3]), int(zone[4:6])
        if zone_hour > 23 or zone_minute > 59:
            raise ValueFormatError(f"'{_short(text)}' has no such time zone")
        offset = (zone_hour * 60 + zone_minute) * (-1 if zone[0] == "-" else 1)
    if hour > 23 or minute > 59 or second > 59:
        raise ValueFormatError(f"'{_short(text)}' has no such time of day")
    fraction = int((time[4] or "").ljust(3, "0")[:3])
    return check_datetime(milliseconds + ((hour * 60 + minute - offset) * 60 + second) * 1000 + fraction)


def check_date(days: int) -> int:
    """The days, if they are in the years 1 to 9999; else `ValueFormatError`."""
    if not DATE_RANGE[0] <= days <= DATE_RANGE[1]:
        raise _outside(format_date(days))
    return days


def check_datetime(milliseconds: int) -> int:
    """The milliseconds, if they are in the years 1 to 9999; else `ValueFormatError`."""
    if not DATETIME_RANGE[0] <= milliseconds <= DATETIME_RANGE[1]:
        raise _outside(format_datetime(milliseconds))
    return milliseconds


def _outside(shown: str) -> ValueFormatError:
    return ValueFormatError(f"{shown} is outside the years 1 to 9999", hint="a Date is days, a DateTime milliseconds")


def format_date(days: int) -> str:
    """`YYYY-MM-DD`; a year outside 0 to 9999 has a sign and as many digits as it needs."""
    year, month, day = _civil(days)
    sign = "-" if year < 0 else "+" if year > 9999 else ""
    return f"{sign}{abs(year):04}-{month:02}-{day:02}"


def format_datetime(milliseconds: int) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    days, rest = divmod(milliseconds, DAY_MS)
    seconds, ms = divmod(rest, 1000)
    return f"{format_date(days)}T{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{ms:03}Z"


def python_date(days: int) -> date | str:
    """The day as Python has it; outside the years 1 to 9999 as text."""
    inside = DATE_RANGE[0] <= days <= DATE_RANGE[1]
    return _EPOCH.date() + timedelta(days) if inside else format_date(days)


def python_datetime(milliseconds: int) -> datetime | str:
    """The instant as Python has it; outside the years 1 to 9999 as text."""
    inside = DATETIME_RANGE[0] <= milliseconds <= DATETIME_RANGE[1]
    return _EPOCH + timedelta(milliseconds=milliseconds) if inside else format_datetime(milliseconds)


def stored_days(value: date | str) -> int:
    """The inverse of `python_date`."""
    return (value - _EPOCH.date()).days if isinstance(value, date) else stored_milliseconds(value) // DAY_MS


def stored_milliseconds(value: datetime | str) -> int:
    """The inverse of `python_datetime`."""
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(milliseconds=1)
    match = _EXPANDED.fullmatch(value)
    assert match is not None
    # The calendar repeats every 400 years, so the day is found in a year that has four digits.
    cycles, year = divmod(int(match[1]), 400)
    return parse_datetime(f"{year + 2000:04}{match[2]}{match[3]}") + (cycles - 5) * 146_097 * DAY_MS


def _days(text: str, match: re.Match[str]) -> int:
    year, month, day = int(match[1]), int(match[2]), int(match[3])
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not 1 <= month <= 12 or not 1 <= day <= _DAYS_IN_MONTH[month - 1] + (leap and month == 2):
        raise ValueFormatError(f"'{_short(text)}' is not a date of the calendar")
    # Days of the proleptic Gregorian calendar, years starting in March so that leap days come last.
    shifted = year - (month <= 2)
    era, of_era = divmod(shifted, 400)
    of_year = (153 * (month + (-3 if month > 2 else 9)) + 2) // 5 + day - 1
    return era * 146_097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719_468


def _civil(days: int) -> tuple[int, int, int]:
    era, of_era = divmod(days + 719_468, 146_097)
    year_of_era = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted_month = (5 * of_year + 2) // 153
    month = shifted_month + (3 if shifted_month < 10 else -9)
    return year_of_era + era * 400 + (month <= 2), month, of_year - (153 * shifted_month + 2) // 5 + 1


class InvalidText:
    """Stands for text that is not valid UTF-8, so that its record can be refused."""


# -- reading JSON ------------------------------------------------------------------------------------


def read_json(value: Any, type_: PropertyType) -> Any:
    """Return `value`, of a JSON document or of Python, in the form the table stores.

    Raises `ValueFormatError` with a sentence that fits behind "property 'x': ".
    """
    if type(value) not in _JSON:
        value = _from_python(value, type_)
    if value is None:
        if type_.nullable:
            return None
        raise ValueFormatError(f"null, but {type_} is required")
    if type_.is_list:
        if not isinstance(value, list):
            raise _wrong(value, type_)
        if any(item is None for item in value):
            raise ValueFormatError("a list may not hold null")
        return [read_json(item, type_.item) for item in value]
    if type_.is_integer:
        return _read_integer(value, type_)
    if type_.is_float:
        return read_float(value, type_)
    match type_.scalar:
        case "String":
            if isinstance(value, str):
                return _well_formed(value)
        case "Bool":
            if isinstance(value, bool):
                return value
        case "Date":
            if isinstance(value, str):
                return parse_date(value)
            return check_date(_read_integer(value, type_, bounds=INTEGER_RANGES["I32"]))
        case "DateTime":
            if isinstance(value, str):
                return parse_datetime(value)
            return check_datetime(_read_integer(value, type_, bounds=INTEGER_RANGES["I64"]))
        case "Blob":
            if isinstance(value, str):
                return read_blob(value)
            if isinstance(value, bytes):
                return value
        case "Vector":
            if isinstance(value, list):
                return read_vector(value, type_)
    raise _wrong(value, type_)


def is_json(value: Any) -> bool:
    """True if the value has a type that a JSON document has."""
    return type(value) in _JSON


def _from_python(value: Any, type_: PropertyType) -> Any:
    """A value of Python's own types as the JSON value that means the same to `type_`; others are returned as given."""
    if isinstance(value, Enum):
        return _from_python(value.value, type_)
    module = type(value).__module__.partition(".")[0]
    if module == "numpy":
        return _from_numpy(value, type_)
    if module == "pandas" and type(value).__name__ in ("NaTType", "NAType"):
        return None
    is_date = type_.scalar in ("Date", "DateTime")
    match value:
        case str():  # a subclass, as the next two
            return str.__str__(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case tuple() if type_.is_list or type_.scalar == "Vector":
            return list(value)
        case datetime() if is_date:
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            milliseconds = (aware - _EPOCH) // timedelta(milliseconds=1)
            return milliseconds if type_.scalar == "DateTime" else milliseconds // DAY_MS
        case date() if is_date:
            return (value - _EPOCH.date()).days * (1 if type_.scalar == "Date" else DAY_MS)
        case Decimal() if type_.is_integer and value.is_finite() and value == value.to_integral_value():
            return int(value)
        case Decimal() if type_.is_float:
            return float(value)
        case UUID() | PurePath() if type_.is_text:
            return str(value)
        case bytearray() | memoryview() if type_.scalar == "Blob":
            return bytes(value)
    return value


def _from_numpy(value: Any, type_: PropertyType) -> Any:
    kind = value.dtype.kind
    if kind == "M":
        value = value.astype("datetime64[ms]")
        if not value.ndim and str(value) == "NaT":
            return None
    if value.ndim:
        return value.tolist() if type_.is_list or type_.scalar == "Vector" else value
    item = value.item()
    return item if type(item) in _JSON else _from_python(item, type_)


def read_float(value: Any, type_: PropertyType) -> float:
    """A finite number at the width of `type_`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(value, type_)
    try:
        number = float(value) if type_.scalar == "F64" else _float_for_f32(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueFormatError(f"{_kind(value)} is not a finite number that {type_.scalar} can hold")
    return round_f32(number) if type_.scalar == "F32" else number


def _float_for_f32(value: int | float) -> float:
    """A float that rounds to 32 bits as `value` does; what is cut off a wide integer sets the last bit that stays."""
    if not isinstance(value, int) or value.bit_length() <= 53:
        return float(value)
    excess = value.bit_length() - 53
    kept, cut = divmod(abs(value), 1 << excess)
    return math.copysign(math.ldexp(kept | (cut > 0), excess), value)


def round_f32(number: float) -> float:
    """The nearest 32-bit float, as a Python float; an overflow is refused."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise ValueFormatError(f"{number!r} exceeds Float32 range") from None


def read_vector(value: Sequence[Any], type_: PropertyType) -> list[float]:
    """Exactly as many finite 32-bit numbers as the type has dimensions."""
    if len(value) != type_.dim:
        raise ValueFormatError(f"expected {type_.dim} dimensions, got {len(value)}")
    if set(map(type, value)) == {float}:
        try:
            numbers = struct.unpack(f"<{len(value)}f", struct.pack(f"<{len(value)}f", *value))
        except OverflowError:
            pass  # element by element the message names the one
        else:
            if all(map(math.isfinite, numbers)):
                return list(numbers)
    item = PropertyType("F32")
    for element in value:
        if isinstance(element, bool) or not isinstance(element, int | float):
            raise ValueFormatError(f"vector elements must be numeric, found {_kind(element)}")
    return [read_float(element, item) for element in value]


def read_blob(value: str) -> bytes | str:
    """Bytes of `base64:…`; any other string is an external URI and comes back as it is."""
    if not value.startswith("base64:"):
        return _well_formed(value)
    try:
        return base64.b64decode(value[7:], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueFormatError(f"invalid base64 data: {error}") from None


Fetch = Callable[[str], bytes]
"""Reads what a reference stands for, or raises `ValueFormatError`."""


def managed_blob(value: bytes | str, fetch: Fetch | None = None) -> bytes:
    """The bytes of a Blob; a reference to somewhere else is refused, unless there is somebody who may follow it."""
    if isinstance(value, str):
        if fetch is not None:
            return fetch(value)
        raise ValueFormatError(
            f"'{_short(value)}' is a reference to somewhere else, and those are not allowed here",
            hint="give the bytes themselves: base64:…",
        )
    return value


def _read_integer(value: Any, type_: PropertyType, bounds: tuple[int, int] | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _wrong(value, type_)
    low, high = bounds or INTEGER_RANGES[type_.scalar]
    if not low <= value <= high:
        name = _ARROW_NAMES.get(type_.scalar, type_.scalar)
        raise ValueFormatError(f"{_short_integer(value)} exceeds {name} range ({low} to {high})")
    return value


def is_unicode(text: str) -> bool:
    """False if the text holds an unpaired surrogate, which no encoding has."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def _well_formed(value: str) -> str:
    if not is_unicode(value):
        raise ValueFormatError("text holds half a surrogate pair and is not valid Unicode")
    return value


def _wrong(value: Any, type_: PropertyType) -> ValueFormatError:
    return ValueFormatError(f"expected {type_}, found {_kind(value)}", hint=_hint(value, type_))


_NO_VALUE = frozenset({"nan", "null", "none", "nil", "na", "n/a", "#n/a", "nat", "-", "?"})
_TRUTH = frozenset({"yes", "no", "y", "n", "t", "f", "on", "off", "0", "1"})
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?")
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]{1,30},[0-9]{1,30}")


def _hint(value: Any, type_: PropertyType) -> str | None:
    """How to write a value that is often written otherwise."""
    if isinstance(value, str) and value.strip().lower() in _NO_VALUE:
        empty = "for no value leave a CSV cell empty, and write null in JSON"
        return empty if type_.nullable else f"{empty}; the type must be {type_}?"
    if type_.is_list:
        return 'a list is a JSON array: ["one", "two"]'
    if type_.scalar == "Vector":
        return "a vector is a JSON array of numbers: [0.5, 1.0]"
    if type_.scalar == "Bool":
        is_truth = value in (0, 1) if isinstance(value, int | float) else str(value).strip().lower() in _TRUTH
        return "write true or false" if is_truth else None
    if type_.scalar == "String":
        return 'write it as text, in quotes: "…"' if isinstance(value, int | float) else None
    return _number_hint(value.strip()) if isinstance(value, str) and (type_.is_integer or type_.is_float) else None


def _number_hint(text: str) -> str | None:
    if _COMMA_NUMBER.fullmatch(text):
        return f"the decimal separator is a point, and digits are not grouped: {text.replace(',', '.')}"
    return "write the number without quotes" if _PLAIN_NUMBER.fullmatch(text) else None


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int():
            shown = _short_integer(value)
            return shown if shown.startswith("an ") else f"the integer {shown}"
        case float():
            return f"the number {value!r}"
        case str():
            return f"the string '{_short(value)}'"
        case list() | tuple():
            return "an array"
        case InvalidText():
            return "text that is not valid UTF-8"
        case dict():
            return "an object"
        case _:
            return type(value).__name__


def describe_json(value: Any) -> str:
    """What a JSON value is, in words for an error message."""
    return _kind(value)


def _short(text: str) -> str:
    shown = text if len(text) <= 120 else text[:119] + "…"
    return shown if shown.isprintable() else ascii(shown)[1:-1]


def _short_integer(value: int) -> str:
    # str() of a huge int is refused by Python itself, and nobody wants to read it.
    return str(value) if value.bit_length() <= 256 else f"an integer of {value.bit_length()} bits"


# -- ids ---------------------------------------------------------------------------------------------


def spell_key(value: Any, type_: PropertyType) -> str:
    """The canonical spelling of a stored key value: equal values, and only they, are spelt alike."""
    assert value is not None, "a key value is never null"
    if type_.scalar == "Bool":
        return "true" if value else "false"
    if type_.is_float:
        return spell_float(value, single=type_.scalar == "F32")
    return str(value)


def spell_float(value: float, *, single: bool) -> str:
    """The shortest positional decimal that reads back as the same float of its width."""
    if not math.isfinite(value):
        raise ValueFormatError(f"{value!r} cannot be part of a key")
    if value == 0:
        return "0"
    text = format(_shortest_f32(value) if single else Decimal(repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _shortest_f32(value: float) -> Decimal:
    exact = Decimal(value)
    for digits in range(1, 10):
        unit = Decimal(1).scaleb(exact.adjusted() - digits + 1)
        # The nearest first; but at a power of two the farther one may be the only one that reads back.
        for rounding in (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING):
            candidate = exact.quantize(unit, rounding)
            if _reads_back(candidate, value):
                return candidate
    raise AssertionError("nine digits always identify a 32-bit float")


def _reads_back(candidate: Decimal, value: float) -> bool:
    try:
        return bool(struct.unpack("<f", struct.pack("<f", float(candidate)))[0] == value)
    except OverflowError:
        return False


def derive_id(spellings: Sequence[str]) -> str:
    """The row id of a key, given its columns' spellings in key order."""
    if len(spellings) == 1:
        return spellings[0]
    return json.dumps(list(spellings), ensure_ascii=False, separators=(",", ":"))


# -- writing JSON ------------------------------------------------------------------------------------


def write_json(value: Any, type_: PropertyType) -> Any:
    """The value as query results show it: wide integers and non-finite floats as strings, dates as text."""
    if value is None:
        return None
    if type_.is_list:
        return [write_json(item, type_.item) for item in value]
    match type_.scalar:
        case "I64" | "U64":
            return value if -JS_SAFE_MAX <= value <= JS_SAFE_MAX else str(value)
        case "F32" | "F64":
            if math.isfinite(value):
                return value
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case "Date":
            return format_date(value)
        case "DateTime":
            return format_datetime(value)
        case "Vector":
            return [element if math.isfinite(element) else None for element in value]
        case _:
            return value
