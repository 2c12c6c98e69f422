"""Schemas: text, catalog, plans and changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import UNSET, UnsetType

from omnigraph.graph_handle import context_of
from omnigraph.operations.migrate import read_ir
from omnigraph.operations.requests import source_text
from omnigraph.operations.stoppable import stoppable
from omnigraph.schema.catalog import Catalog, EdgeType, InterfaceType, Metadata, NodeType, Property
from omnigraph.schema.constraints import constraint_columns
from omnigraph.schema.document import KINDS
from omnigraph.schema.identity import SchemaIR, shape_hash
from omnigraph.schema.migration_steps import spell_constraint
from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer
from omnigraph.server.messages.details import typed_members
from omnigraph.wire.requests.schemas import SchemaApplyRequest, SchemaPlanRequest, SchemaQuery
from omnigraph.wire.schemas import (
    CatalogDocument,
    ConstraintDocument,
    PropertyDocument,
    SchemaAppliedDocument,
    SchemaDocument,
    SchemaPlanDocument,
    TypeDocument,
)

_Numbers = Mapping[tuple[str, str, str | None], int]
"""Kind and name of a type, and the name of a property or None → the number that a rename keeps."""


def show(caller: Caller, body: SchemaQuery) -> Answer:
    """Return the schema of a point as text or as a catalog."""
    snapshot = caller.graph.snapshot(body.branch, point_of(body.at))
    if body.form == "text":
        return Answer(SchemaDocument(snapshot.schema.source), commit=snapshot.commit_id)
    context = context_of(caller.graph)
    catalog = caller.graph.catalog(at=context.name_of(snapshot))
    # Gaps in the numbers would tell of declarations that the caller may not see.
    numbers = _numbers(read_ir(snapshot.schema)) if context.visibility_of(snapshot) is None else {}
    return Answer(catalog_document(catalog, numbers), commit=snapshot.commit_id)


def plan(caller: Caller, body: SchemaPlanRequest) -> SchemaPlanDocument:
    """Return the steps of a schema change; nothing is written."""
    steps = caller.graph.plan_schema(
        source_text(body.schema_source), allow_data_loss=body.allow_data_loss, branch=body.branch
    )
    irs = {"accepted": steps.accepted.to_json(), "desired": steps.desired.to_json()}
    lines = {"descriptions": [step.describe() for step in steps.steps]}
    return SchemaPlanDocument.of({"uri": caller.uri, **steps.to_json(), **lines, **typed_members(caller, **irs)})


def apply(caller: Caller, body: SchemaApplyRequest) -> Answer:
    """Replace the schema of a branch and migrate its tables as one commit."""
    caller.audit["source"] = body.schema_source
    with stoppable("schema change", caller.cancel, caller.long_timeout_s, writes=True):
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


def catalog_document(catalog: Catalog, numbers: _Numbers) -> CatalogDocument:
    """Return the types of a catalog."""
    return CatalogDocument(
        shape_hash(catalog),
        [_type(interface, numbers) for interface in catalog.interfaces.values()],
        [_type(node, numbers) for node in catalog.nodes.values()],
        [_type(edge, numbers) for edge in catalog.edges.values()],
        catalog.merge_properties,
    )


def _numbers(ir: SchemaIR) -> _Numbers:
    found: dict[tuple[str, str, str | None], int] = {}
    for kind in KINDS:
        for type_ in ir.of_kind(kind):
            found[kind, type_.name, None] = type_.id
            found.update({(kind, type_.name, each.name): each.id for each in type_.properties})
    return found


def _type(type_: InterfaceType | NodeType | EdgeType, numbers: _Numbers) -> TypeDocument:
    document = TypeDocument(
        name=type_.name,
        key=list(type_.key) if isinstance(type_, NodeType) else [],
        properties=[
            _property(each, numbers.get((type_.kind, type_.name, each.name), UNSET))
            for each in type_.properties.values()
        ],
        constraints=_constraints(type_),
        number=numbers.get((type_.kind, type_.name, None), UNSET),
        description=_description(type_.notes),
    )
    if isinstance(type_, NodeType):
        document.implements = list(type_.implements)
    elif isinstance(type_, EdgeType):
        document.from_, document.to = type_.from_type, type_.to_type
        document.cardinality = str(type_.cardinality)
    return document


def _constraints(type_: InterfaceType | NodeType | EdgeType) -> list[ConstraintDocument]:
    return [
        ConstraintDocument.of(
            {
                "kind": type(each).__name__.lower(),
                "columns": list(constraint_columns(each)),
                "text": spell_constraint(each),
            }
        )
        for each in type_.constraints
    ]


def _property(property_: Property, number: int | UnsetType) -> PropertyDocument:
    return PropertyDocument(
        name=property_.name,
        type=str(property_.type),
        optional=property_.type.nullable,
        embed=UNSET if property_.embed is None else property_.embed.source,
        number=number,
        description=_description(property_.notes),
    )


def _description(notes: Sequence[Metadata]) -> str | UnsetType:
    return next((note.value for note in notes if note.name == "description" and note.value is not None), UNSET)
