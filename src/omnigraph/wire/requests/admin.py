"""Inputs of administration: graphs, operations, audit and policy."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

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


class PolicyExplainRequest(Request, kw_only=True):
    """A request to judge."""

    actor: Name
    action: Name
    branch: BranchName | None = None
    target_branch: BranchName | None = None


class PolicyCase(Request, kw_only=True):
    """A request and its expected decision."""

    id: Name
    actor: Name
    action: Name
    branch: BranchName | None = None
    target_branch: BranchName | None = None
    expect: Literal["allow", "deny"]


class PolicyTestRequest(Request, kw_only=True):
    """Cases to judge with the policy in force."""

    cases: Annotated[list[PolicyCase], Meta(min_length=1, max_length=10_000)]
