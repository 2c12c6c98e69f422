"""Waiting for a state. Tests wait for conditions and events, never for a time to pass."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

WAIT_S = 60.0
"""The time after which a condition counts as never reached; no test passes because of it."""
_PAUSE_S = 0.01


def wait_for(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {WAIT_S:g} s")
        time.sleep(_PAUSE_S)


async def wait_until(condition: Callable[[], object], what: str = "the condition") -> None:
    """Wait in a coroutine until a condition holds."""
    end = time.monotonic() + WAIT_S
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not happen within {WAIT_S:g} s")
        await asyncio.sleep(_PAUSE_S)
