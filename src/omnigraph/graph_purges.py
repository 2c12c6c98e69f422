"""`GraphPurges`: the methods of `Graph` that remove rows from all history and prove that they are gone.

certificate = graph.purge("Person", ["ana"], edges=True, reason="erasure request 17")
graph.purge_verify(["ana@example.org"]).is_clean
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from omnigraph.graph_proposals import GraphProposals

if TYPE_CHECKING:
    from omnigraph.operations.purge.certificate import PurgeCertificate
    from omnigraph.pipeline.runner import Watch
    from omnigraph.versioning.model.purge_results import PurgePreview, PurgeScan, Redaction
    from omnigraph.versioning.model.purges import PurgeRecord


class GraphPurges(GraphProposals):
    """Purges of a graph."""

    def purge(
        self,
        type_name: str,
        ids: Sequence[str | int],
        *,
        edges: bool = False,
        reason: str,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> PurgeCertificate:
        """Remove nodes or edges from every branch and all history, and return the certificate.

        Commits keep their ids, parents, actors and times; reading them returns their rows without the purged ones. With
        `edges`, the edges of the nodes are removed too; without it, nodes with edges are refused. `reason` is recorded,
        so it must not contain purged values. The ids cannot be written again until `purge_allow` permits them. An
        interrupted purge is finished by the next one, or by `purge_resume`. A repeated call with the same
        `idempotency_key` returns the certificate of the first one, without the names of files.
        """
        from omnigraph.operations.purge.purge_rows import purge, purge_request
        from omnigraph.pipeline.orphan_jobs import sweep
        from omnigraph.versioning.write.idempotency import check_idempotency_key

        self._check_actor(actor)
        name, chosen = self._rows_to_purge(type_name, ids)
        key = None if idempotency_key is None else check_idempotency_key(idempotency_key)
        author = actor or self.actor
        request = purge_request(self._context, name, chosen, edges=edges, reason=reason, actor=author, key=key)
        return purge(self._context, request, sweep)

    def purge_resume(self) -> list[PurgeCertificate]:
        """Finish the purges that were interrupted, and return their certificates; they do not contain the ids."""
        from omnigraph.operations.purge.purge_rows import resume
        from omnigraph.pipeline.orphan_jobs import sweep

        self._context.check("purge")
        return resume(self._context, sweep)

    def purge_preview(self, type_name: str, ids: Sequence[str | int]) -> PurgePreview:
        """Return the rows that `purge` would remove, counted over all history; changes nothing."""
        from omnigraph.operations.purge.purge_rows import preview_purge, purge_request

        name, chosen = self._rows_to_purge(type_name, ids)
        request = purge_request(self._context, name, chosen, edges=True, reason="preview", actor=None)
        return preview_purge(self._context, request)

    def purges(self) -> list[PurgeRecord]:
        """Return the records of all purges, oldest first. They contain digests of the ids, not the ids."""
        self._context.check("purge")
        return list(self._context.repository.state().purges)

    def purge_verify(self, values: Sequence[str | bytes] = (), *, watch: Watch | None = None) -> PurgeScan:
        """Search every byte of the store and every decoded value for purged ids and for the given values.

        The ids of purges are recognised by their digests. Other values of purged rows are unknown to the graph: give
        those that must be gone. `watch` is called with the progress, in bytes.
        """
        from omnigraph.pipeline.runner import Progress
        from omnigraph.versioning.purge.byte_scan import scan

        self._context.check("purge")
        report = None if watch is None else lambda done, total: watch(Progress("search", done, total))
        return scan(self._context.repository, list(values), report)

    def purge_redact(self, texts: Sequence[str], *, confirm: bool = False) -> Redaction:
        """Replace texts in messages and metadata of commits, descriptions, and proposals, in all history.

        Without `confirm`, nothing is changed, and the places are counted. Each occurrence becomes `[redacted]`. Commits
        keep their ids, parents, actors and times. Names of branches and tags, and idempotency keys, are left.
        """
        from omnigraph.operations.purge.redact_texts import redact

        self._context.check("purge")
        return redact(self._context, list(texts), confirm=confirm)

    def purge_allow(self, type_name: str, ids: Sequence[str | int]) -> int:
        """Permit purged ids to be written again; return how many of them were not permitted."""
        from omnigraph.operations.purge.purge_rows import allow_again

        return allow_again(self._context, *self._rows_to_purge(type_name, ids))

    def _rows_to_purge(self, type_name: str, ids: Sequence[str | int]) -> tuple[str, list[str]]:
        """Check the right to purge and the arguments; return the type and the stored ids."""
        from omnigraph.errors import InputError
        from omnigraph.graph_tables import row_id
        from omnigraph.versioning.write.ref_names import check_text

        self._context.check("purge")
        check_text(type_name, "type")
        if isinstance(ids, str | bytes):
            raise InputError("the ids of a purge are a list", hint=f"write [{str(ids)[:80]!r}]")
        return type_name, [row_id(id_) for id_ in ids]
