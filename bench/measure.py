"""Time functions against one another.

The functions alternate in short rounds, so other load on the machine affects all of them. The result is the median over
many rounds. The garbage collector is off, as in `timeit`.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Mapping
from statistics import median
from time import perf_counter


def keeping_bytecode() -> dict[str, str]:
    """The environment of a new process that uses compiled bytecode, as that of an installed package does."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def medians_us(functions: Mapping[str, Callable[[], object]], *, rounds: int, calls: int) -> dict[str, float]:
    """Microseconds per call of each function: the median over `rounds` rounds of `calls` calls."""
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for function in functions.values():
        function()  # fill caches and load modules before timing
    collecting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, function in functions.items():
                seconds[name].append(_time(function, calls))
    finally:
        if collecting:
            gc.enable()
    return {name: median(taken) / calls * 1e6 for name, taken in seconds.items()}


def _time(function: Callable[[], object], calls: int) -> float:
    start = perf_counter()
    for _ in range(calls):
        function()
    return perf_counter() - start
