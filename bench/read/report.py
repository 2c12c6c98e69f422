"""Figures as a table, and the workloads that miss their targets."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from bench.read.systems import OmniGraph
from bench.read.workloads import Workload

OURS = OmniGraph.name


@dataclass(frozen=True)
class Timing:
    """Milliseconds of one workload in one system."""

    p50: float
    p95: float

    @classmethod
    def of(cls, seconds: list[float]) -> Timing:
        """From the seconds of each call."""
        p50, p95 = np.percentile(np.array(seconds) * 1000, [50, 95])
        return cls(float(p50), float(p95))


@dataclass
class Line:
    """One workload: the times of all systems."""

    workload: Workload
    timings: dict[str, Timing] = field(default_factory=dict)

    def best(self, graph_systems: frozenset[str], *, graph_only: bool = False) -> str | None:
        """The fastest peer."""
        others = [name for name in self.timings if name != OURS and (name in graph_systems or not graph_only)]
        return min(others, key=lambda name: self.timings[name].p50, default=None)

    def ratio(self, other: str | None) -> float | None:
        """Speed-up against a peer."""
        return None if other is None else self.timings[other].p50 / self.timings[OURS].p50


def table(lines: list[Line], systems: list[str], graph_systems: frozenset[str]) -> str:
    """Milliseconds (median, and 95th percentile of ours), the fastest peer, and the speed-up."""
    width = max(len(line.workload.name) for line in lines) + 2
    others = [name for name in systems if name != OURS]
    head = f"{'ms':<{width}}{OURS:>11}{'p95':>9}" + "".join(f"{name:>11}" for name in others) + f"{'ratio':>9}  asked"
    rows = [head]
    for line in lines:
        ours = line.timings[OURS]
        row = f"{line.workload.name:<{width}}{ours.p50:>11.3f}{ours.p95:>9.3f}"
        for name in others:
            timing = line.timings.get(name)
            row += f"{timing.p50:>11.3f}" if timing is not None else f"{'–':>11}"
        graph_only = line.workload.graph_peers_only
        ratio = line.ratio(line.best(graph_systems, graph_only=graph_only))
        row += f"{ratio:>9.1f}" if ratio is not None else f"{'–':>9}"
        rows.append(row + f"  {_asked(line.workload, ratio)}")
    return "\n".join(rows)


def _asked(workload: Workload, ratio: float | None) -> str:
    if workload.at_least is None or ratio is None:
        return ""
    against = "graph peer" if workload.graph_peers_only else "best peer"
    met = "" if ratio >= workload.at_least else "  SHORT"
    return f"≥ {workload.at_least:g} × {against}{met}"


def short(lines: list[Line], graph_systems: frozenset[str]) -> list[str]:
    """The workloads that miss their targets."""
    found = []
    for line in lines:
        workload = line.workload
        ratio = line.ratio(line.best(graph_systems, graph_only=workload.graph_peers_only))
        if workload.at_least is not None and ratio is not None and ratio < workload.at_least:
            found.append(workload.name)
    return found
