"""Durations on the command line."""

from __future__ import annotations

from datetime import timedelta

from omnigraph.cli.errors import UsageFault
from omnigraph.errors import InputError


def read_duration(text: str) -> timedelta:
    """Parse a duration of an option; `UsageFault` if it is none."""
    from omnigraph.wire.durations import parse_duration

    try:
        return parse_duration(text)
    except InputError as error:
        raise UsageFault(error.message, hint=error.hint) from None
