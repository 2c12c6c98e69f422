"""`Caller`: the actor, the graph handle and the options of one request, as a route function sees them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any, NamedTuple

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.engine.exec.context import Limits
from omnigraph.errors import InputError
from omnigraph.graph import Graph
from omnigraph.graph_handle import context_of
from omnigraph.operations.authorization.access import Access
from omnigraph.operations.graph_context import GraphContext
from omnigraph.policy.statements import attributes_key
from omnigraph.server.auth.oidc.metadata import resource_url
from omnigraph.server.auth.tokens import Principal
from omnigraph.server.deployment.graphs import ServedGraph
from omnigraph.server.deployment.state import ServerState
from omnigraph.server.messages.bodies import SpooledBody
from omnigraph.server.messages.content_negotiation import DEFAULT, Negotiated
from omnigraph.server.observability.request_observer import RequestObserver
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.model.point_text import parse_point
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import At
from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.json_values import row_value
from omnigraph.wire.typed_values import typed_value, untyped_value

if TYPE_CHECKING:
    from omnigraph.server.app import Server
    from omnigraph.server.scheduling.operations import Operation


_EVERYTHING = "everything"
"""The digest of callers whose rows no rule limits."""


class Point(NamedTuple):
    """A commit and the text that names it, under rules for rows with the branch whose rules apply."""

    commit_id: str
    name: str

    @classmethod
    def of(cls, context: GraphContext, snapshot: Snapshot) -> Point:
        """Return the point of a snapshot."""
        return cls(snapshot.commit_id, context.name_of(snapshot))


@dataclass
class Caller:
    """One request. `graph` enforces the policy with the access of the actor."""

    server: Server
    state: ServerState
    """The state at the start of the request; a reload does not change it."""
    request_id: str
    method: str = "GET"
    remote: str = "local"
    principal: Principal | None = None
    access: Access | None = None
    served: ServedGraph | None = None
    opened: Graph | None = None
    cancel: Cancellation = field(default_factory=Cancellation)
    timeout_s: float = 30.0
    rows_max: int | None = None
    """A limit below that of the settings."""
    negotiated: Negotiated = DEFAULT
    headers: Mapping[str, str] = field(default_factory=dict)
    scheme: str = "http"
    writes: bool = False
    """True if the request is a write."""
    idempotency_key: str | None = None
    if_commit: str | None = None
    body: SpooledBody | None = None
    raw: bytes = b""
    """The JSON body as it was sent."""
    operation: Operation | None = None
    """The entry of this request in the list of operations; None for a request that needs no admission."""
    url: str = ""
    """The path prefix of the graph: empty for the default graph, `/graphs/ID` for a named one."""
    fingerprint: str = ""
    """A hash of the request, its form, what the actor may see, and the purge epoch: one part of `ETag`."""
    etag: str = ""
    observer: RequestObserver = field(default_factory=RequestObserver)
    """What the engine did for this request."""
    audit: dict[str, Any] = field(default_factory=dict)
    """Members of the audit record that only the route function knows, such as the number of rows."""

    @property
    def graph(self) -> Graph:
        """The graph of the request."""
        assert self.opened is not None, "the route is not graph-scoped"
        return self.opened

    @property
    def resource(self) -> str | None:
        """The URL of the server, as clients know it; None if the request names none."""
        return resource_url(self.state.settings.auth.resource, self.scheme, self.headers)

    @property
    def actor(self) -> str | None:
        """The authenticated actor; None in open mode."""
        return self.principal.actor if self.principal is not None else None

    @property
    def peer(self) -> str:
        """Who takes turns with others: the actor, or in open mode the address of the client."""
        return self.actor or self.remote

    @property
    def uri(self) -> str:
        """The address of the graph in answers: its id if addresses are hidden."""
        assert self.served is not None, "the route is not graph-scoped"
        return self.served.graph_id if self.state.settings.hide_uri else self.served.uri

    @property
    def visible(self) -> str:
        """A digest of what decides which rows the caller sees: its actor, groups and attributes, and the policy.

        The branch and the schema decide too. The request names the branch, the commit determines the schema.
        """
        access = self.access
        return _EVERYTHING if access is None or not access.has_row_rules else self.rights

    @property
    def rights(self) -> str:
        """A digest of what decides on the rights of the caller: its actor, groups and attributes, and the policy."""
        access = self.access
        if access is None:
            return _EVERYTHING
        parts = (self.state.digests.policy, access.actor, access.groups, attributes_key(access.attributes))
        return sha256(repr(parts).encode()).hexdigest()

    def point(self, branch: str | None, at: At) -> Point:
        """Return a snapshot that the caller may read, named so that other methods read the same."""
        return Point.of(context_of(self.graph), self.graph.snapshot(branch, at))

    @property
    def long_timeout_s(self) -> float | None:
        """The time limit of writes and exports: the one that the client requests, else none."""
        return self.timeout_s if "omnigraph-timeout-ms" in self.headers else None

    @property
    def typed_input(self) -> bool:
        """True if the values of the request body are typed: `Content-Type: application/json; values=typed`."""
        parameters = self.headers.get("content-type", "").lower().split(";")[1:]
        return any(parameter.strip().replace('"', "") == "values=typed" for parameter in parameters)

    def given_params(self, params: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the parameters of a query, typed ones as the values that they describe."""
        if params is None or not self.typed_input:
            return params
        try:
            return {name: untyped_value(value) for name, value in params.items()}
        except (ValueError, OverflowError) as error:
            raise InputError(f"'params' has an invalid typed value: {error}", code="bad_member") from None

    @property
    def row_value(self) -> Callable[[Any], Any]:
        """The function that converts a value of a row to the JSON value that the client requested."""
        return typed_value if self.negotiated.typed else row_value

    @property
    def limits(self) -> Limits:
        """The limits of a read."""
        bounds = self.state.settings.limits
        return Limits(
            rows_max=bounds.rows_max if self.rows_max is None else min(self.rows_max, bounds.rows_max),
            timeout_s=self.timeout_s,
            cancellation=self.cancel,
            bytes_max=bounds.query_bytes,
        )

    def commit_document(self, commit_id: str | None) -> CommitDocument | None:
        """Return the commit that this request made; the right to write suffices to see it."""
        assert self.served is not None
        assert self.served.graph is not None
        if commit_id is None:
            return None
        commit = context_of(self.graph).own_commit(self.served.graph.commit(commit_id))
        return commit_document(commit, typed=self.negotiated.typed)


def commit_document(commit: Commit, *, typed: bool) -> CommitDocument:
    """Return the document of a commit; a typed one has every attribute."""
    document = CommitDocument.of(commit.to_json())
    if typed:
        document.schema_hash = commit.schema_hash
        document.since = commit.since
        document.fork_commit_id = commit.fork_commit_id
    return document


def point_of(text: str | None) -> At:
    """Return the point that a request names; None is the newest commit of the branch."""
    return None if text is None else parse_point(text)
