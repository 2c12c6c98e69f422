"""The queue of the log: lines are composed and written by one thread, not by the thread that reports an event.

The queue is bounded. If the stream takes lines more slowly than they are reported, further lines below `warn` are
dropped and counted. `flush` waits until everything that was put into the queue is written.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

ITEMS_MAX = 20_000
"""Number of waiting items above which further ones are dropped."""
FLUSH_S = 5.0
PAUSE_S = 0.01
"""The time in which items are collected, so that many are written at once."""
YIELD_S = 0.0002
"""The time after which the thread lets the event loop run, which may wait for the interpreter lock."""

Work = Callable[[], None]


class LogQueue:
    """A queue of functions and the thread that calls them in order. The thread starts with the first item."""

    def __init__(self, limit: int = ITEMS_MAX, pause_s: float = PAUSE_S) -> None:
        self._items: SimpleQueue[Work | threading.Event] = SimpleQueue()
        self._limit = limit
        self._pause_s = pause_s
        self._urgent = threading.Event()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.dropped = 0
        """The number of items that were dropped since the start of the process."""
        self.on_batch: Work | None = None
        """Called after each batch of items, such as the write of the composed lines."""
        self.on_error: Callable[[Exception], None] | None = None

    @property
    def is_own_thread(self) -> bool:
        """True in the thread of the queue."""
        return self._thread is threading.current_thread()

    def put(self, work: Work, *, required: bool = False) -> bool:
        """Call a function in the thread of the queue. A full queue drops what is not required and returns False."""
        if not required and self._items.qsize() >= self._limit:
            self.dropped += 1
            return False
        self._items.put(work)
        if self._thread is None:
            self._start()
        return True

    def flush(self, timeout_s: float = FLUSH_S) -> bool:
        """Wait until all items are done; return False if the time does not suffice."""
        if self._thread is None or self.is_own_thread:
            return True
        done = threading.Event()
        self._items.put(done)
        self._urgent.set()
        return done.wait(timeout_s)

    def _start(self) -> None:
        with self._lock:
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="omnigraph-log", daemon=True)
                self._thread = thread
                thread.start()

    def _run(self) -> None:
        while True:
            first = self._items.get()
            self._urgent.wait(self._pause_s)
            self._urgent.clear()
            flushed = self._do_batch(first)
            if self.on_batch is not None:
                self._do(self.on_batch)
            for event in flushed:
                event.set()

    def _do_batch(self, item: Work | threading.Event | None) -> list[threading.Event]:
        """Do the waiting items; return the events of those that wait for the end of the batch."""
        flushed: list[threading.Event] = []
        since = time.perf_counter()
        while item is not None:
            if isinstance(item, threading.Event):
                flushed.append(item)
            else:
                self._do(item)
                # A change of thread takes longer than most items.
                if time.perf_counter() - since > YIELD_S:
                    time.sleep(0)
                    since = time.perf_counter()
            try:
                item = self._items.get_nowait()
            except Empty:
                item = None
        return flushed

    def _do(self, work: Work) -> None:
        try:
            work()
        except Exception as error:
            if self.on_error is not None:
                self.on_error(error)
