"""The life of one server process: serve, reload, drain.

A stop signal makes the process not ready. After `drain_s` it accepts no further connection. Reads and maintenance get
10 s and are then cancelled; other writes get `shutdown_grace_s`. The exit code is 1 if a write had to be left. A second
signal ends the process at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, Protocol

import uvicorn
from starlette.types import ASGIApp

from omnigraph.server.deployment.reload import watch
from omnigraph.server.deployment.settings import ServerSettings
from omnigraph.server.deployment.state import ServerState, StateHolder
from omnigraph.server.messages.request_heads import HeadCheck
from omnigraph.server.process.certificates import load_certificate, make_tls_context
from omnigraph.server.process.connections import ConnectionUsage, guarded_protocol, sweep
from omnigraph.server.process.listening import BACKLOG, listen_address
from omnigraph.server.process.service_manager import ServiceManager

READ_GRACE_S = 10.0
"""The time that reads get to finish at shutdown."""
_TICK_S = 0.02
_LAST_WORDS_S = 1.0
"""The time that answers of cancelled reads get to be sent."""
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
RELOAD_SIGNAL = getattr(signal, "SIGHUP", None)
_log = logging.getLogger(__name__)


class Work(Protocol):
    """The requests that a process executes."""

    @property
    def in_flight_reads(self) -> int:
        """The number of reads and streams that run."""

    @property
    def in_flight_writes(self) -> int:
        """The number of writes that run."""

    def cancel_reads(self) -> None:
        """Cancel every running read and stream, and maintenance, which can be repeated at any time."""

    def close(self) -> None:
        """Release idle threads."""


class _UvicornServer(uvicorn.Server):
    """uvicorn without its signal handlers."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `Lifecycle`."""
        yield


class Lifecycle:
    """Serves one application on a listening socket until `stop` is called."""

    def __init__(
        self,
        holder: StateHolder,
        app: ASGIApp,
        work: Work,
        listener: socket.socket,
        *,
        usage: ConnectionUsage | None = None,
        read_grace_s: float = READ_GRACE_S,
        manager: ServiceManager | None = None,
    ) -> None:
        self._holder = holder
        self._work = work
        self.listener = listener
        self._read_grace_s = read_grace_s
        self._manager = manager or ServiceManager()
        self.settings: ServerSettings = holder.current.settings
        self._usage = usage if usage is not None else ConnectionUsage()
        self._server = _UvicornServer(self._config(app))
        self._usage.open = self.connections
        # The default pool of the loop is joined at its end; a reload must not delay the end of the process.
        self._reloads = ThreadPoolExecutor(1, "omnigraph-reload")
        self._stop = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = False
        self._left_writes = False
        self.has_left_work = False
        """True if threads still execute requests after `run`; the interpreter would wait for them."""

    def run(self, on_ready: Callable[[], None], *, with_signals: bool = True) -> int:
        """Serve until `stop`; return the exit code. Calls `on_ready` when connections are accepted."""
        with contextlib.ExitStack() as stack:
            runner = stack.enter_context(asyncio.Runner(loop_factory=self._server.config.get_loop_factory()))
            if with_signals:
                self._take_signals()
            code = runner.run(self._run(on_ready))
            if self.has_left_work and threading.current_thread() is threading.main_thread():
                # The end of the loop waits for its tasks, and some of them wait for a thread. The process ends anyway.
                stack.pop_all()
            return code

    @property
    def connections(self) -> Collection[Any]:
        """The open connections."""
        return self._server.server_state.connections

    # -- called by signals and by the supervisor of workers ----------------------------------------

    def stop(self) -> None:
        """Begin the shutdown; a second call ends the process at once."""
        if self._stopping:
            end_process(1)
        self._stopping = True
        self._holder.phase = "draining"
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)

    def reload(self, reason: str = "SIGHUP", on_done: Callable[[bool], None] | None = None) -> None:
        """Reload in a thread, after a reload that is under way; `on_done` is told whether it succeeded."""
        if self._loop is None:
            self._reloads.submit(self._reload, reason, on_done)
        elif not self._loop.is_closed():
            # A signal handler must not take the lock of the pool, which the interrupted code may hold.
            self._loop.call_soon_threadsafe(self._reloads.submit, self._reload, reason, on_done)

    def _reload(self, reason: str, on_done: Callable[[bool], None] | None) -> None:
        self._manager.reloading()
        succeeded = self._holder.reload(reason).ok
        if on_done is not None:
            on_done(succeeded)
        if not self._stopping:
            self._manager.ready(status_text(self.listener, reloaded=succeeded))

    def _take_signals(self) -> None:
        for number in STOP_SIGNALS:
            signal.signal(number, lambda *_: self.stop())
        if RELOAD_SIGNAL is not None:
            signal.signal(RELOAD_SIGNAL, lambda *_: self.reload())

    # -- serving -----------------------------------------------------------------------------------

    async def _run(self, on_ready: Callable[[], None]) -> int:
        self._loop = asyncio.get_running_loop()
        if self._stopping:
            self._stop.set()
        serving = asyncio.ensure_future(self._server.serve([self.listener]))
        while not self._server.started:
            if serving.done():
                serving.result()
                return 1
            await asyncio.sleep(_TICK_S)
        if self._holder.phase == "starting":
            self._holder.phase = "serving"
        on_ready()
        self._manager.ready(status_text(self.listener))
        helpers = [
            asyncio.ensure_future(self._manager.keep_alive()),
            asyncio.ensure_future(sweep(self.connections)),
            asyncio.ensure_future(watch(self._holder, self._reloads)),
        ]
        await self._stop.wait()
        self._manager.stopping()
        await self._drain(serving)
        for helper in helpers:
            helper.cancel()
        self._work.close()
        self._reloads.shutdown(wait=False, cancel_futures=True)
        return self._finish()

    async def _drain(self, serving: asyncio.Future[None]) -> None:
        """Stop accepting, wait for the work in flight, and cancel what takes too long."""
        _log.info("stopping: %d reads and %d writes in flight", self._work.in_flight_reads, self._work.in_flight_writes)
        settings = self._holder.current.settings
        await asyncio.sleep(settings.drain_s)
        self._server.should_exit = True
        begin, cancelled_at = time.monotonic(), None
        # Work in the background has no connection.
        while not serving.done() or self._work.in_flight_writes > 0:
            now = time.monotonic()
            if cancelled_at is None and now - begin >= self._read_grace_s:
                self._work.cancel_reads()
                cancelled_at = now
            writing = self._work.in_flight_writes > 0
            if writing and now - begin >= settings.shutdown_grace_s:
                self._left_writes = True
                break
            if not writing and cancelled_at is not None and now - cancelled_at >= _LAST_WORDS_S:
                break
            await asyncio.sleep(_TICK_S)
        self._server.force_exit = True
        for connection in tuple(self.connections):
            connection.transport.abort()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(serving), _LAST_WORDS_S)

    def _finish(self) -> int:
        self.has_left_work = self._work.in_flight_reads + self._work.in_flight_writes > 0
        if self._holder.current.audit is not None:
            self._holder.current.audit.close()
        if self._left_writes:
            _log.error("%d writes did not finish in time; the next open recovers them", self._work.in_flight_writes)
            return 1
        return 0

    def _config(self, app: ASGIApp) -> uvicorn.Config:
        settings = self.settings
        limits = settings.limits
        return uvicorn.Config(
            HeadCheck(app, limits),
            http=guarded_protocol(limits, self._usage),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=bool(settings.proxies),
            forwarded_allow_ips=list(settings.proxies),
            backlog=BACKLOG,
            timeout_keep_alive=int(limits.idle_s),
            h11_max_incomplete_event_size=limits.header_bytes + limits.url_bytes,
            ssl_context_factory=self._make_context if settings.tls.cert is not None else None,
        )

    def _make_context(self, *_: Any) -> ssl.SSLContext:
        context = make_tls_context(self.settings.tls)

        def renew(state: ServerState) -> None:
            load_certificate(context, state.settings.tls)

        self._holder.on_change.append(renew)
        return context


def status_text(listener: socket.socket, *, reloaded: bool = True) -> str:
    """Return the state of a server in words, for `systemctl status`."""
    failure = "" if reloaded else "; the last reload failed, see the log"
    return f"listening on {listen_address(listener)}{failure}"


def end_process(code: int) -> NoReturn:
    """End the process without waiting for its threads."""
    # A signal can arrive during a write to the same stream, which must not prevent the end.
    with contextlib.suppress(Exception):
        sys.stdout.flush()
        logging.shutdown()
    os._exit(code)
