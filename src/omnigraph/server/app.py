"""The ASGI application: the route table as a router, and the checks that precede every request.

A graph-scoped route exists twice: at its path for the default graph, and below `/graphs/{graph_id}`.
"""

from __future__ import annotations

import asyncio
import time
from functools import lru_cache
from urllib.parse import urlsplit

from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Receive, Scope, Send

from omnigraph.operations.exploration.graph_figures import FiguresCache
from omnigraph.server.auth.failed_tries import FailedTries
from omnigraph.server.deployment.graph_tuning import apply_settings
from omnigraph.server.deployment.known_commits import KnownCommits
from omnigraph.server.deployment.settings import is_loopback
from omnigraph.server.deployment.state import ServerState, StateHolder
from omnigraph.server.errors import RequestFault
from omnigraph.server.exchange import Exchange, answer_fault
from omnigraph.server.messages import request as read
from omnigraph.server.observability.metrics_service import make_metrics
from omnigraph.server.observability.tracing import Tracing
from omnigraph.server.process.connections import ConnectionUsage
from omnigraph.server.process.loop_turns import LoopTurns, RefusalPace
from omnigraph.server.reporter import Reporter
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from omnigraph.server.router import Router
from omnigraph.server.scheduling.admission import Admission
from omnigraph.server.scheduling.execution import Execution
from omnigraph.server.scheduling.inline_reads import InlineReads
from omnigraph.server.scheduling.maintainer import Maintainer
from omnigraph.server.scheduling.memory import MemoryGuard
from omnigraph.server.scheduling.operations import Operations
from omnigraph.server.webhooks.dispatcher import WebhookDispatcher
from omnigraph.wire.server_state import NotReady

GRAPH_PREFIX = "/graphs/{graph_id}"
_CORS_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_CORS_HEADERS = (
    "Authorization",
    "Content-Type",
    "Idempotency-Key",
    "If-Match",
    "If-None-Match",
    "Last-Event-ID",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
    "Omnigraph-If-Graph-Commit",
    "Omnigraph-Min-Commit",
    "Omnigraph-Timeout-Ms",
    "Range",
    "X-Request-Id",
)
_CORS_EXPOSED = ("ETag", "Location", "Omnigraph-Commit", "Retry-After", "Server-Timing", "X-Request-Id")


class Server:
    """The parts of one server process that its requests share."""

    def __init__(self, holder: StateHolder) -> None:
        limits = holder.current.settings.limits
        self.holder = holder
        self.execution = Execution(limits.reads, limits.exports, limits.streams)
        self.admission = Admission()
        self.operations = Operations()
        self.failed_tries = FailedTries()
        self.inline_reads = InlineReads()
        self.known_commits = KnownCommits()
        self.memory = MemoryGuard()
        self.maintainer = Maintainer(self)
        holder.on_change.append(self._apply)
        self._apply(holder.current)
        self.connections = ConnectionUsage()
        self.figures = FiguresCache()
        self.reporter = Reporter()
        self.metrics = make_metrics(self)
        self.tracing = Tracing() if holder.current.settings.traces.enabled else None
        self.reporter.metrics = self.metrics.metrics if self.metrics is not None else None
        self.webhooks = WebhookDispatcher(self)
        self.loop_turns = LoopTurns()
        self.refusal_pace = RefusalPace()
        self.started = time.time()

    def _apply(self, state: ServerState) -> None:
        """Apply the settings of a new state to what lives longer than a state."""
        self.memory.configure(state.settings)
        apply_settings(state.graphs.values(), state.settings)

    @property
    def is_draining(self) -> bool:
        """True once the process shuts down."""
        return self.holder.phase == "draining"

    def not_ready_reasons(self) -> list[NotReady]:
        """Return why the process cannot do its work; empty if it can. The reasons name no graph and no path."""
        if self.is_draining:
            return ["shutting_down"]
        if not self.memory.is_ready:
            return ["memory_high"]
        ready = any(served.is_ready for served in self.holder.current.graphs.values())
        return [] if ready else ["graph_unavailable"]


class Application:
    """The ASGI application of a server process."""

    def __init__(self, holder: StateHolder) -> None:
        self.server = Server(holder)
        self._router = make_router()
        self._cors: tuple[tuple[str, ...], ASGIApp] = ((), self._route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one HTTP request, or the messages of the life cycle."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            await self._with_cors(self.server.holder.current)(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1008})

    async def _live(self, receive: Receive, send: Send) -> None:
        """Watch the memory, maintain the graphs and send webhooks between the messages of start and shutdown.

        `lifecycle` starts and stops the other parts.
        """
        helpers: list[asyncio.Task[None]] = []
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                helpers.append(asyncio.create_task(self.server.memory.watch(self.server)))
                helpers.append(asyncio.create_task(self.server.maintainer.run()))
                helpers.append(asyncio.create_task(self.server.webhooks.run()))
                await send({"type": "lifespan.startup.complete"})
            elif message["type"] == "lifespan.shutdown":
                for helper in helpers:
                    helper.cancel()
                await send({"type": "lifespan.shutdown.complete"})
                return

    def _with_cors(self, state: ServerState) -> ASGIApp:
        """Return the application behind the allow list of origins in effect."""
        origins = state.settings.cors.origins
        if origins != self._cors[0]:
            app: ASGIApp = CORSMiddleware(
                self._route,
                allow_origins=list(origins),
                allow_methods=_CORS_METHODS,
                allow_headers=_CORS_HEADERS,
                expose_headers=_CORS_EXPOSED,
            )
            self._cors = (origins, app if origins else self._route)
        return self._cors[1]

    async def _route(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["omnigraph.headers"] = read.headers_of(scope)
        try:
            check_url(scope, self.server.holder.current)
            route, scope["path_params"] = self._router.find(scope["method"], scope["raw_path"].decode("latin-1"))
        except RequestFault as fault:
            await answer_fault(fault, scope, receive, send, self.server.reporter)
            return
        await Exchange(self.server, route, scope, receive).handle(send)


def make_router() -> Router[Route]:
    """Return the router of the route table."""
    router: Router[Route] = Router()
    for route in ROUTES:
        router.add(route.method, route.path, route)
        if route.scope == "graph":
            router.add(route.method, GRAPH_PREFIX + route.path, route)
    return router


def check_url(scope: Scope, state: ServerState) -> None:
    """Refuse a URL that is too long, and in open and single-user mode a host or origin that is not local.

    A web page that resolves its own name to a loopback address could otherwise use the server of this machine.
    """
    limit = state.settings.limits.url_bytes
    if len(scope["raw_path"]) + len(scope["query_string"]) > limit:
        raise RequestFault(f"the URL exceeds the limit of {limit:,} bytes", status=414, code="url_too_long")
    open_mode = state.authenticator is None and state.settings.is_loopback
    if not (open_mode or state.mode == "local") or state.settings.socket_path is not None:
        return
    headers = scope["omnigraph.headers"]
    for name, value in (("Host", headers.get("host")), ("Origin", headers.get("origin"))):
        if value is not None and not _is_local(value, name) and value not in state.settings.cors.origins:
            raise RequestFault(
                f"the header {name} names '{value}', which is not this machine",
                status=403,
                code="foreign_origin",
                hint="without tokens and in single-user mode, a server answers requests to localhost only",
            )


@lru_cache(maxsize=64)
def _is_local(value: str, header: str) -> bool:
    try:
        host = urlsplit(value if header == "Origin" else f"//{value}").hostname
    except ValueError:
        return False
    return host is not None and is_loopback(host)


def create_app(holder: StateHolder) -> Application:
    """Return the application that serves a state."""
    return Application(holder)
