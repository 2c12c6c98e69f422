"""What to do after a lost race: wait, and not for as long as the others."""

from __future__ import annotations

import random
import time


def pause(attempt: int) -> None:
    """Wait a little, longer after each lost race, so that writers do not march in step."""
    time.sleep(random.uniform(0, min(0.2, 0.002 * 2 ** min(attempt, 7))))  # noqa: S311
