"""`RequestObserver`: what the engine did for one request: plan, phases, cache misses and retries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from omnigraph.observer import Cache, Observer, Phase, Progress, Service, Step

if TYPE_CHECKING:
    from omnigraph.server.observability.tracing import RequestTrace


class RequestObserver:
    """The observer of one request. It passes commits, retries and calls on to the observer of the process."""

    __slots__ = (
        "_plan_hash",
        "_process",
        "_progress",
        "missed_plans",
        "missed_tables",
        "phases",
        "query_name",
        "trace",
    )

    def __init__(self, process: Observer | None = None, trace: RequestTrace | None = None) -> None:
        self.trace = trace
        self._process = process
        self._plan_hash: Callable[[], str] | None = None
        self._progress: Progress | None = None
        self.phases: dict[str, float] = {}
        """Seconds by phase."""
        self.query_name: str | None = None
        self.missed_plans = 0
        self.missed_tables = 0

    @property
    def is_planned(self) -> bool:
        """True if a query was compiled."""
        return self._plan_hash is not None

    @property
    def plan_hash(self) -> str | None:
        """The hash of the plan; None before the query is compiled."""
        return self._plan_hash() if self._plan_hash is not None else None

    @property
    def rows(self) -> int | None:
        """Rows after the last operator of the running query; None if the request runs no query."""
        return self._progress.rows if self._progress is not None else None

    def planned(self, name: str, plan_hash: Callable[[], str], progress: Progress | None) -> None:
        """Keep the plan."""
        self.query_name = name
        self._plan_hash = plan_hash
        self._progress = progress

    def phase(self, name: Phase, started: float, ended: float, steps: Sequence[Step] = ()) -> None:
        """Add the time of a phase; a write that starts over has several of each."""
        self.phases[name] = self.phases.get(name, 0.0) + ended - started
        if self.trace is not None:
            self.trace.phase(name, started, ended, steps)

    def headers(self) -> Mapping[str, str]:
        """Return the headers that pass the trace on."""
        return self.trace.headers if self.trace is not None else {}

    def missed(self, cache: Cache) -> None:
        """Count a miss."""
        if cache == "plans":
            self.missed_plans += 1
        else:
            self.missed_tables += 1

    def committed(self, kind: str, seconds: float) -> None:
        """Count a commit."""
        if self._process is not None:
            self._process.committed(kind, seconds)

    def retried(self) -> None:
        """Count a write that starts over."""
        if self._process is not None:
            self._process.retried()

    def called(self, service: Service, operation: str, seconds: float) -> None:
        """Count a call of the storage or of a provider."""
        if self._process is not None:
            self._process.called(service, operation, seconds)
