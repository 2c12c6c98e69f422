"""Randomised backoff after a lost race."""

from __future__ import annotations

import time
from random import SystemRandom

RANDOM = SystemRandom()
"""Random numbers for pauses. The generator of the module `random` belongs to the application, which may have seeded it.
"""


def pause(attempt: int) -> None:
    """Sleep for a random time that grows with each attempt, so that competing writers do not retry in lockstep."""
    time.sleep(RANDOM.uniform(0, min(0.2, 0.002 * 2 ** min(attempt, 7))))
