"""Interruptible native calls.

numpy, Arrow, Lance and compiled kernels have no checkpoints. `slices`, `in_batches` and `gather` split work into
batches with a checkpoint between them. A call that cannot be split, such as a sort, runs in its own thread while the
calling thread checks the limits (`interruptible`). An abandoned call runs to its end; its result is discarded.
`in_parts` runs a long call on all cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextvars import copy_context
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from omnigraph.arrays import concatenate
from omnigraph.checkpoints import checkpoint, current
from omnigraph.engine import tuning

T = TypeVar("T")
Array = np.ndarray[Any, Any]
Numbers = np.ndarray[Any, np.dtype[np.int64]]


def interruptible(call: Callable[[], T], rows: int | None = None) -> T:
    """Run a native call and check the limits while it runs. `rows` is the size of the call, if known.

    Checkpoints inside the call stop it too.
    """
    checkpoint()
    operation = current.get()
    if operation is None or not operation.limited or (rows is not None and rows < tuning.current.inline_call_rows):
        return call()
    outcome: list[T] = []
    failure: list[BaseException] = []
    done = threading.Event()

    context = copy_context()

    def run() -> None:
        try:
            outcome.append(context.run(call))
        except BaseException as error:
            failure.append(error)
        finally:
            done.set()

    threading.Thread(target=run, name="omnigraph-native", daemon=True).start()
    while not done.wait(tuning.current.poll_s):
        checkpoint()
    if failure:
        raise failure[0]
    checkpoint()
    return outcome[0]


def in_parts(call: Callable[[int, int], T], count: int, rows_min: int) -> list[T]:
    """Apply a native call that releases the interpreter lock to ranges of `count` rows, on all cores, in order.

    A range has at least `rows_min` rows; it takes longer than a thread takes to start. The last range runs in the
    calling thread.
    """
    parts = max(min(os.cpu_count() or 1, count // max(rows_min, 1)), 1)
    ends = [count * part // parts for part in range(parts + 1)]
    found: dict[int, T] = {}
    failures: list[BaseException] = []

    def run(part: int) -> None:
        try:
            found[part] = call(ends[part], ends[part + 1])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(part,), name="omnigraph-part") for part in range(parts - 1)]
    for thread in threads:
        thread.start()
    run(parts - 1)
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]
    return [found[part] for part in range(parts)]


def slices(costs: Numbers, at_once: int) -> Iterator[slice]:
    """Yield consecutive slices whose costs add up to at most `at_once`, or of a single item; a checkpoint precedes
    each.
    """
    running = np.cumsum(costs)
    start = 0
    while start < len(costs):
        checkpoint()
        before = int(running[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(running, before + at_once, side="right")))
        yield slice(start, stop)
        start = stop


def batches(count: int, at_once: int) -> Iterator[slice]:
    """Yield consecutive slices of at most `at_once` rows; a checkpoint precedes each."""
    for start in range(0, count, at_once):
        checkpoint()
        yield slice(start, min(start + at_once, count))


def gather(values: Array, positions: Numbers) -> Array:
    """Return `values[positions]`, computed in batches."""
    if len(positions) <= tuning.current.batch_values:
        return values[positions]
    found = np.empty(len(positions), values.dtype)
    for some in batches(len(positions), tuning.current.batch_values):
        found[some] = values[positions[some]]
    return found


def in_batches(call: Callable[..., Any], *columns: pa.Array) -> pa.Array:
    """Apply a function of rows to columns of equal length; long columns are processed in batches."""
    count = len(columns[0])
    if count <= tuning.current.batch_rows:
        return call(*columns)
    parts: list[pa.Array] = []
    for some in batches(count, tuning.current.batch_rows):
        found = call(*(column.slice(some.start, some.stop - some.start) for column in columns))
        parts.extend(found.chunks if isinstance(found, pa.ChunkedArray) else [found])
    return concatenate(parts)
