"""Durations in text form."""

from __future__ import annotations

import re
from datetime import timedelta

from omnigraph.errors import InputError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
PATTERN = r"^([0-9]{1,12})(\.[0-9]{1,6})?([smhdw])$"
_DURATION = re.compile(PATTERN, re.ASCII)
_MICROSECOND = timedelta(microseconds=1)
_LONGEST = timedelta.max.days * 86_400


def parse_duration(text: str) -> timedelta:
    """Parse a duration: `90s`, `0.5s`, `15m`, `12h`, `7d`, `2w`. A number without a unit is an error."""
    match = _DURATION.fullmatch(text)
    microseconds = -1
    if match is not None:
        digits = int(match[1]) * 1_000_000 + int((match[2] or ".0")[1:].ljust(6, "0"))
        microseconds = digits * _UNITS[match[3]]
    if microseconds < 0 or microseconds > _LONGEST * 1_000_000:
        hint = f"write {text}s, {text}m, {text}h, {text}d or {text}w" if text.isdecimal() else None
        raise InputError(
            f"'{text}' is not a duration; write digits and one of s, m, h, d, w, for example 7d", hint=hint
        )
    return timedelta(microseconds=microseconds)


def has_unit(text: str) -> bool:
    """Return True if a text that is a duration or a time can only be a duration."""
    return text[-1:] in _UNITS


def duration_text(duration: timedelta) -> str:
    """Return the text of a duration that is not negative; `parse_duration` is the inverse."""
    seconds, microseconds = divmod(duration // _MICROSECOND, 1_000_000)
    return f"{seconds}.{microseconds:06}s" if microseconds else f"{seconds}s"
