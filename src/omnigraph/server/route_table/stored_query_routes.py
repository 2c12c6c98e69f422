"""Routes of stored queries."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.server.route import READ, ROWS, Gate, Route
from omnigraph.server.routes import stored_queries
from omnigraph.wire.queries import ChangeDocument, QueryDocument
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

_STORE = (Gate("query_store"), Gate("change", branch="branch"))


def _invoke_routes() -> Iterator[Route]:
    for conditional in (False, True):
        yield Route(
            name="invokeQueryIfGraphCommit" if conditional else "invokeQuery",
            method="POST",
            path="/queries/{name}/if-graph-commit" if conditional else "/queries/{name}",
            handler=stored_queries.invoke_query,
            tag="stored queries",
            summary="Call a stored query: a read returns its rows, a mutation makes one commit.",
            input=InvokeRequest,
            answer=QueryDocument,
            other_answers=(ChangeDocument,),
            gates=(Gate("invoke_query", unless=("name",), hides=True),),
            body="json",
            forms=ROWS,
            writes_when=stored_queries.is_mutation,
            conditional=conditional,
            statuses=(409, 410, 412),
        )


ROUTES: tuple[Route, ...] = (
    Route(
        name="listQueries",
        method="GET",
        path="/queries",
        handler=stored_queries.list_queries,
        tag="stored queries",
        summary="List the stored queries of a branch that the caller may call.",
        input=StoredQueriesQuery,
        answer=StoredQueryListDocument,
        gates=(READ,),
        etag=True,
        by_rights=True,
    ),
    Route(
        name="validateQueries",
        method="POST",
        path="/queries/validate",
        handler=stored_queries.validate_queries,
        tag="stored queries",
        summary="Check the stored queries of a branch against its schema, or against another one.",
        input=ValidateQueriesRequest,
        answer=QueryValidationDocument,
        gates=(READ,),
        body="json",
    ),
    Route(
        name="storeQueries",
        method="POST",
        path="/queries",
        handler=stored_queries.store_queries,
        tag="stored queries",
        summary="Store the queries of a text on a branch as one commit.",
        input=StoreQueryRequest,
        answer=QueryChangeDocument,
        gates=_STORE,
        lane="writes",
        body="json",
        writes=True,
        statuses=(409, 412),
    ),
    Route(
        name="deleteQueries",
        method="DELETE",
        path="/queries",
        handler=stored_queries.delete_queries,
        tag="stored queries",
        summary="Delete stored queries of a branch as one commit; older commits keep them.",
        input=DeleteQueriesQuery,
        answer=QueryChangeDocument,
        gates=_STORE,
        lane="writes",
        writes=True,
        statuses=(409, 412),
    ),
    Route(
        name="getQuery",
        method="GET",
        path="/queries/{name}",
        handler=stored_queries.show_query,
        tag="stored queries",
        summary="Return a stored query with its text.",
        input=StoredQueriesQuery,
        answer=StoredQueryDocument,
        gates=(READ,),
        etag=True,
        by_rights=True,
    ),
    Route(
        name="getQueryRows",
        method="GET",
        path="/queries/{name}/rows",
        handler=stored_queries.query_rows,
        tag="stored queries",
        summary="Call a stored read by its address; the answer can be cached.",
        input=QueryRowsQuery,
        answer=QueryDocument,
        gates=(Gate("invoke_query", unless=("name",), hides=True),),
        forms=ROWS,
        by_rights=True,
        collects="params",
        statuses=(304,),
    ),
    Route(
        name="storeQuery",
        method="PUT",
        path="/queries/{name}",
        handler=stored_queries.store_query,
        tag="stored queries",
        summary="Store the query of this name on a branch as one commit.",
        input=StoreQueryRequest,
        answer=QueryChangeDocument,
        gates=_STORE,
        lane="writes",
        body="json",
        writes=True,
        statuses=(409, 412),
    ),
    Route(
        name="deleteQuery",
        method="DELETE",
        path="/queries/{name}",
        handler=stored_queries.delete_query,
        tag="stored queries",
        summary="Delete a stored query of a branch as one commit; older commits keep it.",
        input=DeleteQueryQuery,
        answer=QueryChangeDocument,
        gates=_STORE,
        lane="writes",
        writes=True,
        statuses=(409, 412),
    ),
    *_invoke_routes(),
)
