"""Randomised backoff after a lost race."""

from __future__ import annotations

import random
import time


def pause(attempt: int) -> None:
    """Sleep for a random time that grows with each attempt, so that competing writers do not retry in lockstep."""
    time.sleep(random.uniform(0, min(0.2, 0.002 * 2 ** min(attempt, 7))))  # noqa: S311
