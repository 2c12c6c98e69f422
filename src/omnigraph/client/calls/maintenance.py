"""Calls of maintenance. The server answers at the end of the work."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import CallHandle
from omnigraph.client.messages import TYPED_JSON
from omnigraph.client.results.maintenance import cleanup_stats_of, problems_of, recovered_of, table_stats_of
from omnigraph.versioning.upkeep.maintenance import CleanupStats, TableStats, check_retention
from omnigraph.versioning.upkeep.verify import Problem
from omnigraph.versioning.write.recovery import Recovered
from omnigraph.wire.document import Document
from omnigraph.wire.durations import duration_text
from omnigraph.wire.maintenance import CleanupDocument, OptimizeDocument, RecoverDocument, VerifyDocument
from omnigraph.wire.requests.maintenance import (
    CleanupRequest,
    IndicesRequest,
    OptimizeRequest,
    RecoverRequest,
    VerifyRequest,
)
from omnigraph.wire.requests.request import Request as Input

D = TypeVar("D", bound=Document)


class MaintenanceCalls(CallHandle):
    """Calls of maintenance."""

    def ensure_indices(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[list[TableStats]]:
        """Build the indexes and search structures that the tables lack; `idempotency_key` is as in `mutate`."""
        self._check_actor("ensure_indices", actor)
        input = IndicesRequest(branch=self._branch(branch), message=message)
        return table_stats_of((yield from self._work("indices", input, OptimizeDocument, idempotency_key)))

    def optimize(
        self,
        branch: str | None = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[list[TableStats]]:
        """Compact the tables of a branch, update its indexes and build its search structures.

        `idempotency_key` is as in `mutate`.
        """
        self._check_actor("optimize", actor)
        input = OptimizeRequest(branch=self._branch(branch), message=message)
        return table_stats_of((yield from self._work("optimize", input, OptimizeDocument, idempotency_key)))

    def cleanup(
        self,
        *,
        keep: int | None = None,
        older_than: timedelta | None = None,
        confirm: bool = False,
        actor: str | None = None,
        message: str | None = None,
    ) -> Call[list[CleanupStats]]:
        """Delete expired branches and remove table versions that only expired commits use.

        Without `confirm`, nothing is removed, and the versions that would be are reported. `actor` and `message` are
        recorded with the deletion of branches.
        """
        self._check_actor("cleanup", actor)
        check_retention(keep, older_than)
        # A negative age is that of a version in the future; it keeps nothing, as an age of zero does.
        age = None if older_than is None else duration_text(max(older_than, timedelta(0)))
        input = CleanupRequest(keep=keep, older_than=age, confirm=confirm, message=message)
        return cleanup_stats_of((yield from self._work("cleanup", input, CleanupDocument)))

    def recover(self) -> Call[list[Recovered]]:
        """Finish or undo the writes of crashed writers, remove the files of dead bulk jobs, and list both."""
        return recovered_of((yield from self._work("recover", RecoverRequest(), RecoverDocument)))

    def verify(self, *, deep: bool = False) -> Call[list[Problem]]:
        """Return every violated invariant, none for a sound graph; with `deep`, verify the digest of every file too."""
        return problems_of((yield from self._work("verify", VerifyRequest(deep=deep), VerifyDocument)))

    def _work(self, name: str, input: Input, kind: type[D], key: str | None = None) -> Call[D]:
        """Return the result of work."""
        answer = yield self._write("maintenance", name, input=input, key=key, wait=True, accept=TYPED_JSON)
        return answer.document(kind)
