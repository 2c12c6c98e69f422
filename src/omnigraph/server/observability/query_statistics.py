"""Statistics of queries by plan: which plans took the most time in the last hour.

Queries that differ only in constants have the same plan hash. The times are summed by minute, so that old ones can be
forgotten.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace

WINDOW_MINUTES = 60
PLANS_MAX = 1_000
"""Plans that are kept of each minute; further ones are not counted."""

Key = tuple[str, str]
"""Graph and plan hash."""


@dataclass
class PlanStatistics:
    """The executions of one plan."""

    graph: str
    plan_hash: str
    query: str | None
    """The name of the query that was executed last."""
    count: int = 0
    seconds: float = 0.0
    max_s: float = 0.0
    rows: int = 0

    def add(self, other: PlanStatistics) -> None:
        """Add other executions of the same plan, which are newer."""
        self.query = other.query
        self.count += other.count
        self.seconds += other.seconds
        self.max_s = max(self.max_s, other.max_s)
        self.rows += other.rows


class QueryStatistics:
    """The executions of the last hour. Threads may add and read at the same time."""

    def __init__(self) -> None:
        self._minutes: OrderedDict[int, dict[Key, PlanStatistics]] = OrderedDict()
        self._lock = threading.Lock()

    def add(self, executed: PlanStatistics, now: float | None = None) -> None:
        """Count an execution at a time, in seconds since the epoch."""
        minute = int((time.time() if now is None else now) // 60)
        key = (executed.graph, executed.plan_hash)
        with self._lock:
            plans = self._minutes.setdefault(minute, {})
            self._forget(minute)
            known = plans.get(key)
            if known is not None:
                known.add(executed)
            elif len(plans) < PLANS_MAX:
                plans[key] = executed

    def top(self, count: int, now: float | None = None) -> list[PlanStatistics]:
        """Return the plans that took the most time, in descending order."""
        minute = int((time.time() if now is None else now) // 60)
        sums: dict[Key, PlanStatistics] = {}
        with self._lock:
            self._forget(minute)
            for plans in self._minutes.values():
                for key, plan in plans.items():
                    if key in sums:
                        sums[key].add(plan)
                    else:
                        sums[key] = replace(plan)
        return sorted(sums.values(), key=lambda plan: plan.seconds, reverse=True)[:count]

    def _forget(self, minute: int) -> None:
        for old in [each for each in self._minutes if each <= minute - WINDOW_MINUTES]:
            del self._minutes[old]
