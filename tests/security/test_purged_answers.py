"""After a purge and a redaction, nothing from before is confirmed or continued: tags, cursors, caches of the server."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import ChangeCursorRejected, PageCursorRejected
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from support.route_requests import RouteRequest, request_of
from support.server import ServerUnderTest, serving
from support.tenants import READ, Tenants, make_graph, tenants

ERASED = "pia"
"""A person that is purged; `pat`, which the requests name, stays."""
TAGGED = [route for route in ROUTES if route.scope == "graph" and (route.etag or route.name == "getQueryRows")]
READS = [
    route
    for route in ROUTES
    if route.scope == "graph"
    # A profile has times.
    and route.name != "profile"
    and not route.may_write
    and {gate.action for gate in route.gates} <= {"read", "export"}
]
VOLATILE = ("elapsed_ms", "request_id", "uptime_s")


def purge(graph: og.Graph) -> None:
    graph.purge("Person", [ERASED], edges=True, reason="request 17")


def redact(graph: og.Graph) -> None:
    assert graph.purge_redact(["again"], confirm=True).commits


CHANGES: list[Callable[[og.Graph], None]] = [purge, redact]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Tenants]:
    with tenants(tmp_path) as running:
        og.open(tmp_path / "a.omni").on("public").store_query(READ)
        yield running


def requests_of(site: Tenants, routes: list[Route]) -> list[RouteRequest]:
    return [request_of(route, {**site.mine, "name": "people"}) for route in routes]


def changed(site: Tenants, change: Callable[[og.Graph], None], by: str) -> None:
    """Change the history through the graph of the server, or as another process does."""
    served = site.server.holder.current.graphs["a"].graph
    assert served is not None
    change(served if by == "server" else og.open(site.folder / "a.omni"))


@pytest.mark.parametrize("by", ["server", "another process"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_tag_changes(site: Tenants, change: Callable[[og.Graph], None], by: str) -> None:
    root = {"token": site.tokens["root"]}
    requests = requests_of(site, TAGGED)
    tags = [request.send(site.server, **root).headers["etag"] for request in requests]
    for request, tag in zip(requests, tags, strict=True):
        assert request.send(site.server, headers={"If-None-Match": tag}, **root).status == 304, request.target
    changed(site, change, by)
    for request, tag in zip(requests, tags, strict=True):
        reply = request.send(site.server, headers={"If-None-Match": tag}, **root)
        assert reply.status == 200, request.target
        assert reply.headers["etag"] != tag
        again = request.send(site.server, headers={"If-None-Match": reply.headers["etag"]}, **root)
        assert again.status == 304, request.target


def test_the_tag_of_an_erased_value_is_not_confirmed(site: Tenants) -> None:
    route = next(route for route in ROUTES if route.name == "getBlob")
    request = request_of(route, {**site.mine, "id": ERASED})
    tag = request.send(site.server, token=site.tokens["root"]).headers["etag"]
    changed(site, purge, "another process")
    assert request.send(site.server, token=site.tokens["root"], headers={"If-None-Match": tag}).status == 404


@pytest.mark.parametrize("by", ["server", "another process"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_answers_equal_those_of_a_new_process(site: Tenants, change: Callable[[og.Graph], None], by: str) -> None:
    """No structure of the server that a commit names outlives the history that it was made from."""
    requests = requests_of(site, READS)
    before = [shown(site.server, site, request) for request in requests]
    changed(site, change, by)
    after = [shown(site.server, site, request) for request in requests]
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(site.folder / "tokens.json")}
    with serving(config=site.folder / "omnigraph.yaml", environ=environ) as new:
        fresh = [shown(new, site, request) for request in requests]
    for one, other in zip(after, fresh, strict=True):
        assert one == other
    assert before != after


def shown(server: ServerUnderTest, site: Tenants, request: RouteRequest) -> tuple[str, int, Any]:
    reply = request.send(server, token=site.tokens["root"])
    try:
        body = [without_volatile(json.loads(line)) for line in reply.body.splitlines()]
    except ValueError:
        body = [reply.body]
    return request.target, reply.status, body


def without_volatile(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_volatile(member) for name, member in value.items() if name not in VOLATILE}
    return [without_volatile(member) for member in value] if isinstance(value, list) else value


# -- cursors ---------------------------------------------------------------------------------------


def first_cursors(graph: og.Graph) -> dict[str, Callable[[og.Graph], Any]]:
    """Return a call that continues for every kind of cursor, each with a cursor of this moment."""
    public = graph.on("public")
    first, head = public.commits()[-1].id, public.commits()[0].id
    loaded = public.commits()[1].id
    cursors = {
        "query-page": public.query(READ, page=1).next,
        "search-page": public.search("pia pat", limit=1).next,
        "neighbor-page": public.neighbors("Person", "pat", limit=1).next,
        "diff-page": public.diff(first, head, limit=1).next,
        "commit-page": public.commit_changes(loaded, changes_max=1).page,
        "feed-cursor": public.changes().cursor,
        "feed-page": public.changes(start=f"after:{public.commits()[2].id}", changes_max=1).page,
    }
    assert None not in cursors.values(), cursors
    calls: dict[str, Callable[[og.Graph, Any], Any]] = {
        "query-page": lambda on, cursor: on.query(READ, page=1, after=cursor),
        "search-page": lambda on, cursor: on.search("pia pat", limit=1, after=cursor),
        "neighbor-page": lambda on, cursor: on.neighbors("Person", "pat", limit=1, after=cursor),
        "diff-page": lambda on, cursor: on.diff(first, head, limit=1, after=cursor),
        "commit-page": lambda on, cursor: on.commit_changes(loaded, changes_max=1, page=cursor),
        "feed-cursor": lambda on, cursor: on.changes(cursor),
        "feed-page": lambda on, cursor: on.changes(page=cursor),
    }
    return {kind: lambda on, kind=kind: calls[kind](on, cursors[kind]) for kind in calls}


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
def test_every_cursor_from_before_is_refused(tmp_path: Path, change: Callable[[og.Graph], None]) -> None:
    graph = make_graph(tmp_path / "graph")
    persons = [{"type": "Person", "data": {"name": f"pia pat {number}"}} for number in range(3)]
    edges = [{"edge": "Knows", "from": "pat", "to": f"pia pat {number}"} for number in range(3)]
    graph.on("public").load([*persons, *edges], mode="merge", message="many")
    graph.on("public").load([{"type": "Person", "data": {"name": "pat", "age": 9}}], mode="merge")
    other = og.open(tmp_path / "graph").on("public")
    continued = first_cursors(graph)
    for follow in continued.values():
        follow(other)
    change(graph)
    for kind, follow in continued.items():
        for handle in (graph.on("public"), other):
            with pytest.raises((ChangeCursorRejected, PageCursorRejected), match="purged or redacted"):
                pytest.fail(f"{kind}: {follow(handle)}")
    for follow in first_cursors(graph).values():
        follow(other)
