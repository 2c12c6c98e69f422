"""Inputs of schemas."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from omnigraph.wire.requests.request import Branch, Message, Point, Request

SchemaSource = Annotated[
    str, Meta(description="The text of a schema.", examples=["node Person {\n    name: String @key\n}\n"])
]


class SchemaQuery(Request, kw_only=True):
    """A schema to read."""

    branch: Branch | None = None
    at: Point | None = None
    form: Annotated[
        Literal["text", "json"], Meta(description="The text of the schema, or the catalog; by default `text`.")
    ] = "text"


class SchemaPlanRequest(Request, kw_only=True):
    """A schema to compare with the one of a branch."""

    schema_source: SchemaSource
    branch: Branch | None = None
    allow_data_loss: Annotated[bool, Meta(description="Permit drops of types and properties that have data.")] = False


class SchemaApplyRequest(SchemaPlanRequest, kw_only=True):
    """A schema to apply to a branch."""

    message: Message | None = None
    allow_policy_breakage: Annotated[
        bool, Meta(description="Apply the schema even if rules for rows of the policy become invalid.")
    ] = False
    allow_query_breakage: Annotated[
        bool, Meta(description="Apply the schema even if stored queries become invalid.")
    ] = False
