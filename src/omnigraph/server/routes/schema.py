"""Schemas: text, catalog, plans and changes."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import UNSET, UnsetType

from omnigraph.graph_handle import context_of
from omnigraph.schema.catalog import Catalog, EdgeType, InterfaceType, Metadata, NodeType, Property
from omnigraph.schema.identity import shape_hash
from omnigraph.server.answers import Answer
from omnigraph.server.caller import Caller, point_of, source_text
from omnigraph.server.details import typed_members
from omnigraph.wire.requests.schemas import SchemaApplyRequest, SchemaPlanRequest, SchemaQuery
from omnigraph.wire.schemas import (
    CatalogDocument,
    PropertyDocument,
    SchemaAppliedDocument,
    SchemaDocument,
    SchemaPlanDocument,
    TypeDocument,
)


def show(caller: Caller, body: SchemaQuery) -> Answer:
    """Return the schema of a point as text or as a catalog."""
    snapshot = caller.graph.snapshot(body.branch, point_of(body.at))
    if body.form == "text":
        return Answer(SchemaDocument(snapshot.schema.source), commit=snapshot.commit_id)
    catalog = caller.graph.catalog(at=context_of(caller.graph).name_of(snapshot))
    return Answer(catalog_document(catalog), commit=snapshot.commit_id)


def plan(caller: Caller, body: SchemaPlanRequest) -> SchemaPlanDocument:
    """Return the steps of a schema change; nothing is written."""
    steps = caller.graph.plan_schema(
        source_text(body.schema_source), allow_data_loss=body.allow_data_loss, branch=body.branch
    )
    irs = {"accepted": steps.accepted.to_json(), "desired": steps.desired.to_json()}
    return SchemaPlanDocument.of({"uri": caller.uri, **steps.to_json(), **typed_members(caller, **irs)})


def apply(caller: Caller, body: SchemaApplyRequest) -> Answer:
    """Replace the schema of a branch and migrate its tables as one commit."""
    caller.audit["source"] = body.schema_source
    result = caller.graph.apply_schema(
        source_text(body.schema_source),
        allow_data_loss=body.allow_data_loss,
        allow_policy_breakage=body.allow_policy_breakage,
        allow_query_breakage=body.allow_query_breakage,
        branch=body.branch,
        message=body.message,
        if_commit=caller.if_commit,
        idempotency_key=caller.idempotency_key,
    )
    document = SchemaAppliedDocument.of({"uri": caller.uri, **result.to_json()})
    document.commit = caller.commit_document(result.commit_id)
    return Answer(document, commit=result.commit_id)


def catalog_document(catalog: Catalog) -> CatalogDocument:
    """Return the types of a catalog."""
    return CatalogDocument(
        shape_hash(catalog),
        [_type(interface) for interface in catalog.interfaces.values()],
        [_type(node) for node in catalog.nodes.values()],
        [_type(edge) for edge in catalog.edges.values()],
    )


def _type(type_: InterfaceType | NodeType | EdgeType) -> TypeDocument:
    document = TypeDocument(
        name=type_.name,
        key=list(type_.key) if isinstance(type_, NodeType) else [],
        properties=[_property(each) for each in type_.properties.values()],
        description=_description(type_.notes),
    )
    if isinstance(type_, NodeType):
        document.implements = list(type_.implements)
    elif isinstance(type_, EdgeType):
        document.from_, document.to = type_.from_type, type_.to_type
    return document


def _property(property_: Property) -> PropertyDocument:
    return PropertyDocument(
        name=property_.name,
        type=str(property_.type),
        optional=property_.type.nullable,
        description=_description(property_.notes),
    )


def _description(notes: Sequence[Metadata]) -> str | UnsetType:
    return next((note.value for note in notes if note.name == "description" and note.value is not None), UNSET)
