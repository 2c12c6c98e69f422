"""Calls of purges. The server answers at the end of the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import CallHandle
from omnigraph.client.messages import TYPED_JSON
from omnigraph.client.results.purges import certificate_of, preview_of, record_of, redaction_of, scan_of
from omnigraph.errors import InputError
from omnigraph.graph_tables import row_id
from omnigraph.operations.purge.certificate import PurgeCertificate
from omnigraph.versioning.model.purge_results import PurgePreview, PurgeScan, Redaction
from omnigraph.versioning.model.purges import PurgeRecord
from omnigraph.versioning.write.ref_names import check_text
from omnigraph.wire.document import Document
from omnigraph.wire.purges import (
    PurgeAllowedDocument,
    PurgeDocument,
    PurgeListDocument,
    PurgePreviewDocument,
    PurgesResumedDocument,
    PurgeVerifyDocument,
    RedactionDocument,
)
from omnigraph.wire.requests.purges import (
    PurgeAllowRequest,
    PurgePreviewRequest,
    PurgeResumeRequest,
    PurgeRunRequest,
    PurgeVerifyRequest,
    RedactRequest,
)
from omnigraph.wire.requests.request import Request as Input

if TYPE_CHECKING:
    from omnigraph.pipeline.runner import Watch

D = TypeVar("D", bound=Document)


class PurgeCalls(CallHandle):
    """Calls of purges."""

    def purge(
        self,
        type_name: str,
        ids: Sequence[str | int],
        *,
        edges: bool = False,
        reason: str,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[PurgeCertificate]:
        """Remove nodes or edges from every branch and all history, and return the certificate.

        Arguments are as in `Graph.purge`. The server does not keep the ids.
        """
        self._check_actor("purge", actor)
        name, chosen = _rows(type_name, ids)
        input = PurgeRunRequest(type=name, ids=chosen, edges=edges, reason=reason)
        done = yield from self._purge_work(input, PurgeDocument, key=idempotency_key)
        return certificate_of(done, dict.fromkeys(chosen))

    def purge_resume(self) -> Call[list[PurgeCertificate]]:
        """Finish the purges that were interrupted, and return their certificates; they do not contain the ids."""
        done = yield from self._purge_work(PurgeResumeRequest(), PurgesResumedDocument, "resume")
        return [certificate_of(one) for one in done.purges]

    def purge_preview(self, type_name: str, ids: Sequence[str | int]) -> Call[PurgePreview]:
        """Return the rows that `purge` would remove, counted over all history; changes nothing."""
        name, chosen = _rows(type_name, ids)
        input = PurgePreviewRequest(type=name, ids=chosen)
        return preview_of((yield from self._purge_work(input, PurgePreviewDocument, "preview")))

    def purges(self) -> Call[list[PurgeRecord]]:
        """Return the records of all purges, oldest first. They contain digests of the ids, not the ids."""
        answer = yield self._get("purges", accept=TYPED_JSON)
        return [record_of(record) for record in answer.document(PurgeListDocument).purges]

    def purge_verify(
        self,
        values: Sequence[str | bytes] = (),
        *,
        watch: Watch | None = None,  # noqa: ARG002 (the progress of an embedded graph)
    ) -> Call[PurgeScan]:
        """Search every byte of the store and every decoded value for purged ids and for the given values.

        Arguments are as in `Graph.purge_verify`, without progress.
        """
        texts = [value for value in values if isinstance(value, str)]
        hexadecimal = [value.hex() for value in values if not isinstance(value, str)]
        input = PurgeVerifyRequest(values=texts, hex=hexadecimal)
        return scan_of((yield from self._purge_work(input, PurgeVerifyDocument, "verify")))

    def purge_redact(self, texts: Sequence[str], *, confirm: bool = False) -> Call[Redaction]:
        """Replace texts in messages and metadata of commits, descriptions, and proposals, in all history.

        Arguments are as in `Graph.purge_redact`.
        """
        input = RedactRequest(texts=list(texts), confirm=confirm)
        return redaction_of((yield from self._purge_work(input, RedactionDocument, "redact")))

    def purge_allow(self, type_name: str, ids: Sequence[str | int]) -> Call[int]:
        """Permit purged ids to be written again; return how many of them were not permitted."""
        name, chosen = _rows(type_name, ids)
        request = self._write("purges", "allow", input=PurgeAllowRequest(type=name, ids=chosen), accept=TYPED_JSON)
        return (yield request).document(PurgeAllowedDocument).allowed

    def _purge_work(self, input: Input, kind: type[D], *step: str, key: str | None = None) -> Call[D]:
        """Return the result of work."""
        answer = yield self._write("purges", *step, input=input, key=key, wait=True, accept=TYPED_JSON)
        return answer.document(kind)


def _rows(type_name: str, ids: Sequence[str | int]) -> tuple[str, list[str]]:
    """Return the checked type, and the stored ids."""
    check_text(type_name, "type")
    if isinstance(ids, str | bytes):
        raise InputError("the ids of a purge are a list", hint=f"write [{str(ids)[:80]!r}]")
    return type_name, [row_id(id_) for id_ in ids]
