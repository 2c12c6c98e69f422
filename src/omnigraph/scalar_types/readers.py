"""Strict readers of single values: a JSON or Python value in, the stored form out.

A reader raises `WrongJsonType` if the value has a JSON type that the kind does not accept, and `ValueFormatError` if
the value itself is invalid.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from pathlib import PurePath
from typing import Any
from uuid import UUID

from omnigraph.errors import ValueFormatError
from omnigraph.scalar_types.dates import (
    check_date,
    check_datetime,
    days_of,
    milliseconds_of,
    parse_date,
    parse_datetime,
)
from omnigraph.scalar_types.describe import describe_json, short_integer, short_text
from omnigraph.scalar_types.floats import float_for_f32, round_f32

IntegerRange = tuple[int, int]

_INTEGER_CELL = re.compile(r"([+-]?[0-9]{1,30})(?:\.0{1,30})?")
_INTEGER_ID = re.compile(r"[+-]?[0-9]{1,40}")
_FLOAT_CELL = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
_FLOAT_ID = re.compile(r"[+-]?[0-9]{1,400}(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,4})?")
UUID_PATTERN = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
"""Canonical text of a UUID, as a regular expression of Python and of RE2."""
UUID_EXAMPLE = "123e4567-e89b-12d3-a456-426614174000"
_UUID = re.compile(UUID_PATTERN, re.IGNORECASE | re.ASCII)
_BOOLS = {word: value for value in (True, False) for word in (str(value), str(value).lower(), str(value).upper())}
_PLAIN_NUMBER = re.compile(r"[+-]?[0-9]{1,30}(\.[0-9]{1,30})?")
_GROUPED_NUMBER = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3}){1,9}(\.[0-9]{1,30})?")
_COMMA_NUMBER = re.compile(r"[+-]?[0-9]{1,30},[0-9]{1,30}")
_TRUTH = frozenset({"yes", "no", "y", "n", "t", "f", "on", "off", "0", "1"})


class WrongJsonType(Exception):
    """The value has a JSON type that the kind does not accept."""


# -- JSON values -------------------------------------------------------------------------------------


def read_string(value: Any) -> str:
    """Read a String."""
    if not isinstance(value, str):
        raise WrongJsonType
    return well_formed(value)


def well_formed(text: str) -> str:
    """Return the text if it is valid Unicode."""
    if not is_unicode(text):
        raise ValueFormatError("text contains an unpaired surrogate and is not valid Unicode")
    return text


def is_unicode(text: str) -> bool:
    """Return False if the text contains an unpaired surrogate, which no encoding can represent."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return False
    return True


def read_bool(value: Any) -> bool:
    """Read a Bool."""
    if not isinstance(value, bool):
        raise WrongJsonType
    return value


def integer_reader(label: str, bounds: IntegerRange) -> Callable[[Any], int]:
    """Return a reader of integers in a range; `label` names the type in the error."""
    low, high = bounds

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise WrongJsonType
        if not low <= value <= high:
            raise ValueFormatError(f"{short_integer(value)} exceeds {label} range ({low} to {high})")
        return value

    return read


def read_f64(value: Any) -> float:
    """Read a finite F64."""
    return _read_float(value, "F64", float)


def read_f32(value: Any) -> float:
    """Read a finite F32; the result is the Python float equal to it."""
    return round_f32(_read_float(value, "F32", float_for_f32))


def _read_float(value: Any, name: str, convert: Callable[[int | float], float]) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise WrongJsonType
    try:
        number = convert(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueFormatError(f"{describe_json(value)} is not a finite number that {name} can hold")
    return number


_read_days = integer_reader("Date", (-(2**31), 2**31 - 1))
_read_milliseconds = integer_reader("DateTime", (-(2**63), 2**63 - 1))


def read_date(value: Any) -> int:
    """Read a Date: ISO text, or days since 1970-01-01."""
    return parse_date(value) if isinstance(value, str) else check_date(_read_days(value))


def read_datetime(value: Any) -> int:
    """Read a DateTime: ISO text, or milliseconds since 1970-01-01 UTC."""
    return parse_datetime(value) if isinstance(value, str) else check_datetime(_read_milliseconds(value))


def read_blob(value: Any) -> bytes | str:
    """Read a Blob: bytes, or the bytes of `base64:…`; any other text is an external URI and is returned unchanged."""
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        raise WrongJsonType
    if not value.startswith("base64:"):
        return well_formed(value)
    try:
        return base64.b64decode(value[7:], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ValueFormatError(f"invalid base64 data: {error}") from None


def read_uuid(value: Any) -> str:
    """Read a Uuid: hyphenated text in either case, stored in lower case."""
    if not isinstance(value, str):
        raise WrongJsonType
    if not _UUID.fullmatch(value):
        raise ValueFormatError(f"'{short_text(value)}' is not a UUID", hint=f"write it as {UUID_EXAMPLE}")
    return value.lower()


# -- Python objects ----------------------------------------------------------------------------------


def integer_from_python(value: Any) -> Any:
    """Convert an integral Decimal to int."""
    integral = isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value()
    return int(value) if integral else value


def float_from_python(value: Any) -> Any:
    """Convert a Decimal to float."""
    return float(value) if isinstance(value, Decimal) else value


def text_from_python(value: Any) -> Any:
    """Convert a UUID or a path to text."""
    return str(value) if isinstance(value, UUID | PurePath) else value


def date_from_python(value: Any) -> Any:
    """Convert a date or datetime to days."""
    return days_of(value) if isinstance(value, date) else value


def datetime_from_python(value: Any) -> Any:
    """Convert a date or datetime to milliseconds."""
    return milliseconds_of(value) if isinstance(value, date) else value


def uuid_from_python(value: Any) -> Any:
    """Convert a UUID or its 16 bytes to text."""
    if isinstance(value, bytes) and len(value) == 16:
        value = UUID(bytes=value)
    return str(value) if isinstance(value, UUID) else value


def blob_from_python(value: Any) -> Any:
    """Convert a buffer to bytes."""
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


# -- text --------------------------------------------------------------------------------------------


def integer_of_cell(text: str) -> Any:
    """Convert a CSV cell to int; `3.0` is 3, as pandas writes integers beside missing values."""
    match = _INTEGER_CELL.fullmatch(text)
    return int(match[1]) if match else text


def float_of_cell(text: str) -> Any:
    """Convert a CSV cell to float."""
    return float(text) if _FLOAT_CELL.fullmatch(text) else text


def bool_of_cell(text: str) -> Any:
    """Convert a CSV cell to bool."""
    return _BOOLS.get(text, text)


def integer_of_id(text: str) -> int | None:
    """Return the integer that an id denotes; None if it denotes none."""
    return int(text) if _INTEGER_ID.fullmatch(text) else None


def float_of_id(read: Callable[[Any], float]) -> Callable[[str], float | None]:
    """Return a function that reads the number that an id denotes; None if it denotes none."""
    return lambda text: read(float(text)) if _FLOAT_ID.fullmatch(text) else None


# -- hints -------------------------------------------------------------------------------------------


def bool_hint(value: Any) -> str | None:
    """Return how to write a truth value that is written in another way."""
    is_truth = value in (0, 1) if isinstance(value, int | float) else str(value).strip().lower() in _TRUTH
    return "write true or false" if is_truth else None


def text_hint(value: Any) -> str | None:
    """Return how to write a number as text."""
    return 'write it as text, in quotes: "…"' if isinstance(value, int | float) else None


def integer_hint(value: Any) -> str | None:
    """Return how to write an integer that is given as text."""
    text = value.strip() if isinstance(value, str) else ""
    if _GROUPED_NUMBER.fullmatch(text) and "." not in text:
        return f"digits are not grouped: {text.replace(',', '')}"
    return _plain_hint(text)


def float_hint(value: Any) -> str | None:
    """Return how to write a floating-point number that is given as text. `12,000` has two meanings."""
    text = value.strip() if isinstance(value, str) else ""
    grouped = text.replace(",", "") if _GROUPED_NUMBER.fullmatch(text) else None
    decimal = text.replace(",", ".") if _COMMA_NUMBER.fullmatch(text) else None
    if grouped is None and decimal is None:
        return _plain_hint(text)
    readings = " or ".join(reading for reading in (grouped, decimal) if reading is not None)
    return f"the decimal separator is a point, and digits are not grouped: {readings}"


def _plain_hint(text: str) -> str | None:
    return "write the number without quotes" if _PLAIN_NUMBER.fullmatch(text) else None
