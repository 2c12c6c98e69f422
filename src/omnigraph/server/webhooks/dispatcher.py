"""`WebhookDispatcher`: the webhooks of one server process.

There is one stream per webhook and graph. Several processes have the same streams; each stream is owned by one of them.
Steps of streams run in threads of their own, so a slow receiver delays neither requests nor, as long as a thread is
free, other streams. A reload replaces the streams whose settings changed. A graph that is read only has none, because
it cannot keep their progress.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.graph_handle import context_of
from omnigraph.operations.proposals.proposals import logs_of
from omnigraph.server.deployment.state import ServerState
from omnigraph.server.webhooks.events import EventSource, GraphSource, PolicySource
from omnigraph.server.webhooks.proposal_source import ProposalSource
from omnigraph.server.webhooks.sending import send
from omnigraph.server.webhooks.stream import BACKOFF_S, Send, WebhookStream
from omnigraph.server.webhooks.targets import Webhook
from omnigraph.versioning.upkeep.owned_document import OwnedDocument, webhook_progress

if TYPE_CHECKING:
    from omnigraph.server.app import Server

THREADS = 8
TICK_S = 0.2
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class StreamKey:
    """What a stream depends on; a stream with another key replaces it."""

    webhook: Webhook
    graph_id: str
    graph: Graph
    has_row_rules: bool


@dataclass
class _Entry:
    stream: WebhookStream
    due: float = 0.0
    running: Future[float] | None = None


class WebhookDispatcher:
    """Runs the streams of a process. It also is the report of their outcomes, which it counts."""

    def __init__(self, server: Server, *, deliver: Send = send, clock: Callable[[], float] = time.time) -> None:
        self._server = server
        self._send = deliver
        self._clock = clock
        self._threads = ThreadPoolExecutor(THREADS, "omnigraph-webhook")
        self._entries: dict[StreamKey, _Entry] = {}
        self._state: ServerState | None = None
        server.execution.on_close.append(self.close)

    async def run(self) -> None:
        """Run due steps, until cancelled."""
        while True:
            self.tick()
            await asyncio.sleep(TICK_S)

    def tick(self) -> None:
        """Adopt a new state, and start the steps that are due."""
        state = self._server.holder.current
        if state is not self._state:
            self._adopt(state)
        now = self._clock()
        for entry in self._entries.values():
            if entry.running is not None and entry.running.done():
                entry.due, entry.running = entry.running.result(), None
            if entry.running is None and entry.due <= now and not self._server.is_draining:
                entry.running = self._threads.submit(self._step, entry.stream)

    def _step(self, stream: WebhookStream) -> float:
        try:
            return stream.step()
        except OmniGraphError as error:
            text = "webhook '%s', graph '%s': the events cannot be read (%s)"
            _log.warning(text, stream.webhook.name, stream.graph_id, error.code)
        except Exception:
            _log.exception("webhook '%s', graph '%s' failed", stream.webhook.name, stream.graph_id)
        return self._clock() + BACKOFF_S

    def _adopt(self, state: ServerState) -> None:
        self._state = state
        wanted = stream_keys(state)
        gone = [key for key in self._entries if key not in wanted]
        left = {(key.webhook.name, key.graph_id): self._threads.submit(_leave, self._entries.pop(key)) for key in gone}
        for key in wanted:
            if key not in self._entries:
                # It begins when its predecessor has left the progress to it.
                before = left.get((key.webhook.name, key.graph_id))
                self._entries[key] = _Entry(self._make(key), running=before)

    def _make(self, key: StreamKey) -> WebhookStream:
        sources: dict[str, EventSource] = {
            "graph": GraphSource(key.graph_id, key.graph, hides_changes=key.has_row_rules),
            "policy": PolicySource(partial(self._digests, key.graph_id), self._clock),
            "proposals": ProposalSource(logs_of(context_of(key.graph).repository)),
        }
        document = progress_of(key.graph, key.webhook.name)
        return WebhookStream(key.webhook, key.graph_id, document, sources, self._send, self, self._clock)

    def _digests(self, graph_id: str) -> tuple[str | None, str | None]:
        policies = self._server.holder.current.policies
        graph = policies.graphs.get(graph_id)
        return (graph.digest if graph else None), (policies.server.digest if policies.server else None)

    def close(self) -> None:
        """Leave all streams to other processes, and end the threads."""
        for entry in self._entries.values():
            if entry.running is None:
                _release(entry.stream)
            else:
                entry.running.add_done_callback(partial(_release_after, entry.stream))
        self._entries.clear()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # -- reports ---------------------------------------------------------------------------------

    def delivered(self, webhook: str, graph: str, lag_s: float) -> None:
        """Count a delivery."""
        metrics = self._server.reporter.metrics
        if metrics is not None:
            metrics.child("webhook_tries", webhook, graph, "delivered").inc()
            metrics.child("webhook_lag_seconds", webhook, graph).observe(max(lag_s, 0.0))

    def failed(self, webhook: str, graph: str, *, refused: bool) -> None:
        """Count a failure."""
        metrics = self._server.reporter.metrics
        if metrics is not None:
            metrics.child("webhook_tries", webhook, graph, "refused" if refused else "failed").inc()

    def dropped(self, webhook: str, graph: str) -> None:
        """Count an event that is not tried again."""
        metrics = self._server.reporter.metrics
        if metrics is not None:
            metrics.child("webhook_dropped", webhook, graph).inc()


def progress_of(graph: Graph, name: str) -> OwnedDocument:
    """Return the document of the progress of a webhook in a graph."""
    return webhook_progress(context_of(graph).repository, name)


def stream_keys(state: ServerState) -> list[StreamKey]:
    """Return the streams of a state, by webhook and graph."""
    return [
        StreamKey(webhook, served.graph_id, served.graph, served.has_row_rules)
        for webhook in state.webhooks
        for served in state.graphs.values()
        if served.graph is not None and not served.read_only and webhook.has_graph(served.graph_id)
    ]


def _leave(entry: _Entry) -> float:
    """Wait for the running step of a stream, and release it; its successor is due at once."""
    if entry.running is not None:
        wait([entry.running])
    _release(entry.stream)
    return 0.0


def _release_after(stream: WebhookStream, _: Future[float]) -> None:
    _release(stream)


def _release(stream: WebhookStream) -> None:
    try:
        stream.release()
    except OmniGraphError as error:
        # Its lease expires.
        _log.warning("webhook '%s' cannot be left to another process (%s)", stream.webhook.name, error.code)
