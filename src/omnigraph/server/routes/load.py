"""Loads: records as JSON lines or Arrow streams, as one commit."""

from __future__ import annotations

import mmap
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from omnigraph.errors import InputError, RecordError
from omnigraph.graph_handle import context_of
from omnigraph.operations.load.load_result import LoadResult, Reject
from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Answer, Background
from omnigraph.server.messages.archives import unpacked
from omnigraph.server.messages.arrow_bodies import read_streams
from omnigraph.server.messages.bodies import SpooledBody, new_body_file
from omnigraph.server.messages.request import responds_async
from omnigraph.table_format import read_columns
from omnigraph.text_files import NamedPath
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.document import Document
from omnigraph.wire.loads import LoadTarget, RejectedRecordDocument, load_answer
from omnigraph.wire.requests.loads import IngestRequest, LoadFilesQuery, LoadQuery, LoadRequest, LoadTablesQuery

ASYNC_BYTES = 32 * 1024 * 1024
"""A larger body is loaded after the answer if the client sends `Prefer: respond-async`."""
REJECTED_MAX = 10_000
"""Largest number of rejected records in an answer."""

_NO_ENVELOPE = re.compile(rb"^[ \t\r]*(?://[^\n]*)?$(?!\Z)", re.MULTILINE)
"""A blank line or a comment, which files may contain and a strict body may not."""


def ingest(caller: Caller, body: IngestRequest) -> Answer:
    """Load JSON lines; a missing branch is created from `from`, by default from `main`."""
    return _load_text(caller, body, body.from_ or MAIN)


def load(caller: Caller, body: LoadRequest) -> Answer:
    """Load JSON lines; a missing branch is created only if `from` is given."""
    return _load_text(caller, body, body.from_)


def load_ndjson(caller: Caller, body: LoadQuery) -> Answer | Background:
    """Load a body of JSON lines, each of which is exactly one record."""
    if body.type is not None:
        raise InputError("'type' belongs to an Arrow stream; a JSON line names its type", code="bad_member")

    def work(spooled: SpooledBody) -> Answer:
        if spooled.size:
            _check_lines(spooled.path)
        return _load(caller, NamedPath(str(spooled.path), "body.jsonl"), body, body.from_)

    return _run(caller, work)


def load_arrow(caller: Caller, body: LoadTablesQuery) -> Answer | Background:
    """Load a body of Arrow streams, one for each type."""
    bytes_max = caller.state.settings.limits.load_bytes

    def work(spooled: SpooledBody) -> Answer:
        return _load(caller, read_streams(spooled.path, body.type, bytes_max=bytes_max), body, body.from_)

    return _run(caller, work)


def load_files(caller: Caller, body: LoadFilesQuery) -> Answer | Background:
    """Load the files of an archive, as a load of these files does."""
    if body.type is not None:
        raise InputError("'type' belongs to an Arrow stream; a file names its type", code="bad_member")

    def work(spooled: SpooledBody) -> Answer:
        with unpacked(spooled.path) as files:
            spooled.discard()
            return _load(caller, files, body, body.from_)

    return _run(caller, work)


def _run(caller: Caller, work: Callable[[SpooledBody], Answer]) -> Answer | Background:
    """Load a body; a large one after the answer, if the client does not wait. The work then owns the file."""
    spooled = caller.body
    assert spooled is not None
    if spooled.size <= ASYNC_BYTES or not responds_async(caller.headers):
        return work(spooled)
    caller.body = None

    def later() -> Document:
        try:
            return work(spooled).document
        finally:
            spooled.discard()

    return Background(later)


def _load_text(caller: Caller, body: LoadRequest, base: str | None) -> Answer:
    spooled = SpooledBody(new_body_file(".jsonl"), "application/x-ndjson")
    try:
        spooled.file.write(body.data.encode("utf-8", "surrogatepass"))
        spooled.file.flush()
        return _load(caller, NamedPath(str(spooled.path), "data.jsonl"), body, base)
    finally:
        spooled.discard()


def _load(caller: Caller, data: Any, body: LoadRequest | LoadQuery, base: str | None) -> Answer:
    rejects: list[Reject] | None = [] if body.rejects else None
    branch = body.branch or MAIN
    options: dict[str, Any] = {
        "mode": body.mode,
        "branch": branch,
        "message": body.message,
        "rejects": rejects,
        "job_id": caller.idempotency_key,
        "engine": "memory",
        "if_commit": caller.if_commit,
        "cancel": caller.cancel,
        "timeout": caller.long_timeout_s,
    }
    if isinstance(body, LoadQuery):
        missing = "keep" if body.missing == "keep" else "null"
        options |= {"missing": missing, "embed": body.embed, "dry_run": body.dry_run}
    if isinstance(body, LoadTablesQuery):
        options |= {"columns": read_columns(body.column), "skip_null_ends": body.skip_null_ends}
    if isinstance(body, LoadFilesQuery):
        options |= {"delimiter": body.delimiter, "null": body.null, "date_format": body.date_format}
        options |= {"format": body.format, "array_delimiter": body.array_delimiter}
    if base is None:
        result = caller.graph.load(data, **options)
    else:
        result = caller.graph.ingest(data, from_branch=base, **options)
    caller.audit["rows"] = sum(rows for _, rows in result.tables)
    rejected = [_rejected(caller, reject) for reject in (rejects or ())[:REJECTED_MAX]]
    target = LoadTarget(caller.uri, result.branch, result.mode, caller.actor)
    commit = caller.commit_document(result.commit_id)
    document = load_answer(
        target,
        result.base_branch,
        result,
        commit,
        rejected,
        embeds=not options.get("dry_run") and _embeds(caller, result),
    )
    if result.rejected_count > len(rejected):
        document.notes.append(f"{result.rejected_count} records were rejected; {len(rejected)} of them are listed")
    return Answer(document, commit=result.commit_id)


def _rejected(caller: Caller, reject: Reject) -> RejectedRecordDocument:
    return RejectedRecordDocument(
        source=reject.source,
        line=reject.line,
        type=reject.type_name,
        property=reject.property,
        column=reject.column,
        rule=reject.rule,
        reason=reject.reason,
        record=caller.row_value(reject.record),
    )


def _embeds(caller: Caller, result: LoadResult) -> bool:
    """Return True if the schema of the loaded branch declares embeddings; the right to write suffices to see it."""
    context = context_of(caller.graph)
    return context.catalog(context.repository.snapshot(result.branch)).declares_embeddings


def _check_lines(path: Path) -> None:
    """Refuse blank lines and comments; a line feed at the end is allowed."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        found = _NO_ENVELOPE.search(text)
        if found is not None:
            line = text[: found.start()].count(b"\n") + 1
            raise RecordError(
                "a line must be exactly one record; this one is blank or a comment",
                source="body.jsonl",
                line=line,
                rule="record",
                hint='write {"type": "Name", "data": {…}} or {"edge": "Name", "from": "id", "to": "id", "data": {…}}',
            )
