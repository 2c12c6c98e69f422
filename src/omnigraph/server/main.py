"""Start of the server: one process, or a supervisor and its workers."""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from omnigraph.engine import tuning
from omnigraph.server.app import create_app
from omnigraph.server.auth.modes import start_warning
from omnigraph.server.auth.tokens import new_token
from omnigraph.server.deployment.reload import make_holder
from omnigraph.server.deployment.settings import ServerSettings
from omnigraph.server.deployment.state import ServerState
from omnigraph.server.deployment.state_builder import StartOptions, read_start_settings
from omnigraph.server.messages.bodies import remove_abandoned_bodies
from omnigraph.server.observability import log
from omnigraph.server.observability.exposition import forget_process
from omnigraph.server.observability.metrics_service import shared_metrics
from omnigraph.server.observability.start_lines import log_start
from omnigraph.server.process.lifecycle import Lifecycle, end_process
from omnigraph.server.process.listening import (
    VARIABLE,
    bind,
    curl_command,
    listen_address,
    raise_file_limit,
    remove_socket_file,
)
from omnigraph.server.process.service_manager import ServiceManager, take_socket
from omnigraph.server.process.workers import Supervisor

SWITCH_S = 0.0005
"""The time after which a thread that computes lets the event loop run; the default is ten times as long."""
BATCH_VALUES = 1 << 18
"""Numbers that one call of numpy copies; several of these calls do not release the interpreter."""


Announce = Callable[[str, StartOptions, ServerSettings], None]
"""Tells the user the address of a server that accepts connections."""


def serve(options: StartOptions, announce: Announce | None = None) -> int:
    """Serve until a stop signal and return the exit code; the first failure of the start is raised."""
    environ = os.environ if options.environ is None else dict(options.environ)
    manager, inherited = ServiceManager.of(environ), take_socket(environ)
    if inherited is not None:
        # The mode of the server depends on its address: that of the socket takes precedence over `--bind`.
        options = replace(options, flags={**options.flags, "bind": listen_address(inherited)})
    settings = read_start_settings(options)
    log.configure(settings.log.level, settings.log.format)
    if settings.local and options.local_token is None:
        options = replace(options, local_token=new_token())
    with ExitStack() as held:
        folder = held.enter_context(shared_metrics(settings)) if settings.workers > 1 else None
        process = _make_process(options, settings, inherited, manager, folder)
        if inherited is None:
            held.callback(remove_socket_file, settings)
        code = process.run(partial(_announce, announce or print_address, process.listener, options, settings))
    if isinstance(process, Lifecycle) and process.has_left_work:
        end_process(code)
    return code


def _make_process(
    options: StartOptions,
    settings: ServerSettings,
    inherited: socket.socket | None,
    manager: ServiceManager,
    folder: Path | None,
) -> Supervisor | Lifecycle:
    """Return the only process, or the supervisor of several workers; `folder` is that of their metrics."""
    if settings.workers == 1:
        return start_process(options, inherited, manager)
    supervisor = Supervisor(start_process, options, inherited or bind(settings), settings.workers, manager)
    supervisor.on_end = partial(forget_process, folder) if folder is not None else None
    return supervisor


def start_process(
    options: StartOptions, listener: socket.socket | None, manager: ServiceManager | None = None
) -> Lifecycle:
    """Return a process that is ready to serve: state built, and bound unless it is given the socket."""
    remove_abandoned_bodies()
    holder = make_holder(options)
    state = holder.current
    log.configure(state.settings.log.level, state.settings.log.format)
    holder.on_change.append(lambda new: log.configure(new.settings.log.level, new.settings.log.format))
    _log_start(state)
    app = create_app(holder)
    # What exists now stays until the end. A full collection would visit all of it and stop every thread meanwhile.
    gc.collect()
    gc.freeze()
    socket_ = listener or bind(state.settings)
    _favour_the_loop()
    return Lifecycle(holder, app, app.server.execution, socket_, usage=app.server.connections, manager=manager)


def _favour_the_loop() -> None:
    """Let threads that compute release the interpreter often, so that the event loop answers others meanwhile."""
    sys.setswitchinterval(SWITCH_S)
    tuning.current = replace(tuning.current, batch_values=BATCH_VALUES)


def _log_start(state: ServerState) -> None:
    settings = state.settings
    mode_warning = start_warning(state.mode, bind=settings.bind, is_loopback=settings.is_loopback)
    for warning in (*state.warnings, mode_warning, raise_file_limit(settings.limits.connections)):
        if warning is not None:
            log.log_event("warning", "warn", message=warning)
    log_start(state)


def _announce(announce: Announce, listener: socket.socket, options: StartOptions, settings: ServerSettings) -> None:
    address = listen_address(listener)
    log.log_event("listen", address=address)
    announce(address, options, settings)


def print_address(address: str, options: StartOptions, settings: ServerSettings) -> None:
    """Print the address on stdout, and in single-user mode the token and a command that uses it."""
    lines = [f"{VARIABLE}={address}"]
    if options.local_token is not None:
        lines += [f"token: {options.local_token}", curl_command(address, options.local_token, settings.tls.cert)]
    print("\n".join(lines), flush=True)  # noqa: T201 (supervisors read this line)
