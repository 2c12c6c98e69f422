"""Routes of schemas."""

from __future__ import annotations

from omnigraph.server.route import READ, Gate, Route
from omnigraph.server.routes import schema
from omnigraph.wire.requests.schemas import SchemaApplyRequest, SchemaPlanRequest, SchemaQuery
from omnigraph.wire.schemas import CatalogDocument, SchemaAppliedDocument, SchemaDocument, SchemaPlanDocument

ROUTES: tuple[Route, ...] = (
    Route(
        name="getSchema",
        method="GET",
        path="/schema",
        handler=schema.show,
        tag="schema",
        summary="Return the schema as text, or as a catalog of its types.",
        input=SchemaQuery,
        answer=SchemaDocument,
        other_answers=(CatalogDocument,),
        gates=(READ,),
        etag=True,
    ),
    Route(
        name="planSchema",
        method="POST",
        path="/schema/plan",
        handler=schema.plan,
        tag="schema",
        summary="Return the steps of a schema change; nothing is written.",
        input=SchemaPlanRequest,
        answer=SchemaPlanDocument,
        gates=(Gate("read", branch="branch"),),
        body="json",
    ),
    Route(
        name="applySchema",
        method="POST",
        path="/schema/apply",
        handler=schema.apply,
        tag="mutations",
        summary="Replace the schema of a branch and migrate its tables as one commit.",
        input=SchemaApplyRequest,
        answer=SchemaAppliedDocument,
        gates=(Gate("schema_apply", target="branch"),),
        lane="writes",
        body="json",
        writes=True,
        strict=False,
        statuses=(409,),
    ),
)
