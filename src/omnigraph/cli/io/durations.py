"""Durations on the command line."""

from __future__ import annotations

from datetime import timedelta

from omnigraph.cli.errors import UsageFault
from omnigraph.errors import InputError


def read_duration(text: str) -> timedelta:
    """Parse a duration: `90s`, `15m`, `12h`, `7d`, `2w`, or seconds; a fraction is an error."""
    from omnigraph.wire.durations import parse_duration

    try:
        duration = parse_duration(text)
    except InputError as error:
        raise UsageFault(error.message) from None
    if "." in text:
        # Requests carry fractions, because the library accepts any duration.
        raise UsageFault(f"'{text}' is not a duration; write whole numbers of s, m, h, d, w, for example 90m")
    return duration
