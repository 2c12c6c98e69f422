"""The route table: every route of the server as data.

The router, the policy gate, admission, the OpenAPI document, the documentation pages and the tests are made from
`ROUTES`. A route function takes a `Caller`, the decoded input and the path parameters, and returns a `Reply`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from omnigraph.server.answers import Reply
from omnigraph.server.content_negotiation import Form
from omnigraph.server.execution import LaneName
from omnigraph.server.routes import health, mutate, query
from omnigraph.wire.document import Document
from omnigraph.wire.graph_state import VersionDocument
from omnigraph.wire.queries import ChangeDocument, QueryDocument
from omnigraph.wire.requests.queries import ChangeRequest, ReadRequest
from omnigraph.wire.requests.request import Request
from omnigraph.wire.server_state import HealthDocument, ReadyDocument

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Scope = Literal["graph", "server", "public"]
Limit = Literal["body", "envelope", "load"]
Body = Literal["json", "stream"]


@dataclass(frozen=True)
class Gate:
    """An action that the policy decides before anything else happens, and the members that name its branches.

    `Graph` decides again with the branch of the resolved commit; if the request names a point (`unless`), only `Graph`
    decides. An omitted branch is `main`.
    """

    action: str
    branch: str | None = None
    target: str | None = None
    unless: tuple[str, ...] = ()


READ = Gate("read", branch="branch", unless=("at", "snapshot", "after"))
ROWS: tuple[Form, ...] = ("json", "ndjson", "arrow", "csv")


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
    conditional: bool = False
    """True if the route requires `Omnigraph-If-Graph-Commit`."""
    etag: bool = False
    strict: bool = True
    success: int = 200
    statuses: tuple[int, ...] = ()
    """Statuses of the route beyond those that every route may answer."""


def _read_routes() -> Iterator[Route]:
    for name, path in (("read", "/read"), ("query", "/query")):
        yield Route(
            name=name,
            method="POST",
            path=path,
            handler=query.read,
            tag="queries",
            summary="Run a read query.",
            input=ReadRequest,
            answer=QueryDocument,
            gates=(READ,),
            body="json",
            forms=ROWS,
            strict=False,
            statuses=(410,),
        )


def _change_routes() -> Iterator[Route]:
    for name, path in (("change", "/change"), ("mutate", "/mutate")):
        for conditional in (False, True):
            yield Route(
                name=f"{name}IfGraphCommit" if conditional else name,
                method="POST",
                path=f"{path}/if-graph-commit" if conditional else path,
                handler=mutate.change,
                tag="mutations",
                summary="Run a mutation query as one commit.",
                input=ChangeRequest,
                answer=ChangeDocument,
                gates=(Gate("change", branch="branch"),),
                lane="writes",
                body="json",
                writes=True,
                conditional=conditional,
                strict=False,
                statuses=(409, 412),
            )


_PUBLIC = (
    Route(
        name="health",
        method="GET",
        path="/healthz",
        handler=health.health,
        tag="health",
        summary="Tell that the process serves.",
        answer=HealthDocument,
        scope="public",
        lane=None,
        strict=False,
    ),
    Route(
        name="ready",
        method="GET",
        path="/readyz",
        handler=health.ready,
        tag="health",
        summary="Tell whether the process can do its work.",
        answer=ReadyDocument,
        scope="public",
        lane=None,
        strict=False,
        statuses=(503,),
    ),
    Route(
        name="version",
        method="GET",
        path="/version",
        handler=health.version,
        tag="health",
        summary="Return the version of the program and of its storage format.",
        answer=VersionDocument,
        scope="public",
        lane=None,
        strict=False,
    ),
)

ROUTES: tuple[Route, ...] = (*_read_routes(), *_change_routes(), *_PUBLIC)
