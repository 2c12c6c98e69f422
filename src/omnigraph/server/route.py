"""`Route`, one row of the route table, and `Gate`, the action that the policy decides for it.

A route function takes a `Caller`, the decoded input and the path parameters, and returns a `Reply`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.server.messages.answers import Reply
from omnigraph.server.messages.content_negotiation import Form
from omnigraph.server.scheduling.execution import LaneName
from omnigraph.wire.document import Document
from omnigraph.wire.requests.request import Request

if TYPE_CHECKING:
    from omnigraph.server.caller import Caller

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Scope = Literal["graph", "server", "public"]
Limit = Literal["body", "envelope", "load"]
Body = Literal["json", "stream"]


@dataclass(frozen=True)
class Gate:
    """An action that the policy decides before anything else happens, and the members that name its branches.

    `Graph` decides again with the branch of the resolved commit; if the request names a point (`unless`), only `Graph`
    decides. A gate with `given` applies to requests that have this member. An omitted branch is `main`.
    """

    action: str
    branch: str | None = None
    target: str | None = None
    unless: tuple[str, ...] = ()
    hides: bool = False
    """True if a denial is answered like an unknown object; then only `Graph` decides."""
    given: str | None = None


READ = Gate("read", branch="branch", unless=("at", "snapshot", "after"))
ROWS: tuple[Form, ...] = ("json", "ndjson", "arrow", "csv", "parquet")


@dataclass(frozen=True, kw_only=True)
class Route:
    """One route.

    `name` is the operation id. `input` is decoded from the JSON body if there is one, else from the query string; a
    `strict` route refuses unknown members. `answer` is the JSON document. `forms` are the media types of the answer,
    the default first. `etag` marks answers that depend only on the commit and the request. A route that `writes` takes
    `Idempotency-Key` and `If-Match` and passes the admission of writes.
    """

    name: str
    method: Method
    path: str
    handler: Callable[..., Reply]
    tag: str
    summary: str
    input: type[Request] | None = None
    answer: type[Document] | None = None
    other_answers: tuple[type[Document], ...] = ()
    """Further JSON documents, which a parameter selects."""
    gates: tuple[Gate, ...] = ()
    scope: Scope = "graph"
    lane: LaneName | None = "reads"
    """The threads that run the function; None runs it on the event loop, for answers without I/O."""
    body: Body | None = None
    limit: Limit = "body"
    forms: tuple[Form, ...] = ("json",)
    media_types: tuple[str, ...] = ("application/json",)
    """Media types of the request body."""
    writes: bool = False
    writes_if: str | None = None
    """The member of the input whose presence makes a request a write."""
    writes_when: Callable[[Caller, Any, Mapping[str, str]], bool] | None = None
    """Decides by the graph whether a request is a write; it runs in a thread. A write uses the lane of writes."""
    conditional: bool = False
    """True if the route requires `Omnigraph-If-Graph-Commit`."""
    etag: bool = False
    by_rights: bool = False
    """True if the answer depends on the rights of the caller; they are a part of `ETag`."""
    collects: str | None = None
    """The member of the input that takes the parameters of the query string that are no member."""
    strict: bool = True
    several_graphs: bool = False
    """True if a server of a single graph answers 405."""
    success: int = 200
    statuses: tuple[int, ...] = ()
    """Statuses of the route beyond those that every route may answer."""
    statuses_without_body: tuple[int, ...] = ()
    """Further statuses, whose answers have no body."""
    other_failure: type[Document] | None = None
    """A document that describes a failure in place of the error object."""

    @property
    def may_write(self) -> bool:
        """True if requests of the route can write."""
        return self.writes or self.writes_if is not None or self.writes_when is not None
