"""Rights: the actions that the actor of a session may perform on some branch, for the list of its tools.

The graph decides each call again, with its branch. The list of tools contains no tool that every call would deny.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from omnigraph.errors import Denied

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.operations.authorization.access import Access

REMEMBER_S = 30.0
"""Time for which the answer of a server is used again."""


class Rights(Protocol):
    """The actions that are allowed on at least one branch."""

    def may(self, action: str, *, records: bool = False) -> bool:
        """Return False if every request of this action is denied; with `records`, a denial is recorded."""


class GraphRights:
    """Rights by the access of an embedded graph; without an access everything is allowed."""

    def __init__(self, access: Access | None = None) -> None:
        self._access = access

    def may(self, action: str, *, records: bool = False) -> bool:
        """Return False if every request of this action is denied; with `records`, a denial is recorded."""
        if self._access is None or self._access.is_possible(action):
            return True
        if records:
            with suppress(Denied):
                self._access.check_possible(action)
        return False


class ServerRights:
    """Rights by the answer of a server about the actor of the token, on its branches and on one that may not exist."""

    def __init__(self, graph: Graph, branch: str) -> None:
        self._graph = graph
        self._branch = branch
        self._actions: frozenset[str] = frozenset()
        self._read_at: float | None = None

    def may(self, action: str, *, records: bool = False) -> bool:  # noqa: ARG002 (the server records its denials)
        """Return False if every request of this action is denied; with `records`, a denial is recorded."""
        now = time.monotonic()
        if self._read_at is None or now - self._read_at > REMEMBER_S:
            from omnigraph.client.permissions import allowed_actions  # noqa: PLC0415 (needs the extra client)

            self._actions = allowed_actions(self._graph, self._branch)
            self._read_at = now
        return action in self._actions
