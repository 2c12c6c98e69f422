"""Several processes on one listening socket.

The first process binds the socket and starts the workers. It tells them through a pipe to reload and to stop; workers
ignore the signals themselves, because a terminal or a service manager sends a signal to all processes at once. A worker
whose pipe is closed stops. A worker that ends unexpectedly is replaced.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Literal

from omnigraph.errors import OmniGraphError
from omnigraph.redaction import redact
from omnigraph.server.deployment.state_builder import StartOptions
from omnigraph.server.process.lifecycle import RELOAD_SIGNAL, STOP_SIGNALS, Lifecycle, end_process, status_text
from omnigraph.server.process.service_manager import ServiceManager

Message = Literal["stop", "reload"]
RESTART_S = 1.0
"""The time between the end of a worker and the start of its replacement."""
_READY = "ready"
_TICK_S = 0.1
_SIGNALS = (*STOP_SIGNALS, *([RELOAD_SIGNAL] if RELOAD_SIGNAL is not None else []))
_log = logging.getLogger(__name__)
StartWorker = Callable[[StartOptions, socket.socket | None], Lifecycle]


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection[Any, Any]
    reloads: int = 0
    """Reloads that were requested and not yet reported as done."""
    failure: OmniGraphError | None = None
    """The error that kept the worker from starting."""

    def receive(self) -> list[bool]:
        """Read the reports of the worker; return for each finished reload whether it succeeded."""
        reloads: list[bool] = []
        with contextlib.suppress(EOFError, OSError):
            while self.pipe.poll():
                message = self.pipe.recv()
                if isinstance(message, OmniGraphError):
                    self.failure = message
                elif isinstance(message, bool):
                    reloads.append(message)
        self.reloads -= len(reloads)
        return reloads

    def send(self, message: Message) -> None:
        try:
            self.pipe.send(message)
        except OSError:
            _log.debug("worker %s has ended", self.process.pid)


class Supervisor:
    """Starts workers, passes signals on to them, and replaces those that end."""

    def __init__(
        self,
        start: StartWorker,
        options: StartOptions,
        listener: socket.socket,
        count: int,
        manager: ServiceManager | None = None,
    ) -> None:
        self._start = start
        self._options = options
        self.listener = listener
        self._count = count
        self._manager = manager or ServiceManager()
        self._workers: list[_Worker] = []
        self.on_end: Callable[[int], None] | None = None
        """Called with the process id of a worker that ended unexpectedly."""
        self._stops = 0
        self._reloads = 0
        self._reloading = False
        self._reloaded = True

    def run(self, on_ready: Callable[[], None]) -> int:
        """Serve until a stop signal; return the exit code. A failure of the first worker to start is raised."""
        for number in STOP_SIGNALS:
            signal.signal(number, self._note_stop)
        if RELOAD_SIGNAL is not None:
            signal.signal(RELOAD_SIGNAL, self._note_reload)
        self._workers.append(self._new_worker())
        self._wait_for(self._workers[0])
        if not self._stops:
            self._workers += [self._new_worker() for _ in range(self._count - 1)]
            on_ready()
            self._manager.ready(status_text(self.listener))
            self._supervise()
        return self._shut_down()

    def _note_stop(self, *_: object) -> None:
        self._stops += 1

    def _note_reload(self, *_: object) -> None:
        self._reloads += 1

    def _new_worker(self) -> _Worker:
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=run_worker, args=(self._start, self._options, self.listener, theirs), name="omnigraph-worker"
        )
        # The tracker unblocks signals when it starts.
        resource_tracker.ensure_running()
        with _blocked_signals():
            process.start()
        theirs.close()
        return _Worker(process, ours)

    def _wait_for(self, worker: _Worker) -> None:
        """Wait until a worker serves; raises the error that keeps it from starting."""
        while not self._stops:
            if not worker.pipe.poll(_TICK_S):
                continue
            try:
                message = worker.pipe.recv()
            except EOFError:
                message = OmniGraphError("a worker ended while it started", code="worker_failed")
            if isinstance(message, OmniGraphError):
                worker.process.join()
                raise message
            return

    def _supervise(self) -> None:
        while not self._stops:
            wait([worker.process.sentinel for worker in self._workers], _TICK_S)
            self._manager.alive()
            if self._reloads:
                self._begin_reload()
            if self._reloading:
                self._finish_reload()
            for index, worker in enumerate(self._workers):
                if not worker.process.is_alive():
                    _log_end(worker)
                    self._report_end(worker)
                    time.sleep(RESTART_S)
                    self._workers[index] = self._new_worker()

    def _report_end(self, worker: _Worker) -> None:
        if self.on_end is not None and worker.process.pid is not None:
            self.on_end(worker.process.pid)

    def _begin_reload(self) -> None:
        self._reloads, self._reloading, self._reloaded = 0, True, True
        self._manager.reloading()
        for worker in self._workers:
            worker.reloads += 1
        self._tell("reload")

    def _finish_reload(self) -> None:
        """Tell the service manager when every worker has reloaded; a replacement starts with the new state."""
        for worker in self._workers:
            self._reloaded &= all(worker.receive())
        if not any(worker.reloads for worker in self._workers):
            self._reloading = False
            self._manager.ready(status_text(self.listener, reloaded=self._reloaded))

    def _tell(self, message: Message) -> None:
        for worker in self._workers:
            worker.send(message)

    def _shut_down(self) -> int:
        self._manager.stopping()
        self._tell("stop")
        alive = self._workers
        while alive and self._stops == 1:
            wait([worker.process.sentinel for worker in alive], _TICK_S)
            alive = [worker for worker in alive if worker.process.is_alive()]
        if alive:
            for worker in alive:
                worker.process.kill()
            return 1
        return max((1 for worker in self._workers if worker.process.exitcode), default=0)


def _log_end(worker: _Worker) -> None:
    """Log the unexpected end of a worker, with the error that kept it from starting."""
    _log.error("worker %s ended with exit code %s", worker.process.pid, worker.process.exitcode)
    worker.receive()
    if worker.failure is not None:
        _log.error("%s", redact(worker.failure.message))
    worker.pipe.close()


@contextlib.contextmanager
def _blocked_signals() -> Iterator[None]:
    """Block the signals of the server; a process that is started meanwhile does not end by one before it ignores them.

    A signal that arrives is delivered at the end of the block.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _ignore_signals() -> None:
    """Ignore the signals of the server, also those that arrived while they were blocked."""
    for number in _SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)


def run_worker(start: StartWorker, options: StartOptions, listener: socket.socket, pipe: Connection[Any, Any]) -> None:
    """Serve in a worker process and obey the messages of the supervisor."""
    _ignore_signals()
    try:
        lifecycle = start(options, listener)
    except OmniGraphError as error:
        pipe.send(error)
        end_process(1)

    def report(succeeded: bool) -> None:
        with contextlib.suppress(OSError):
            pipe.send(succeeded)

    def obey() -> None:
        while True:
            try:
                message: Message = pipe.recv()
            except (EOFError, OSError):
                message = "stop"
            if message == "reload":
                lifecycle.reload(on_done=report)
                continue
            lifecycle.stop()
            return

    threading.Thread(target=obey, name="omnigraph-supervisor", daemon=True).start()
    end_process(lifecycle.run(lambda: pipe.send(_READY), with_signals=False))
