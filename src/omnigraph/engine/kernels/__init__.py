"""Compiled kernels, loaded when loading pays.

Some loops cannot run at full speed in numpy. numba compiles them, one module per subject. Each has a numpy fallback
with bit-identical results; the tests compare the two. Floating-point sums have one implementation only
(`engine.exec.reducers`) and no compiled form. Importing numba takes longer than most queries. The fallbacks therefore
run until their total time exceeds the load time; then the kernels load in the background. A command that runs one query
never imports numba. numba is optional.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from threading import Lock, Thread
from typing import Any

from omnigraph.engine import tuning

_SUBJECTS = ("bfs_kernels", "bm25", "vectors")

_log = logging.getLogger(__name__)


class KernelLoader:
    """The loaded kernels and the total run time of their fallbacks."""

    def __init__(self) -> None:
        self.modules: dict[str, Any] = {}
        self.spent_s = 0.0
        self.asked = False
        self.lock = Lock()

    def spend(self, seconds: float) -> None:
        """Add the run time of a fallback; start loading the kernels once the total exceeds the load time."""
        with self.lock:
            self.spent_s += seconds
            due = self.spent_s > tuning.current.kernel_load_s and not self.asked
            self.asked = self.asked or due
        if due:
            # Not a daemon: a process that exits during compilation could crash.
            Thread(target=load, name="omnigraph-kernels").start()


_loader = KernelLoader()


def find(subject: str) -> Any | None:
    """Return the kernels of a subject; None if they are not loaded and the numpy fallback must run."""
    return _loader.modules.get(subject)


@contextmanager
def timed_fallback() -> Iterator[None]:
    """Measure a numpy fallback; its run time counts towards loading the kernels."""
    started = time.perf_counter()
    try:
        yield
    finally:
        _loader.spend(time.perf_counter() - started)


@contextmanager
def isolated() -> Iterator[KernelLoader]:
    """Use a new loader, without kernels, until the block ends."""
    global _loader
    before, _loader = _loader, KernelLoader()
    try:
        yield _loader
    finally:
        _loader = before


def load() -> bool:
    """Load the kernels now, as a server or a benchmark does; return True if they are available."""
    _loader.asked = True
    try:
        _loader.modules.update({name: import_module(f"{__name__}.{name}") for name in _SUBJECTS})
    except (ImportError, RuntimeError, OSError) as error:
        # numba does not support the platform or cannot write its cache: the fallbacks continue to run.
        _log.warning("no compiled kernels: %s", error)
        return False
    return True
