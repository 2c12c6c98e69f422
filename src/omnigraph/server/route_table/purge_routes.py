"""Routes of purges."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from omnigraph.server.messages.answers import Reply
from omnigraph.server.route import Gate, Route
from omnigraph.server.routes import purges
from omnigraph.wire.purges import PurgeAllowedDocument, PurgeListDocument
from omnigraph.wire.requests.branches import ListQuery
from omnigraph.wire.requests.purges import (
    PurgeAllowRequest,
    PurgePreviewRequest,
    PurgeResumeRequest,
    PurgeRunRequest,
    PurgeVerifyRequest,
    RedactRequest,
)
from omnigraph.wire.requests.request import Request
from omnigraph.wire.server_state import OperationDocument

_GATES = (Gate("purge"),)
_WORK: tuple[tuple[str, str, Callable[..., Reply], type[Request], str], ...] = (
    (
        "runPurge",
        "/purges",
        purges.run_purge,
        PurgeRunRequest,
        "Remove rows from every branch and all history; the result is the certificate without the ids.",
    ),
    (
        "previewPurge",
        "/purges/preview",
        purges.preview_purge,
        PurgePreviewRequest,
        "Count the rows that a purge would remove, over all history.",
    ),
    (
        "resumePurges",
        "/purges/resume",
        purges.resume_purges,
        PurgeResumeRequest,
        "Finish the purges that were interrupted.",
    ),
    (
        "verifyPurges",
        "/purges/verify",
        purges.verify_purges,
        PurgeVerifyRequest,
        "Search every byte of the store for purged ids and for values.",
    ),
    (
        "redactTexts",
        "/purges/redact",
        purges.redact_texts,
        RedactRequest,
        "Replace texts in messages, descriptions and proposals of all history.",
    ),
)


def _work_routes() -> Iterator[Route]:
    for name, path, handler, input_, summary in _WORK:
        yield Route(
            name=name,
            method="POST",
            path=path,
            handler=handler,
            tag="purges",
            summary=summary,
            input=input_,
            answer=OperationDocument,
            gates=_GATES,
            lane="slow",
            body="json",
            writes=True,
            success=202,
            statuses=(409,),
        )


_RECORDS = (
    Route(
        name="listPurges",
        method="GET",
        path="/purges",
        handler=purges.list_purges,
        tag="purges",
        summary="List the purges, oldest first. They contain digests of the ids, not the ids.",
        input=ListQuery,
        answer=PurgeListDocument,
        gates=_GATES,
    ),
    Route(
        name="allowPurged",
        method="POST",
        path="/purges/allow",
        handler=purges.allow_purged,
        tag="purges",
        summary="Permit purged ids to be written again.",
        input=PurgeAllowRequest,
        answer=PurgeAllowedDocument,
        gates=_GATES,
        lane="writes",
        body="json",
        writes=True,
        statuses=(409,),
    ),
)
ROUTES: tuple[Route, ...] = (*_work_routes(), *_RECORDS)
