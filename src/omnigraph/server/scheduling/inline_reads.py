"""Inline reads: short reads that run on the event loop, without a change of thread.

A change of thread takes longer than a lookup by key. A read runs inline if the same query took less than a millisecond
on the same commit before, so that its plan and its tables are in memory, and if the graph is on a local disk, where the
look at the head of the branch is cheap. An inline read has a few milliseconds and a thousand rows; if they do not
suffice, it is repeated in a thread. A query that had too many rows, such as the neighbours of a node with many of them,
is not run inline again on this commit; one that took too long is, after a short run in a thread, because the machine
may have been busy.
"""

from __future__ import annotations

from collections import OrderedDict

from omnigraph.errors import LimitReached, QueryTimeout
from omnigraph.server.caller import Caller
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.requests.queries import ReadRequest

LEARN_S = 0.001
"""A query that takes longer is not run inline."""
LIMIT_S = 0.004
"""The time limit of an inline read."""
ROWS_MAX = 1_000
"""The largest number of rows at any point of an inline read; the encoding of many rows takes long."""
BODY_MAX = 64 * 1024
"""A query with a larger request or answer is not run inline."""
KEYS_MAX = 1_024
_REMOTE = "nearest"
"""The function that may call a provider of embeddings over the network."""

_FORMS = frozenset({"json", "arrow"})
Key = tuple[str, str, str, str | None, str, str]
"""Address of the graph, branch, text and name of a query, the form of the answer, and what the caller may see."""


class InlineReads:
    """The queries that run inline, each with the commit on which it was short, and those that took too long."""

    def __init__(self) -> None:
        self._commits: OrderedDict[Key, tuple[str, bool]] = OrderedDict()
        """Commit, and True if the query is short."""
        self.answered = 0
        """The number of requests that were answered inline since the start of the process."""

    def key_of(self, caller: Caller, body: object) -> Key | None:
        """Return the key of a read that can run inline; None for another request."""
        if type(body) is not ReadRequest or caller.served is None or caller.negotiated.form not in _FORMS:
            return None
        if body.at or body.snapshot or body.page or body.after or body.limits or not caller.served.is_local:
            return None
        text = body.query or body.query_source
        if text is None or _REMOTE in text or not caller.state.settings.inline_reads:
            return None
        form = caller.negotiated.form
        return caller.served.uri, body.branch or MAIN, text, body.name or body.query_name, form, caller.visible

    def permits(self, key: Key, caller: Caller) -> bool:
        """Return True if a read runs inline now."""
        commit, short = self._commits.get(key, ("", False))
        if not short or caller.served is None or caller.served.graph is None:
            return False
        return caller.served.graph.snapshot(key[1]).commit_id == commit

    def learn(self, key: Key, commit: str | None, seconds: float, size: int) -> None:
        """Note how long a read took in a thread, and the size of its answer."""
        if commit is None or seconds > LEARN_S or size > BODY_MAX or self._commits.get(key) == (commit, False):
            return
        self._commits[key] = commit, True
        self._commits.move_to_end(key)
        while len(self._commits) > KEYS_MAX:
            self._commits.popitem(last=False)

    def exceeded(self, key: Key, error: LimitReached) -> None:
        """Note that an inline read exceeded a limit."""
        if isinstance(error, QueryTimeout):
            self._commits.pop(key)
        else:
            self.too_large(key)

    def too_large(self, key: Key) -> None:
        """Note that an inline read has too many rows or bytes; it is not run inline again on this commit."""
        commit, _ = self._commits[key]
        self._commits[key] = commit, False
