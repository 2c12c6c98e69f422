"""Purges: removal of rows from all history, and the proof that they are gone. All of it runs in the background.

A purge that has begun runs to its end. If the server stops meanwhile, the purge is resumed.
"""

from __future__ import annotations

from msgspec import UNSET

from omnigraph.errors import Cancelled, InputError
from omnigraph.operations.purge.certificate import PurgeCertificate
from omnigraph.operations.stoppable import stoppable
from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Background
from omnigraph.server.messages.preconditions import refuse_if_match
from omnigraph.versioning.model.purges import PurgeRecord
from omnigraph.wire.purges import (
    PurgeAllowedDocument,
    PurgeDocument,
    PurgeListDocument,
    PurgePreviewDocument,
    PurgeRecordDocument,
    PurgesResumedDocument,
    PurgeTargetDocument,
    PurgeVerifyDocument,
    RedactionDocument,
)
from omnigraph.wire.requests.branches import ListQuery
from omnigraph.wire.requests.purges import (
    PurgeAllowRequest,
    PurgePreviewRequest,
    PurgeResumeRequest,
    PurgeRunRequest,
    PurgeVerifyRequest,
    RedactRequest,
)


def run_purge(caller: Caller, body: PurgeRunRequest) -> Background:
    """Remove rows from every branch and all history; the result is the certificate without the ids."""
    refuse_if_match(caller)

    def work() -> PurgeDocument:
        _check_start(caller, "purge")
        done = caller.graph.purge(
            body.type, body.ids, edges=body.edges, reason=body.reason, idempotency_key=caller.idempotency_key
        )
        return _certificate(caller, done)

    return Background(work)


def preview_purge(caller: Caller, body: PurgePreviewRequest) -> Background:
    """Count the rows that a purge would remove, over all history."""
    refuse_if_match(caller)

    def work() -> PurgePreviewDocument:
        with stoppable("preview", caller.cancel, None):
            found = caller.graph.purge_preview(body.type, body.ids)
        rows, missing = dict(found.rows), list(found.missing)
        return PurgePreviewDocument(uri=caller.uri, rows=rows, missing=missing, files=found.files)

    return Background(work)


def resume_purges(caller: Caller, body: PurgeResumeRequest) -> Background:
    """Finish the purges that were interrupted."""
    refuse_if_match(caller)

    def work() -> PurgesResumedDocument:
        _check_start(caller, "purge")
        done = caller.graph.purge_resume()
        return PurgesResumedDocument(uri=caller.uri, purges=[_certificate(caller, one) for one in done])

    return Background(work)


def verify_purges(caller: Caller, body: PurgeVerifyRequest) -> Background:
    """Search every byte of the store and every decoded value for purged ids and for values."""
    refuse_if_match(caller)
    values: list[str | bytes] = [*(body.values or ()), *map(_bytes_of, body.hex or ())]

    def work() -> PurgeVerifyDocument:
        with stoppable("search", caller.cancel, None):
            found = caller.graph.purge_verify(values)
        findings = [finding.to_json() for finding in found.findings]
        counts = {"objects": found.objects, "bytes": found.bytes, "undecodable": list(found.undecodable)}
        return PurgeVerifyDocument.of({"uri": caller.uri, "clean": found.is_clean, "findings": findings, **counts})

    return Background(work)


def redact_texts(caller: Caller, body: RedactRequest) -> Background:
    """Replace texts in messages, descriptions and proposals of all history; without `confirm`, count them."""
    refuse_if_match(caller)

    def work() -> RedactionDocument:
        _check_start(caller, "redaction")
        done = caller.graph.purge_redact(body.texts, confirm=body.confirm)
        return RedactionDocument.of({"uri": caller.uri, **done.to_json()})

    return Background(work)


def allow_purged(caller: Caller, body: PurgeAllowRequest) -> PurgeAllowedDocument:
    """Permit purged ids to be written again."""
    refuse_if_match(caller)
    return PurgeAllowedDocument(uri=caller.uri, type=body.type, allowed=caller.graph.purge_allow(body.type, body.ids))


def list_purges(caller: Caller, body: ListQuery) -> PurgeListDocument:
    """List the purges, oldest first."""
    found = [record for record in caller.graph.purges() if body.after is None or record.id > body.after]
    page = found if body.limit is None else found[: body.limit]
    next_ = page[-1].id if len(page) < len(found) else UNSET
    return PurgeListDocument([_record(record) for record in page], next_)


def _certificate(caller: Caller, done: PurgeCertificate) -> PurgeDocument:
    members = {name: value for name, value in done.to_json().items() if name != "ids"}
    return PurgeDocument.of({"uri": caller.uri, **members})


def _record(record: PurgeRecord) -> PurgeRecordDocument:
    return PurgeRecordDocument(
        purge_id=record.id,
        kind=record.kind,
        type=record.type_name,
        edges=record.edges,
        reason=record.reason,
        actor_id=record.actor,
        state=record.state,
        started_at=record.created_us,
        finished_at=record.finished_us,
        targets=[PurgeTargetDocument(*target.table, target.key, list(target.columns)) for target in record.targets],
        salt=record.salt,
        digests=sorted(record.digests),
        summary=dict(record.summary),
    )


def _bytes_of(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError as error:
        raise InputError(f"'hex' takes bytes in hexadecimal: {error}", code="bad_member") from error


def _check_start(caller: Caller, name: str) -> None:
    """Raise `Cancelled` before work that runs to its end once it has started."""
    if caller.cancel.cancelled:
        raise Cancelled(f"the {name} was cancelled; nothing was changed")
