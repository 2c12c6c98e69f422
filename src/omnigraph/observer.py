"""`Observer`: receives what the engine does for one operation: its plan, its phases, its commits and its calls.

A server sets an observer for each request and one for the whole process. Without an observer, a report of the engine
costs the look at a context variable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import Literal, NamedTuple, ParamSpec, Protocol, TypeVar

Phase = Literal["compile", "run", "stage", "publish"]
Cache = Literal["plans", "tables"]
Service = Literal["storage", "embedding"]

P = ParamSpec("P")
T = TypeVar("T")


class Progress(Protocol):
    """The state of a running query; other threads read it."""

    rows: int
    """Rows after the last operator."""


class Step(NamedTuple):
    """One operator of a profiled run."""

    name: str
    rows: int
    ms: float
    notes: tuple[str, ...]


class Observer(Protocol):
    """Receives reports of the engine, in the thread of the operation. Times are those of `time.perf_counter`."""

    def planned(self, name: str, plan_hash: Callable[[], str], progress: Progress | None) -> None:
        """Take note of the query that is about to run; the hash of its plan is computed on demand."""

    def phase(self, name: Phase, started: float, ended: float, steps: Sequence[Step] = ()) -> None:
        """Take note of a phase that ended; a profiled run has steps."""

    def missed(self, cache: Cache) -> None:
        """Take note of an entry that a cache did not contain."""

    def committed(self, kind: str, seconds: float) -> None:
        """Take note of a commit and the time of its staging and publish."""

    def retried(self) -> None:
        """Take note of a write that starts over because the branch moved."""

    def headers(self) -> Mapping[str, str]:
        """Return the headers that a request to another service carries, such as that of a trace."""

    def called(self, service: Service, operation: str, seconds: float) -> None:
        """Take note of a call of the storage or of a provider of embeddings."""


_process: Observer | None = None
_operation: ContextVar[Observer | None] = ContextVar("omnigraph_observer", default=None)


def current() -> Observer | None:
    """Return the observer of this operation, else that of the process; None if there is none."""
    return _operation.get() or _process


class observed:  # noqa: N801 (used like a function; a generator would take as long as a small query)
    """Context manager: report the work of a block to an observer."""

    __slots__ = ("_observer", "_token")

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def __enter__(self) -> None:
        self._token = _operation.set(self._observer)

    def __exit__(self, *_: object) -> None:
        _operation.reset(self._token)


def outgoing_headers() -> Mapping[str, str]:
    """Return the headers that a request of this operation to another service carries."""
    observer = _operation.get()
    return observer.headers() if observer is not None else {}


def set_process_observer(observer: Observer | None) -> None:
    """Set the observer of the process; None removes it."""
    global _process
    _process = observer


def process_observer() -> Observer | None:
    """Return the observer of work that belongs to no operation with an observer of its own."""
    return _process


def timed(service: Service, operation: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator that reports the time of each call of a function."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            observer = _operation.get() or _process
            if observer is None:
                return function(*args, **kwargs)
            started = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                observer.called(service, operation, time.perf_counter() - started)

        return call

    return decorate
