"""Commits that this process has seen, for `Omnigraph-Min-Commit`.

A client names the commit of its last write in every later request. A graph that contains a commit contains it from then
on, so a commit is looked up once.
"""

from __future__ import annotations

from collections import OrderedDict

from omnigraph.errors import NotFound
from omnigraph.operations.authorization.access import Access
from omnigraph.server.deployment.graphs import ServedGraph

COMMITS_MAX = 4_096


class KnownCommits:
    """The branches of commits, by graph and commit."""

    def __init__(self) -> None:
        self._branches: OrderedDict[tuple[str, str], str] = OrderedDict()

    def has_seen(self, served: ServedGraph, access: Access, commit_id: str) -> bool:
        """Return True if the commit was found before and the caller may know of it; nothing is read."""
        branch = self._branches.get((served.uri, commit_id))
        return branch is not None and _may_know(access, branch)

    def find(self, served: ServedGraph, access: Access, commit_id: str) -> bool:
        """Return True if the graph contains the commit and the caller may know of it."""
        assert served.graph is not None
        try:
            branch = served.graph.commit(commit_id).branch
        except NotFound:
            return False
        self._branches[(served.uri, commit_id)] = branch
        while len(self._branches) > COMMITS_MAX:
            self._branches.popitem(last=False)
        return _may_know(access, branch)


def _may_know(access: Access, branch: str) -> bool:
    """Return True if the caller may read the branch or write to it."""
    on_branch = (access.decide(action, branch) for action in ("read", "change"))
    onto_branch = (access.decide(action, None, branch) for action in ("branch_merge", "schema_apply"))
    return any(decision.allowed for decisions in (on_branch, onto_branch) for decision in decisions)
