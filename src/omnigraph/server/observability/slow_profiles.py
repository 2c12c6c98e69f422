"""Profiles of slow reads: a slow read runs once more, and its plan with actual rows and times is logged.

One profile runs at a time, in the lane of slow work and with the limits of the request. A plan is profiled at most once
in ten minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import replace
from functools import partial
from typing import Any

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import OmniGraphError
from omnigraph.observer import observed
from omnigraph.operations.requests import source_text
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.observability.log import log_event
from omnigraph.server.observability.request_observer import RequestObserver
from omnigraph.server.routes.query import narrowed
from omnigraph.wire.requests.queries import ReadRequest

REPEAT_S = 600.0
PLANS_MAX = 1_000


class SlowProfiles:
    """The profile that runs, and the plans that were profiled. Everything but the run is on the event loop."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._profiled: OrderedDict[str, float] = OrderedDict()

    def start(self, caller: Caller, body: Any) -> None:
        """Begin the profile of a slow read, unless the settings, another profile or a recent one forbid it."""
        plan_hash = caller.observer.plan_hash
        if not caller.state.settings.slow_profile or not isinstance(body, ReadRequest) or plan_hash is None:
            return
        now = time.monotonic()
        if self._task is not None or now - self._profiled.get(plan_hash, -REPEAT_S) < REPEAT_S:
            return
        self._profiled[plan_hash] = now
        while len(self._profiled) > PLANS_MAX:
            self._profiled.popitem(last=False)
        self._task = asyncio.get_running_loop().create_task(_run(caller, body, plan_hash))
        self._task.add_done_callback(self._ended)

    def _ended(self, _: asyncio.Task[None]) -> None:
        self._task = None


async def _run(caller: Caller, body: ReadRequest, plan_hash: str) -> None:
    """Profile a read in a thread; the end of the process cancels it like any read."""
    cancel, execution = Cancellation(), caller.server.execution
    end = execution.track_read(cancel)
    try:
        text = await execution.call("slow", partial(_profile, caller, body, cancel))
    except OmniGraphError as error:
        log_event("slow_profile", "warn", request_id=caller.request_id, plan_hash=plan_hash, failure=error.code)
    else:
        log_event("slow_profile", "warn", request_id=caller.request_id, plan_hash=plan_hash, profile=text)
    finally:
        end()


def _profile(caller: Caller, body: ReadRequest, cancel: Cancellation) -> str:
    """Run a read once more and return its profile."""
    limits = replace(narrowed(caller.limits, body.limits), cancellation=cancel)
    source = source_text(body.source)
    with observed(RequestObserver()):
        return caller.graph.profile(
            source, body.selected, body.params, branch=body.branch, at=point_of(body.point), limits=limits
        )
