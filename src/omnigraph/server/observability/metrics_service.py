"""`MetricsService`: the metrics of a server process from their collection to their text."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from omnigraph.observer import process_observer, set_process_observer
from omnigraph.server.deployment.settings import ServerSettings, split_address
from omnigraph.server.observability import log
from omnigraph.server.observability.exposition import VARIABLE, own_text, shared_folder, shared_text
from omnigraph.server.observability.metric_samples import Sampler
from omnigraph.server.observability.metrics import Metrics, load_prometheus
from omnigraph.server.observability.metrics_endpoint import MetricsEndpoint

if TYPE_CHECKING:
    from omnigraph.server.app import Server


FLUSH_S = 1.0
"""The time that the counts of the newest requests are waited for."""


class MetricsService:
    """Collects the metrics of a process. One of several workers shares them; the first process serves their sums."""

    def __init__(self, server: Server) -> None:
        settings = server.holder.current.settings
        folder = os.environ.get(VARIABLE) if settings.workers > 1 else None
        self.metrics = Metrics()
        self._sampler = Sampler(server, self.metrics)
        self._render = shared_text(Path(folder)) if folder else own_text(self.metrics.registry)
        self.endpoint: MetricsEndpoint | None = None
        if folder:
            self._sampler.start()
        elif settings.metrics.bind is not None:
            self.endpoint = MetricsEndpoint(*split_address(settings.metrics.bind), self.text)
            log.log_event("metrics", address=self.endpoint.address)
        set_process_observer(self.metrics)

    def text(self) -> bytes:
        """Return the metrics of this moment in the text format of Prometheus."""
        log.flush(FLUSH_S)  # the thread of the log counts requests
        self._sampler.sample()
        return self._render()

    def close(self) -> None:
        """Stop collecting and serving."""
        if process_observer() is self.metrics:
            set_process_observer(None)
        self._sampler.close()
        if self.endpoint is not None:
            self.endpoint.close()


def make_metrics(server: Server) -> MetricsService | None:
    """Return the metrics of a server; None if they are off."""
    if not server.holder.current.settings.metrics.is_on:
        return None
    service = MetricsService(server)
    server.execution.on_close.append(service.close)
    return service


@contextmanager
def shared_metrics(settings: ServerSettings) -> Iterator[Path | None]:
    """Make the folder of the metrics of several workers, and serve their sums; None if metrics are off.

    The folder and the address exist until the end of the block, in the process that starts the workers.
    """
    if not settings.metrics.is_on:
        yield None
        return
    load_prometheus()
    with shared_folder() as folder:
        endpoint: MetricsEndpoint | None = None
        if settings.metrics.bind is not None:
            endpoint = MetricsEndpoint(*split_address(settings.metrics.bind), shared_text(folder))
            log.log_event("metrics", address=endpoint.address)
        try:
            yield folder
        finally:
            if endpoint is not None:
                endpoint.close()
