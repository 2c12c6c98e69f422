"""Inputs of administration: graphs, operations, audit and policy."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from omnigraph.wire.requests.branches import Time
from omnigraph.wire.requests.request import After, BranchName, Limit, Name, Request


class GraphListQuery(Request, kw_only=True):
    """The graphs to list."""

    include: Annotated[Literal["ready", "all"], Meta(description="`all` adds the graphs that are not ready.")] = "ready"


class MeQuery(Request, kw_only=True):
    """The branch whose permitted actions are listed."""

    branch: Annotated[BranchName, Meta(description="The branch; by default all branches.")] | None = None


class AuditQuery(Request, kw_only=True):
    """The audit records to read."""

    since: Annotated[Time, Meta(description="The earliest time, in ISO 8601.")] | None = None
    until: Annotated[Time, Meta(description="The latest time, in ISO 8601.")] | None = None
    actor: Annotated[Name, Meta(description="Only the records of this actor.")] | None = None
    action: Annotated[Name, Meta(description="Only the records of this action.")] | None = None
    decision: Annotated[Literal["allow", "deny"], Meta(description="Only the records with this decision.")] | None = (
        None
    )
    limit: Limit | None = None
    after: After | None = None


Groups = Annotated[list[Name], Meta(max_length=1_000, description="Groups of the token of the actor.")]
Attributes = Annotated[dict[str, Any], Meta(max_length=1_000, description="Attributes of the token of the actor.")]
RowType = Annotated[Name, Meta(description="The type of the row, for a decision on a row.")]
RowData = Annotated[dict[str, Any], Meta(max_length=10_000, description="The row: its properties.")]


class PolicyExplainRequest(Request, kw_only=True):
    """A request to judge, on a branch or with `type` on a row."""

    actor: (
        Annotated[Name, Meta(description="The actor; by default the caller, for whom no right is needed.")] | None
    ) = None
    action: Annotated[Name, Meta(description="The action; with `type`, by default `row_read`.")] | None = None
    branch: BranchName | None = None
    target_branch: BranchName | None = None
    type: RowType | None = None
    data: RowData | None = None
    id: (
        Annotated[Name, Meta(description="The row: the id of a stored row of the branch, instead of `data`.")] | None
    ) = None
    groups: Groups = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)


class PolicyCase(Request, kw_only=True):
    """A request and its expected decision."""

    id: Name
    actor: Name
    action: Annotated[Name, Meta(description="The action; with `type`, by default `row_read`.")] | None = None
    branch: BranchName | None = None
    target_branch: BranchName | None = None
    expect: Literal["allow", "deny"]
    type: RowType | None = None
    data: RowData | None = None
    properties: (
        Annotated[
            dict[str, Literal["show", "mask", "hide"]],
            Meta(max_length=10_000, description="The expected views of properties of the row."),
        ]
        | None
    ) = None
    groups: Groups = field(default_factory=list)
    attributes: Attributes = field(default_factory=dict)
    query: Annotated[Name, Meta(description="The stored query of the action `invoke_query`.")] | None = None
    changes: Annotated[bool, Meta(description="Whether the stored query changes the graph.")] | None = None
    definer: (
        Annotated[bool, Meta(description="Whether the stored query runs with the rights of its definer.")] | None
    ) = None


class PolicyTestRequest(Request, kw_only=True):
    """Cases to judge with the policy in force."""

    cases: Annotated[list[PolicyCase], Meta(min_length=1, max_length=10_000)]
