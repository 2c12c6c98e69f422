"""`RemoteCalls`: every call of a remote graph, with the parameters of the methods of `Graph`."""

from __future__ import annotations

from contextlib import suppress

from omnigraph.client.call import Call
from omnigraph.client.calls.branches import BranchCalls
from omnigraph.client.calls.commits import CommitCalls
from omnigraph.client.calls.diffs import DiffCalls
from omnigraph.client.calls.exploration import ExplorationCalls
from omnigraph.client.calls.histories import HistoryCalls
from omnigraph.client.calls.loads import LoadCalls
from omnigraph.client.calls.maintenance import MaintenanceCalls
from omnigraph.client.calls.mutations import MutationCalls
from omnigraph.client.calls.proposals import ProposalCalls
from omnigraph.client.calls.purges import PurgeCalls
from omnigraph.client.calls.queries import QueryCalls
from omnigraph.client.calls.schemas import SchemaCalls
from omnigraph.client.calls.stored_queries import StoredQueryCalls
from omnigraph.client.calls.tables import TableCalls
from omnigraph.client.calls.tags import TagCalls
from omnigraph.client.messages import Request
from omnigraph.errors import Denied
from omnigraph.policy.rules import branch_name
from omnigraph.wire.server_state import MeDocument


class RemoteCalls(
    QueryCalls,
    MutationCalls,
    StoredQueryCalls,
    ProposalCalls,
    TableCalls,
    ExplorationCalls,
    LoadCalls,
    SchemaCalls,
    BranchCalls,
    TagCalls,
    CommitCalls,
    DiffCalls,
    HistoryCalls,
    MaintenanceCalls,
    PurgeCalls,
):
    """The calls of one handle."""

    def on(self, branch: str) -> Call[RemoteCalls]:
        """Return the calls of another branch.

        An unknown branch raises `BranchNotFound`, unless the caller may not read a branch of that name.
        """
        name = branch_name(branch)
        with suppress(Denied):
            yield self._get("branches", name)
        return RemoteCalls(self.url, name, self.actor)


def read_actor() -> Call[str | None]:
    """Return the actor of the token; None if the server requires no token."""
    answer = yield Request(method="GET", path="/me", scope="server")
    return answer.document(MeDocument).actor_id
