"""Durations in text form."""

from __future__ import annotations

import re
from datetime import timedelta

from omnigraph.errors import InputError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800, "": 1}
_DURATION = re.compile(r"([0-9]+)([smhdw]?)")
_LONGEST = timedelta.max.days * 86_400


def parse_duration(text: str) -> timedelta:
    """Parse a duration: `90s`, `15m`, `12h`, `7d`, `2w`, or seconds."""
    match = _DURATION.fullmatch(text)
    seconds = int(match[1]) * _UNITS[match[2]] if match and len(match[1]) < 20 else -1
    if seconds < 0 or seconds > _LONGEST:
        raise InputError(f"'{text}' is not a duration; write digits and one of s, m, h, d, w, for example 7d")
    return timedelta(seconds=seconds)
