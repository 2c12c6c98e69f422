"""Inline reads: short reads that run on the event loop, without a change of thread.

A change of thread takes longer than a lookup by key. A read runs inline if the same query took less than a millisecond
on the same commit before, so that its plan and its tables are in memory, and if the graph is on a local disk, where the
look at the head of the branch is cheap. An inline read has a few milliseconds; at the end of them it is repeated in a
thread, and the query is not run inline again on this commit.
"""

from __future__ import annotations

from collections import OrderedDict

from omnigraph.server.caller import Caller
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.requests.queries import ReadRequest

LEARN_S = 0.001
"""A query that takes longer is not run inline."""
LIMIT_S = 0.004
"""The time limit of an inline read."""
BODY_MAX = 64 * 1024
"""A query with a larger answer is not run inline."""
KEYS_MAX = 1_024

Key = tuple[str, str, str, str | None]
"""Graph, branch, text and name of a query."""


class InlineReads:
    """The queries that run inline, each with the commit on which it was short."""

    def __init__(self) -> None:
        self._commits: OrderedDict[Key, str] = OrderedDict()

    def key_of(self, caller: Caller, body: object) -> Key | None:
        """Return the key of a read that can run inline; None for another request."""
        if type(body) is not ReadRequest or caller.served is None or caller.negotiated.form != "json":
            return None
        if body.at or body.snapshot or body.page or body.after or body.limits or not caller.served.is_local:
            return None
        text = body.query or body.query_source
        if text is None or not caller.state.settings.inline_reads:
            return None
        return caller.served.graph_id, body.branch or MAIN, text, body.name or body.query_name

    def permits(self, key: Key, caller: Caller) -> bool:
        """Return True if a read runs inline now."""
        commit = self._commits.get(key)
        if commit is None or caller.served is None or caller.served.graph is None:
            return False
        return caller.served.graph.snapshot(key[1]).commit_id == commit

    def learn(self, key: Key, commit: str | None, seconds: float, size: int) -> None:
        """Note how long a read took in a thread, and the size of its answer."""
        if commit is None or seconds > LEARN_S or size > BODY_MAX:
            return
        self._commits[key] = commit
        self._commits.move_to_end(key)
        while len(self._commits) > KEYS_MAX:
            self._commits.popitem(last=False)

    def forget(self, key: Key) -> None:
        """Note that a read took too long inline."""
        self._commits.pop(key, None)
