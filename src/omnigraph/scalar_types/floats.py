"""Floating-point numbers at their width: rounding to 32 bits, canonical text."""

from __future__ import annotations

import math
import struct
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal

from omnigraph.errors import ValueFormatError


def float_for_f32(value: int | float) -> float:
    """Return a float that rounds to 32 bits as `value` does: truncated bits of a wide integer set the last remaining
    bit.
    """
    if not isinstance(value, int) or value.bit_length() <= 53:
        return float(value)
    excess = value.bit_length() - 53
    kept, cut = divmod(abs(value), 1 << excess)
    return math.copysign(math.ldexp(kept | (cut > 0), excess), value)


def round_f32(number: float) -> float:
    """Return the nearest 32-bit float as a Python float; an overflow is refused."""
    try:
        return float(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        raise ValueFormatError(f"{number!r} exceeds Float32 range") from None


def spell_float(value: float, *, single: bool) -> str:
    """Return the shortest positional decimal that reads back as the same float of its width."""
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
        # The nearest candidate first; at a power of two only the farther one may read back.
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
