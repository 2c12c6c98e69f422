"""Calls of mutations, algorithms and embeddings."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
from msgspec import UNSET, UnsetType

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import CallHandle, at_text, if_match, new_key
from omnigraph.client.calls.queries import checked_params
from omnigraph.client.decoders import read_arrow
from omnigraph.client.failures import reading, unreadable
from omnigraph.client.local_only import check_engine
from omnigraph.client.messages import TYPED_JSON
from omnigraph.client.query_texts import answered
from omnigraph.engine.result.result import Result
from omnigraph.engine.write.unify import UnifyReport
from omnigraph.errors import InputError
from omnigraph.operations.analysis.request import Analysis, AnalysisRequest
from omnigraph.operations.embed.embed_missing import FillResult
from omnigraph.operations.mutate import MutationResult
from omnigraph.operations.requests import Params, QueryText, check_seconds
from omnigraph.operations.resolution.unify_request import Pair, UnifyRule, unify_query
from omnigraph.wire.document import plain
from omnigraph.wire.loads import EmbedDocument
from omnigraph.wire.queries import AnalysisDocument, ChangeDocument
from omnigraph.wire.requests.maintenance import EmbedRequest
from omnigraph.wire.requests.queries import AnalyzeRequest, ChangeRequest

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.pipeline.runner import Watch
    from omnigraph.versioning.write.repository import At


class MutationCalls(CallHandle):
    """Calls of mutations, algorithms and embeddings."""

    def mutate(
        self,
        source: str | Path,
        name: str | Params | None = None,
        params: Params | None = None,
        *,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[MutationResult]:
        """Run one mutation query, given as text or as the path of a `.gq` file, as one commit.

        Arguments are as in `Graph.mutate`. An absent idempotency key is generated.
        """
        self._check_actor("mutate", actor)
        query = QueryText.of(source, name, params)
        return (yield from self._mutate(query, branch, message, if_commit, idempotency_key, dry_run, cancel, timeout))

    def unify(
        self,
        type_name: str,
        keep: str | int | None = None,
        drop: str | int | Sequence[str | int] | None = None,
        *,
        pairs: Iterable[Pair] | None = None,
        rules: Mapping[str, UnifyRule] | None = None,
        edges: Mapping[str, str] | None = None,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        dry_run: bool = False,
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[MutationResult]:
        """Unify nodes of one type as one commit: the nodes `drop` become aliases of the node `keep`.

        Arguments are as in `Graph.unify`.
        """
        self._check_actor("unify", actor)
        query = unify_query(type_name, keep, drop, pairs, rules, edges)
        return (yield from self._mutate(query, branch, message, if_commit, idempotency_key, dry_run, cancel, timeout))

    def _mutate(
        self,
        query: QueryText,
        branch: str | None,
        message: str | None,
        if_commit: str | None,
        idempotency_key: str | None,
        dry_run: bool,
        cancel: Cancellation | None,
        timeout: float | None,
    ) -> Call[MutationResult]:
        """Run a mutation."""
        _check_timeout(timeout)
        input = ChangeRequest(
            query=query.text,
            name=query.name,
            params=checked_params(query),
            branch=self._branch(branch),
            message=message,
            dry_run=dry_run,
        )
        request = self._write(
            "mutate",
            input=input,
            key=None if dry_run else idempotency_key,
            if_commit=if_commit,
            timeout=timeout,
            cancel=cancel,
            media_type=TYPED_JSON,
            accept=TYPED_JSON,
        )
        return mutation_result_of((yield from answered(request, query)).document(ChangeDocument))

    def analyze(
        self,
        algorithm: str,
        *,
        nodes: Sequence[str] | None = None,
        edges: Sequence[str] | None = None,
        weight: str | None = None,
        damping: float | None = None,
        parameters: Mapping[str, Any] | None = None,
        write: str | Mapping[str, str] | None = None,
        branch: str | None = None,
        at: At = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        engine: str = "memory",
        spark: Any = None,
        watch: Watch | None = None,  # noqa: ARG002 (the progress of Spark)
        cancel: Cancellation | None = None,
        timeout: float | None = None,
    ) -> Call[Analysis]:
        """Run a graph algorithm on node and edge types, by default on all.

        Arguments are as in `Graph.analyze`.
        """
        self._check_actor("analyze", actor)
        check_engine("analyze", engine, spark)
        _check_timeout(timeout)
        asked = AnalysisRequest.of(algorithm, nodes, edges, weight, damping, parameters)
        asked.check()
        if write is not None and at is not None:
            raise InputError("a past state cannot be written to", hint="omit 'at', or create a branch there")
        input = AnalyzeRequest(
            algorithm=cast(Any, algorithm),
            nodes=None if nodes is None else list(nodes),
            edges=None if edges is None else list(edges),
            weight=weight,
            parameters=dict(asked.parameters) or None,
            write=write if write is None or isinstance(write, str) else dict(write),
            top=1,
            branch=self._branch(branch),
            at=at_text(at),
            message=message,
        )
        request = self._post("analyze", input=input, accept=TYPED_JSON, timeout=timeout, cancel=cancel)
        if write is not None:
            key = new_key() if idempotency_key is None else idempotency_key
            request = replace(request, key=key, headers=if_match(if_commit))
        document = (yield request).document(AnalysisDocument)
        if isinstance(document.tables_arrow, UnsetType):
            raise unreadable("it has no tables")
        tables = {name: _table(text) for name, text in document.tables_arrow.items()}
        return Analysis(document.algorithm, tables, document.stats, document.commit_id, document.rows_written)

    def embed(
        self,
        *,
        types: Sequence[str] | None = None,
        again: bool = False,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[FillResult]:
        """Compute the missing vectors of texts as one commit; with `again`, compute all vectors.

        Arguments are as in `Graph.embed`.
        """
        self._check_actor("embed", actor)
        named = None if types is None else list(types)
        input = EmbedRequest(types=named, again=again, branch=self._branch(branch), message=message)
        request = self._write("maintenance", "embed", input=input, key=idempotency_key, if_commit=if_commit, wait=True)
        document = (yield request).document(EmbedDocument)
        return FillResult(document.branch, tuple(document.types.items()), document.commit_id)


def mutation_result_of(document: ChangeDocument) -> MutationResult:
    """Return the result of a mutation."""
    commit_id = document.commit.graph_commit_id if document.commit is not None else None
    rows = _returned_rows(document, commit_id)
    tables = None if document.tables is UNSET else plain(document.tables)
    unified = None if document.unified is UNSET else UnifyReport.from_json(plain(document.unified))
    return MutationResult(document.affected_nodes, document.affected_edges, commit_id, rows, tables, unified)


def _check_timeout(timeout: float | None) -> None:
    if timeout is not None:
        check_seconds(timeout)


def _returned_rows(document: ChangeDocument, commit_id: str | None) -> Result:
    if document.rows_arrow is UNSET:
        return Result.empty()
    return Result(
        _table(document.rows_arrow), query_name=document.query_name, commit_id=commit_id or "", elapsed_ms=0.0
    )


@reading
def _table(text: str) -> pa.Table:
    return read_arrow(b64decode(text))
