"""Connections in a process that is made by fork.

The process inherits the sockets of its parent. If both used one, each would read answers to requests of the other, so a
loop makes new connections in the child.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet


class Forked(Protocol):
    """An object with connections."""

    def renew(self) -> None:
        """Replace the inherited connections."""


_loops: WeakSet[Forked] = WeakSet()


def renew_in_child(loop: Forked) -> None:
    """Let a loop replace its connections in each process that is made by fork."""
    _loops.add(loop)


def _renew_all() -> None:
    for loop in list(_loops):
        loop.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
