"""Calls of loads."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import if_match, new_key
from omnigraph.client.calls.schemas import SchemaCalls
from omnigraph.client.failures import reading
from omnigraph.client.load_bodies import LoadBody, load_body, needs_catalog
from omnigraph.client.local_only import check_engine
from omnigraph.client.messages import TYPED_JSON, Request, path_of, query_of
from omnigraph.engine_choice import Rejects, keep_rejects
from omnigraph.errors import OmniGraphError, RecordError
from omnigraph.operations.load.load_request import check_missing, check_mode
from omnigraph.operations.load.load_result import LoadResult, Reject
from omnigraph.operations.load.record_sources import check_mapping
from omnigraph.operations.requests import check_seconds
from omnigraph.policy.rules import branch_name
from omnigraph.table_format import TableFormat, write_columns
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.loads import LoadAnswerDocument, RejectedRecordDocument
from omnigraph.wire.requests.loads import LoadFilesQuery, LoadQuery, LoadTablesQuery
from omnigraph.wire.typed_values import untyped_value

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.pipeline.runner import Watch


@dataclass(frozen=True)
class _Load:
    """The options of a load that do not depend on its input."""

    input: Mapping[str, Any]
    rejects: Rejects
    key: str | None
    if_commit: str | None
    format: TableFormat
    cancel: Cancellation | None
    timeout: float | None
    watch: Watch | None


class LoadCalls(SchemaCalls):
    """Calls of loads."""

    def load(
        self,
        data: Any,
        *,
        mode: str | None = None,
        missing: str = "keep",
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        rejects: Rejects = None,
        embed: bool = True,
        engine: str = "auto",
        spark: Any = None,
        job_id: str | None = None,
        if_commit: str | None = None,
        watch: Watch | None = None,
        delimiter: str | None = None,
        null: str | Sequence[str] = (),
        date_format: str | None = None,
        columns: Mapping[str, str | None] | None = None,
        skip_null_ends: bool = False,
        format: Literal["neo4j", "graphml"] | None = None,
        array_delimiter: str = ";",
        dry_run: bool = False,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[LoadResult]:
        """Load records as one commit: a list of records, paths or patterns of files, or DataFrames or paths by type.

        Arguments are as in `Graph.load`. Files are read here and sent to the server; `watch` is called with the part
        that was sent.
        """
        self._check_actor("load", actor)
        check_engine("load", engine, spark)
        input = {
            "mode": check_mode(mode),
            "missing": "keep" if check_missing(missing) == "keep" else "clear",
            "branch": self._branch(branch),
            "message": message,
            "embed": embed,
            "dry_run": dry_run,
        }
        table_format = TableFormat.of(
            delimiter,
            null,
            date_format,
            columns,
            skip_null_ends=skip_null_ends,
            graph_format=format,
            array_delimiter=array_delimiter,
        )
        return self._load(data, _Load(input, rejects, job_id, if_commit, table_format, cancel, timeout, watch))

    def ingest(
        self,
        data: Any,
        *,
        branch: str,
        from_branch: str = MAIN,
        mode: str = "merge",
        missing: str = "keep",
        actor: str | None = None,
        message: str | None = None,
        rejects: Rejects = None,
        embed: bool = True,
        engine: str = "auto",
        spark: Any = None,
        job_id: str | None = None,
        if_commit: str | None = None,
        watch: Watch | None = None,
        delimiter: str | None = None,
        null: str | Sequence[str] = (),
        date_format: str | None = None,
        columns: Mapping[str, str | None] | None = None,
        skip_null_ends: bool = False,
        format: Literal["neo4j", "graphml"] | None = None,
        array_delimiter: str = ";",
        dry_run: bool = False,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[LoadResult]:
        """Load records as `load` does, onto a branch that is created from `from_branch` if it does not exist.

        Arguments are as in `Graph.ingest`.
        """
        self._check_actor("ingest", actor)
        check_engine("ingest", engine, spark)
        input = {
            "mode": check_mode(mode),
            "missing": "keep" if check_missing(missing) == "keep" else "clear",
            "branch": branch_name(branch),
            "from_": branch_name(from_branch),
            "message": message,
            "embed": embed,
            "dry_run": dry_run,
        }
        table_format = TableFormat.of(
            delimiter,
            null,
            date_format,
            columns,
            skip_null_ends=skip_null_ends,
            graph_format=format,
            array_delimiter=array_delimiter,
        )
        return self._load(data, _Load(input, rejects, job_id, if_commit, table_format, cancel, timeout, watch))

    def _load(self, data: Any, load: _Load) -> Call[LoadResult]:
        if load.timeout is not None:
            check_seconds(load.timeout)
        check_mapping(data, os.environ, load.format)
        catalog = (yield from self.catalog(_existing(load.input))) if needs_catalog(data) else None
        body = load_body(data, os.environ, load.format, catalog)
        try:
            answer = yield _request(body, load)
        except RecordError as error:
            raise body.original(error) from None
        except OmniGraphError as error:
            raise body.renamed(error) from None
        result = _result(answer.document(LoadAnswerDocument), body)
        if not result.repeated:
            keep_rejects(result.rejected, load.rejects)
        return result


def _existing(input: Mapping[str, Any]) -> str:
    """Return a branch whose schema is that of the load: its own branch, or the one from which it is created."""
    return str(input.get("from_") or input["branch"])


def _request(body: LoadBody, load: _Load) -> Request:
    query = _query(body.route, {**load.input, "rejects": load.rejects is not None}, load.format)
    return Request(
        method="POST",
        path=path_of("load", body.route),
        parameters=query_of(query),
        body=body.chunks if load.watch is None else body.watched(load.watch),
        media_type=body.media_type,
        accept=TYPED_JSON,
        headers=if_match(load.if_commit),
        key=new_key() if load.key is None else load.key,
        timeout=load.timeout,
        cancel=load.cancel,
    )


def _query(route: str, members: Mapping[str, Any], format: TableFormat) -> LoadQuery:
    if route == "ndjson":
        return LoadQuery(**members)
    tables = {**members, "column": write_columns(dict(format.columns)), "skip_null_ends": format.skip_null_ends}
    if route == "arrow":
        return LoadTablesQuery(**tables)
    delimiter: Any = format.delimiter
    return LoadFilesQuery(
        **tables,
        delimiter=delimiter,
        null=list(format.nulls),
        date_format=format.date_format,
        format=format.graph_format,
        array_delimiter=format.array_delimiter,
    )


@reading
def _result(document: LoadAnswerDocument, body: LoadBody) -> LoadResult:
    rejected = tuple(_reject(record, body) for record in document.rejected)
    mode: Any = document.mode
    return LoadResult(
        document.branch,
        mode,
        document.commit.graph_commit_id if document.commit is not None else None,
        tuple((table.table_key, table.rows_loaded) for table in document.tables),
        rejected,
        0 if document.embedded_rows is UNSET else document.embedded_rows,
        0 if document.pending_embeddings is UNSET else document.pending_embeddings,
        document.base_branch,
        document.branch_created,
        len(rejected) if document.rejected_count is UNSET else document.rejected_count,
        tuple(document.notes),
        document.repeated,
    )


def _reject(found: RejectedRecordDocument, body: LoadBody) -> Reject:
    record = untyped_value(found.record) if body.records is None else body.record(found.line)
    source = body.source(found.source)
    return Reject(source, found.line, found.type, found.property, found.rule, found.reason, record, found.column)
