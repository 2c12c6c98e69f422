"""Stored queries: list, store, delete and call them."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from omnigraph.errors import InputError
from omnigraph.graph_stored_queries import find_stored, stored_commit
from omnigraph.operations.mutate import MutationResult
from omnigraph.operations.requests import source_text
from omnigraph.operations.stored_queries import QueryChange
from omnigraph.query.stored_queries import read_stored, unknown_query
from omnigraph.scalar_types.written_value import read_word
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer, Content, Rows
from omnigraph.server.messages.content_negotiation import arrow_text
from omnigraph.server.messages.encoding import etag_of
from omnigraph.server.messages.request import matches_none
from omnigraph.server.routes.query import narrowed
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.queries import TargetDocument, change_document
from omnigraph.wire.requests.stored_queries import (
    DeleteQueriesQuery,
    DeleteQueryQuery,
    InvokeRequest,
    QueryRowsQuery,
    StoredQueriesQuery,
    StoreQueryRequest,
    ValidateQueriesRequest,
)
from omnigraph.wire.stored_queries import (
    QueryChangeDocument,
    QueryValidationDocument,
    StoredQueryDocument,
    StoredQueryListDocument,
)


def list_queries(caller: Caller, body: StoredQueriesQuery) -> StoredQueryListDocument:
    """List the stored queries that the caller may call, by name."""
    found = caller.graph.queries(body.branch, point_of(body.at))
    return StoredQueryListDocument(
        [StoredQueryDocument.of(query.to_json(source=caller.negotiated.typed)) for query in found]
    )


def show_query(caller: Caller, body: StoredQueriesQuery, name: str) -> StoredQueryDocument:
    """Return one stored query with its text."""
    for query in caller.graph.queries(body.branch, point_of(body.at)):
        if query.name == name:
            return StoredQueryDocument.of(query.to_json())
    raise unknown_query(name)


def validate_queries(caller: Caller, body: ValidateQueriesRequest) -> QueryValidationDocument:
    """Check the stored queries that the caller may call against a schema; nothing is written."""
    schema = source_text(body.schema_source) if body.schema_source is not None else None
    found = caller.graph.validate_queries(schema, branch=body.branch, at=point_of(body.at))
    return QueryValidationDocument.of(found.to_json())


def store_queries(caller: Caller, body: StoreQueryRequest) -> Answer:
    """Store the queries of a text as one commit."""
    return _store(caller, body)


def store_query(caller: Caller, body: StoreQueryRequest, name: str) -> Answer:
    """Store the query of a name as one commit."""
    found = [query.name for query in read_stored(body.source)]
    if found != [name]:
        raise InputError(
            f"the text declares {', '.join(repr(each) for each in found)}, not only '{name}'",
            code="bad_member",
            hint="POST /queries stores a text with several queries",
        )
    return _store(caller, body)


def delete_queries(caller: Caller, body: DeleteQueriesQuery) -> Answer:
    """Delete stored queries as one commit."""
    return _delete(caller, body, *body.name)


def delete_query(caller: Caller, body: DeleteQueryQuery, name: str) -> Answer:
    """Delete a stored query as one commit."""
    return _delete(caller, body, name)


def is_mutation(caller: Caller, body: InvokeRequest, path: Mapping[str, str]) -> bool:
    """Return True if a call runs a mutation; a query that is unknown or denied is an error."""
    return find_stored(caller.graph, path["name"], body.branch, point_of(body.point)).is_mutation


def invoke_query(caller: Caller, body: InvokeRequest, name: str) -> Rows | Answer:
    """Call a stored query: a read returns its rows, a mutation makes one commit."""
    found = find_stored(caller.graph, name, body.branch, point_of(body.point))
    caller.audit["source"] = found.source
    if found.runs_as_definer:
        caller.audit["definer"] = found.actor
    expected = caller.writes if body.expect_mutation is None else body.expect_mutation
    branch = body.branch or MAIN
    limits = narrowed(caller.limits, body.limits)
    result = caller.graph.invoke(
        name,
        caller.given_params(body.params),
        branch=branch,
        at=point_of(body.point),
        expect_mutation=expected,
        message=body.message,
        if_commit=caller.if_commit,
        idempotency_key=caller.idempotency_key,
        timeout=caller.long_timeout_s if caller.writes else None,
        cancel=caller.cancel if caller.writes else None,
        limits=None if caller.writes else limits,
        page=body.page,
        after=body.after,
    )
    if isinstance(result, MutationResult):
        return _changed(caller, result, branch, name)
    target = TargetDocument(None, body.point) if body.point is not None else TargetDocument(branch, None)
    return Rows(result, target)


def query_rows(caller: Caller, body: QueryRowsQuery, name: str) -> Rows | Content:
    """Call a stored read with the parameters of the query string; 304 if the client has the rows of this commit."""
    branch, at = body.branch or MAIN, point_of(body.at)
    found = find_stored(caller.graph, name, branch, at)
    caller.audit["source"] = found.source
    if found.runs_as_definer:
        caller.audit["definer"] = found.actor
    # A text that may read the clock has other rows at another time.
    if "if-none-match" in caller.headers and "now" not in found.source and not found.is_mutation:
        commit = stored_commit(caller.graph, found, branch, at)
        tag = etag_of(commit, caller.fingerprint)
        if matches_none(caller.headers, tag):
            return Content(b"", "", {"ETag": tag}, status=HTTPStatus.NOT_MODIFIED, commit=commit)
    declared = {param["name"]: param for param in found.to_json(source=False)["params"]}
    params = {key: _written(key, values, declared.get(key)) for key, values in (body.params or {}).items()}
    result = caller.graph.invoke(
        name, params, branch=branch, at=at, expect_mutation=False, limits=narrowed(caller.limits, None)
    )
    assert not isinstance(result, MutationResult), "the kind of the query was checked"
    return Rows(result, TargetDocument(None, body.at) if body.at is not None else TargetDocument(branch, None))


def _written(name: str, values: list[str], declared: Mapping[str, Any] | None) -> Any:
    """Return the value of a parameter that is written in a query string."""
    type_: str | None = declared["type"].rstrip("?") if declared is not None else None
    if type_ is not None and type_.startswith("[") and (len(values) > 1 or not values[0].lstrip().startswith("[")):
        return [read_word(value, type_[1:-1]) for value in values]
    if len(values) > 1:
        raise InputError(f"the parameter '{name}' is given {len(values)} times", code="bad_member")
    return read_word(values[0], type_)


def _changed(caller: Caller, result: MutationResult, branch: str, name: str) -> Answer:
    commit = caller.commit_document(result.commit_id)
    document = change_document(result, branch=branch, query_name=name, actor=caller.actor, commit=commit)
    if result.rows.columns and (caller.negotiated.typed or caller.negotiated.form == "arrow"):
        document.rows_arrow = arrow_text(result.rows.to_arrow())
    return Answer(document, commit=result.commit_id)


def _store(caller: Caller, body: StoreQueryRequest) -> Answer:
    caller.audit["source"] = body.source
    branch = body.branch or MAIN
    change = caller.graph.store_query(
        source_text(body.source),
        branch=branch,
        message=body.message,
        if_commit=caller.if_commit,
        idempotency_key=caller.idempotency_key,
    )
    return _change(caller, change, branch)


def _delete(caller: Caller, body: DeleteQueryQuery, *names: str) -> Answer:
    branch = body.branch or MAIN
    change = caller.graph.delete_query(
        *names,
        branch=branch,
        message=body.message,
        if_commit=caller.if_commit,
        idempotency_key=caller.idempotency_key,
    )
    return _change(caller, change, branch)


def _change(caller: Caller, change: QueryChange, branch: str) -> Answer:
    document = QueryChangeDocument(
        branch=branch,
        stored=list(change.stored),
        deleted=list(change.deleted),
        unchanged=list(change.unchanged),
        actor_id=caller.actor,
        commit=caller.commit_document(change.commit_id),
    )
    return Answer(document, commit=change.commit_id)
