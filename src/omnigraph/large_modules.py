"""The import of large modules."""

from __future__ import annotations

import gc
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext


@contextmanager
def importing_large_modules(*, freeze: bool = False, pandas: bool = True) -> Iterator[None]:
    """Disable garbage collection and delay interrupts while large modules are imported.

    Collection would find nothing. An extension module can discard an interrupt during its initialisation, so the
    handler of interrupts receives it at the end of the block. `freeze` exempts every object of the process from later
    collections; it is for programs, not for libraries. Without `pandas`, the block does not import pandas.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        with _delayed_interrupts(), nullcontext() if pandas else _without_pandas():
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


@contextmanager
def _without_pandas() -> Iterator[None]:
    """Hide pandas from the imports of the block, unless it is imported already.

    pyarrow imports pandas, if it is installed, when it converts its first value, in order to recognise objects of
    pandas. This happens when `pyarrow.dataset` is imported, takes as long as all of Lance, and is decided once in a
    process. Afterwards, `import pandas` and `Table.to_pandas` work as usual; only a Series or DataFrame that is passed
    to pyarrow is no longer recognised.
    """
    if "pandas" in sys.modules:
        yield
        return
    sys.meta_path.insert(0, _NoPandas)
    try:
        yield
    finally:
        sys.meta_path.remove(_NoPandas)


class _NoPandas:
    """A finder of modules that reports pandas as not installed."""

    @staticmethod
    def find_spec(name: str, *_: object) -> None:
        """Refuse pandas; leave every other module to the next finder."""
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)
