"""The import of large modules."""

from __future__ import annotations

import gc
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def importing_large_modules(*, freeze: bool = False) -> Iterator[None]:
    """Disable garbage collection and delay interrupts while large modules are imported.

    Collection would find nothing. An extension module can discard an interrupt during its initialisation, so the
    handler of interrupts receives it at the end of the block. `freeze` exempts every object of the process from later
    collections; it is for programs, not for libraries.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with _delayed_interrupts():
            yield
        if freeze:
            gc.freeze()
    finally:
        if collecting:
            gc.enable()


@contextmanager
def _delayed_interrupts() -> Iterator[None]:
    """Delay interrupts until the end of the block. Only the main thread receives interrupts."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        handler(signal.SIGINT, None)
