"""Triggers of a reload: changed files, polled token sources, and quarantined graphs.

SIGHUP and `POST /admin/reload` call `StateHolder.reload` directly.
"""

from __future__ import annotations

import asyncio
from concurrent.futures import Executor
from functools import partial

from omnigraph.server.deployment.state import ServerState, StateHolder
from omnigraph.server.deployment.state_builder import StartOptions, build_state

WATCH_S = 2.0
"""The interval at which files are compared."""


def make_holder(options: StartOptions) -> StateHolder:
    """Build the first state of a process; the first failure raises."""
    holder = StateHolder(partial(build_state, options))
    holder.on_change.append(_set_audit)
    return holder


def _set_audit(state: ServerState) -> None:
    """Apply the settings of the audit log, which stays open."""
    if state.audit is not None:
        state.audit.required = state.settings.audit.required
        state.audit.reads = "all" if state.settings.audit.reads == "all" else "none"


async def watch(holder: StateHolder, threads: Executor) -> None:
    """Reload when a file changed or a refresh is due, until cancelled."""
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(WATCH_S)
        reason = await loop.run_in_executor(threads, holder.due)
        if reason is not None:
            await loop.run_in_executor(threads, holder.reload, reason)
