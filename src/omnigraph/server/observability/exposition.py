"""The exposition of metrics: the text of one process, or of several that share a folder of memory-mapped files.

With several workers, the first process makes the folder before it starts them. Each worker writes its values to files
there; whoever is scraped adds them up. Counters of a worker that ended are kept, its gauges are removed.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from omnigraph.server.observability.metrics import load_prometheus

VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
"""The variable that tells prometheus-client to use files; read when the package is imported."""
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_LIVE_FILE = re.compile(r"gauge_live\w+_(\d+)\.db")
_OLDEST = "process_start_time_seconds"


@contextmanager
def shared_folder() -> Iterator[Path]:
    """Make the folder of the metrics of several processes; it is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-metrics-"))
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = str(folder)
    try:
        yield folder
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before
        shutil.rmtree(folder, ignore_errors=True)


def forget_process(folder: Path, pid: int) -> None:
    """Remove the gauges of a process that ended."""
    from prometheus_client.multiprocess import mark_process_dead  # noqa: PLC0415

    mark_process_dead(pid, str(folder))  # type: ignore[no-untyped-call]


def own_text(registry: Any) -> Callable[[], bytes]:
    """Return a function that renders the metrics of this process."""
    prometheus = load_prometheus()
    prometheus.ProcessCollector(registry=registry)
    return lambda: bytes(prometheus.generate_latest(registry))


def shared_text(folder: Path) -> Callable[[], bytes]:
    """Return a function that renders the sums of the metrics of all workers."""
    prometheus = load_prometheus()
    from prometheus_client.multiprocess import MultiProcessCollector  # noqa: PLC0415

    def render() -> bytes:
        registry = prometheus.CollectorRegistry()
        MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]
        registry.register(_Processes(folder))
        return bytes(prometheus.generate_latest(registry))

    return render


class _Processes:
    """Process metrics of all workers: sums, and the start of the oldest one."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterator[Any]:
        """Yield the metrics."""
        prometheus = load_prometheus()
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily  # noqa: PLC0415

        found: dict[str, tuple[str, str, list[float]]] = {}
        for pid in sorted(self._pids()):
            collector = prometheus.ProcessCollector(pid=lambda pid=pid: pid, registry=None)
            for family in collector.collect():
                values = found.setdefault(family.name, (family.type, family.documentation, []))[2]
                values.extend(sample.value for sample in family.samples)
        kinds: Mapping[str, Any] = {"counter": CounterMetricFamily, "gauge": GaugeMetricFamily}
        for name, (kind, text, values) in found.items():
            value = min(values) if name == _OLDEST else sum(values)
            yield kinds[kind](name, text, value=value)

    def _pids(self) -> set[int]:
        matches = (_LIVE_FILE.fullmatch(path.name) for path in self._folder.glob("gauge_live*.db"))
        return {int(match[1]) for match in matches if match is not None}
