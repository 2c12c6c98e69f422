"""Named points at which a test can make a write fail, wait or be killed.

`reach("name")` costs one dictionary test when nothing is armed. Failpoints are armed by code (`arm`) or, in a child
process, by `OMNIGRAPH_FAILPOINTS`: a list such as `publish.before_commit=kill,intent.write=3:error`. The number is the
count of passes to skip first.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omnigraph.errors import OmniGraphError

VARIABLE = "OMNIGRAPH_FAILPOINTS"

NAMES: tuple[str, ...] = (
    "init.claimed",
    "init.tables_created",
    "init.before_manifest",
    "init.after_manifest",
    "table.staged",
    "table.numbered",
    "table.detached",
    "table.promoted",
    "intent.write",
    "intent.written",
    "intent.delete",
    "group.prepared",
    "group.written",
    "group.published",
    "part.detached",
    "publish.before_commit",
    "publish.after_commit",
    "land.before_publish",
    "land.after_publish",
    "proposal.event",
    "proposal.trial",
    "proposal.checked",
    "proposal.queued",
    "checkpoint.before_commit",
    "checkpoint.after_commit",
    "recovery.listed",
    "recovery.fenced",
    "recovery.collected",
    "recovery.audited",
    "optimize.compacted",
    "optimize.before_publish",
    "cleanup.planned",
    "cleanup.fenced",
    "cleanup.table",
    "purge.announced",
    "purge.rewritten",
    "purge.before_switch",
    "purge.switched",
    "purge.checkpoint",
    "purge.swept",
    "purge.before_end",
    "redact.proposals",
    "redact.published",
)
"""Every failpoint; a test iterates over this list."""


class FailpointError(OmniGraphError):
    """Raised by an armed failpoint."""

    default_code = "failpoint"


_armed: dict[str, Callable[[], None]] = {}


def reach(name: str) -> None:
    """Run the action that is armed at this failpoint, if any."""
    if _armed:
        action = _armed.get(name)
        if action is not None:
            action()


@contextmanager
def arm(name: str, action: Callable[[], None] | None = None) -> Iterator[None]:
    """Within the block, reaching `name` runs `action`, or raises `FailpointError`."""
    assert name in NAMES, name
    _armed[name] = action or _raise(name)
    try:
        yield
    finally:
        _armed.pop(name, None)


def arm_from_environment(text: str) -> None:
    """Arm the failpoints of `OMNIGRAPH_FAILPOINTS`: `name=error` or `name=kill`.

    A count before the action skips that number of passes.
    """
    for part in filter(None, text.split(",")):
        name, _, what = part.partition("=")
        count, _, verb = what.rpartition(":")
        assert name in NAMES, f"unknown failpoint {name!r}"
        _armed[name] = _after(int(count or 0), _kill if verb == "kill" else _raise(name))


def _raise(name: str) -> Callable[[], None]:
    def action() -> None:
        raise FailpointError(f"stopped at the failpoint '{name}'")

    return action


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _after(passes: int, action: Callable[[], None]) -> Callable[[], None]:
    left = passes

    def counted() -> None:
        nonlocal left
        if left == 0:
            action()
        left -= 1

    return counted
