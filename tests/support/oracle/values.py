"""Reading and comparison of values, from the specification (`query-language.md` §6)."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime
from fractions import Fraction
from typing import Any

from omnigraph.query.syntax import ast


def read_date(text: str) -> int:
    return (date.fromisoformat(text) - date(1970, 1, 1)).days


def read_datetime(text: str) -> int:
    moment = datetime.fromisoformat(text)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def round_f32(number: float) -> float:
    """Round to the nearest 32-bit float, ties to even; infinite beyond the range."""
    exact = Fraction(number)
    if exact == 0:
        return float(number)
    exponent = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    if Fraction(2) ** exponent > abs(exact):
        exponent -= 1
    unit = Fraction(2) ** max(exponent - 23, -149)
    nearest = round(exact / unit) * unit
    return float(nearest) if abs(nearest) < 2**128 else math.copysign(math.inf, exact)


def read_param(value: Any, param: ast.Param) -> Any:
    if value is None:
        return None
    if param.dim is not None:
        return [round_f32(item) for item in value]
    if param.is_list:
        return [read_scalar(item, param.type_name.text) for item in value]
    return read_scalar(value, param.type_name.text)


def read_scalar(value: Any, scalar: str) -> Any:
    match scalar:
        case "I32" | "I64" | "U32" | "U64":
            return int(value)
        case "F32":
            return round_f32(value)
        case "F64":
            return float(value)
        case "Date":
            return read_date(value)
        case "DateTime":
            return read_datetime(value)
        case "Uuid":
            return value.lower()
        case _:
            return value


def compare(op: str, left: Any, right: Any) -> bool:
    """True if a comparison is true; Python compares numbers by value regardless of type."""
    if left is None or right is None:
        return False
    match op:
        case "=":
            return bool(left == right)
        case "!=":
            return bool(left != right)
        case "<":
            return bool(left < right)
        case "<=":
            return bool(left <= right)
        case ">":
            return bool(left > right)
        case ">=":
            return bool(left >= right)
        case "contains":
            return right in left
        case "starts_with":
            return bool(left.startswith(right))
        case "ends_with":
            return bool(left.endswith(right))
        case "icontains":
            return right.lower() in left.lower()
        case "istarts_with":
            return bool(left.lower().startswith(right.lower()))
        case "iends_with":
            return bool(left.lower().endswith(right.lower()))
        case "matches":
            return re.search(right, left) is not None
        case "in":
            return left in right
        case "not in":
            return left not in right
        case _:
            raise AssertionError(op)


def any_of(values: list[bool | None]) -> bool | None:
    """Three-valued `or`: true dominates unknown, unknown dominates false."""
    return True if True in values else None if None in values else False


def all_of(values: list[bool | None]) -> bool | None:
    """Three-valued `and`: false dominates unknown, unknown dominates true."""
    return False if False in values else None if None in values else True


def within(number: Any, scalar: str) -> Any:
    if isinstance(number, float):
        return number
    low, high = (0, 2**64 - 1) if scalar == "U64" else (-(2**63), 2**63 - 1)
    return number if low <= number <= high else None
