"""Calls of stored queries."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import CallHandle, at_text
from omnigraph.client.calls.mutations import mutation_result_of
from omnigraph.client.calls.queries import checked_params
from omnigraph.client.failures import unreadable
from omnigraph.client.messages import ARROW, TYPED_JSON, Response
from omnigraph.client.query_texts import sent_limits
from omnigraph.client.rows import result_of
from omnigraph.engine.result.result import Result
from omnigraph.errors import InputError
from omnigraph.graph_stored_queries import check_query_name
from omnigraph.operations.migrate import read_schema
from omnigraph.operations.mutate import MutationResult
from omnigraph.operations.requests import PageRequest, QueryText, limits_of
from omnigraph.operations.stored_queries import QueryChange, QueryValidation, read_files
from omnigraph.query.stored_queries import BrokenQuery, StoredQuery, unknown_query
from omnigraph.wire.queries import ChangeDocument
from omnigraph.wire.requests.stored_queries import (
    DeleteQueriesQuery,
    InvokeRequest,
    StoredQueriesQuery,
    StoreQueryRequest,
    ValidateQueriesRequest,
)
from omnigraph.wire.stored_queries import QueryChangeDocument, QueryValidationDocument, StoredQueryListDocument

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.engine.exec.context import Limits
    from omnigraph.versioning.write.repository import At

_EITHER = f"{ARROW}, {TYPED_JSON}; q=0.5"
"""Rows as an Arrow stream; the result of a mutation as a document, with its rows as an Arrow stream."""


class StoredQueryCalls(CallHandle):
    """Calls of stored queries."""

    def queries(self, branch: str | None = None, at: At = None) -> Call[list[StoredQuery]]:
        """Return the stored queries of a branch, or of a point of its history, that the caller may call, by name."""
        input = StoredQueriesQuery(branch=self._branch(branch), at=at_text(at))
        answer = yield self._get("queries", input=input, accept=TYPED_JSON)
        found = answer.document(StoredQueryListDocument).queries
        return [StoredQuery(each.name, _source(each.source), each.actor_id) for each in found]

    def validate_queries(
        self, schema: str | Path | None = None, *, branch: str | None = None, at: At = None
    ) -> Call[QueryValidation]:
        """Check the stored queries that the caller may call against the schema of their point, or against another one.

        `schema` is the text or the file of the other schema. Nothing is written.
        """
        source = read_schema(schema)[0] if schema is not None else None
        input = ValidateQueriesRequest(branch=self._branch(branch), at=at_text(at), schema_source=source)
        answer = yield self._post("queries", "validate", input=input, accept=TYPED_JSON)
        found = answer.document(QueryValidationDocument)
        broken = tuple(BrokenQuery(one.query, one.message) for one in found.breakages)
        return QueryValidation(found.queries, broken, tuple(found.warnings))

    def store_query(
        self,
        *sources: str | Path,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[QueryChange]:
        """Store the queries of texts or `.gq` files on a branch, as one commit.

        Each query is checked against the schema of the branch. A stored query of the same name is replaced. `if_commit`
        and `idempotency_key` are as in `mutate`.
        """
        self._check_actor("store_query", actor)
        text = "\n\n".join(query.source for query in read_files(sources, None))
        input = StoreQueryRequest(source=text, branch=self._branch(branch), message=message)
        request = self._write("queries", input=input, key=idempotency_key, if_commit=if_commit, accept=TYPED_JSON)
        return _change_of((yield request))

    def delete_query(
        self,
        *names: str,
        branch: str | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[QueryChange]:
        """Delete stored queries of a branch, as one commit; older commits keep them."""
        self._check_actor("delete_query", actor)
        if not names:
            raise InputError("no stored query is named")
        for name in names:
            _check_name(name)
        input = DeleteQueriesQuery(name=list(names), branch=self._branch(branch), message=message)
        request = self._write(
            "queries", input=input, method="DELETE", key=idempotency_key, if_commit=if_commit, accept=TYPED_JSON
        )
        return _change_of((yield request))

    def invoke(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        branch: str | None = None,
        at: At = None,
        expect_mutation: bool | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        timeout: float | None = None,
        cancel: Cancellation | None = None,
        limits: Limits | None = None,
        page: int | None = None,
        after: str | None = None,
    ) -> Call[Result | MutationResult]:
        """Call a stored query: a read returns its rows, a mutation makes one commit.

        Arguments are as in `Graph.invoke`. An absent idempotency key is generated.
        """
        _check_name(name)
        bounds = limits_of(limits, timeout, cancel)
        PageRequest.of(page, after)
        input = InvokeRequest(
            params=checked_params(QueryText.of("", name, params)),
            branch=self._branch(branch),
            at=at_text(at),
            expect_mutation=expect_mutation,
            page=page,
            after=after,
            limits=sent_limits(bounds),
            message=message,
        )
        request = self._write(
            *("queries", name),
            input=input,
            key=idempotency_key,
            if_commit=if_commit,
            timeout=bounds.timeout_s,
            cancel=bounds.cancellation,
            media_type=TYPED_JSON,
            accept=_EITHER,
        )
        response = yield request
        if response.headers.get("content-type", "").startswith(ARROW):
            # The answer is read whole, so that its rows are never requested again.
            return result_of(response, lambda _: request)
        return mutation_result_of(response.document(ChangeDocument))


def _check_name(name: str) -> None:
    """Refuse a name that cannot be a part of a path."""
    if not check_query_name(name).strip() or name in (".", ".."):
        raise unknown_query(name)


def _source(text: object) -> str:
    if not isinstance(text, str):
        raise unreadable("a stored query has no text")
    return text


def _change_of(response: Response) -> QueryChange:
    document = response.document(QueryChangeDocument)
    return QueryChange(
        document.commit.graph_commit_id if document.commit is not None else None,
        tuple(document.stored),
        tuple(document.deleted),
        tuple(document.unchanged),
    )
