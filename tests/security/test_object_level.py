"""OWASP API 1: object level. Every route × the ids of others: no route shows what the caller may not read.

`ana` may read the branch `public` of graph `a`. All other branches, and graph `b`, hold data with a secret word.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from support.route_requests import RouteRequest, request_of, text_of
from support.tenants import SECRET, Tenants

GRAPH_ROUTES = [route for route in ROUTES if route.scope == "graph"]
READS = [route for route in GRAPH_ROUTES if {gate.action for gate in route.gates} <= {"read", "export"}]
REFUSED = (400, 403, 404, 405, 409, 410, 412)
SECRET_EXISTENCE = ("getCommit", "getCommitChanges")
"""Routes where a denial looks like an unknown id."""


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


def members_of(route: Route) -> list[str]:
    path = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    return path + ([member.encode_name for member in msgspec.structs.fields(route.input)] if route.input else [])


def foreign_requests(site: Tenants, route: Route) -> list[RouteRequest]:
    """Requests that differ from an allowed one in one value, which belongs to others."""
    base = request_of(route, site.mine)
    found = []
    if route.name == "mcp":
        # Its `id` is that of the message; `test_tools_refuse_the_ids_of_others` calls its tools.
        return found
    for name in members_of(route):
        for value in site.foreign.get(name, ()):
            changed = base.with_value(name, value)
            if name != "branch" and name not in base.path:
                found.append(changed.with_value("branch", None) if "branch" in base.members else changed)
            found.append(changed)
    return found


def send(site: Tenants, request: RouteRequest, actor: str = "ana") -> Any:
    members = {name: value for name, value in request.members.items() if value is not None}
    return RouteRequest(request.route, request.path, members, request.headers, request.graph).send(
        site.server, token=site.tokens[actor]
    )


@pytest.mark.parametrize("route", READS, ids=named)
def test_own_data_is_served(site: Tenants, route: Route) -> None:
    """The base of the other tests: the same requests with own ids succeed, unless they concern all branches."""
    reply = send(site, request_of(route, site.mine))
    everywhere = all(gate.branch is None and gate.target is None for gate in route.gates)
    # `ana` has one branch only, and a branch is not merged with itself. No query is stored.
    expected = {"previewMerge": (400,), "getQuery": (404,)}.get(
        route.name, (200, 206, 403) if everywhere else (200, 206)
    )
    if "{proposal}" in route.path:
        # There is no proposal of this id.
        expected = (404,)
    assert reply.status in expected, reply.body
    assert SECRET not in text_of(reply)


@pytest.mark.parametrize("route", GRAPH_ROUTES, ids=named)
def test_ids_of_others_are_refused(site: Tenants, route: Route) -> None:
    for request in foreign_requests(site, route):
        reply = send(site, request)
        shown = (request.path, request.members, reply.status, reply.body[:300])
        assert reply.status in REFUSED, shown
        assert SECRET not in text_of(reply), shown


def test_tools_refuse_the_ids_of_others(site: Tenants) -> None:
    query = {"query": site.mine["query"]}
    own = {"type": "Person", "id": "pat", "branch": "public"}
    calls = [
        *(("query", {**query, "branch": branch}) for branch in site.foreign["branch"]),
        *(("query", {**query, "at": at}) for at in site.foreign["at"]),
        *(("get", {**own, "branch": branch}) for branch in site.foreign["branch"]),
        *((tool, {**own, "id": id}) for tool in ("get", "history", "neighbors") for id in site.foreign["id"]),
        *(("search", {"text": SECRET, "branch": branch}) for branch in site.foreign["branch"]),
        *(("diff", {"from": "public", "to": to}) for to in site.foreign["to"]),
        *(("commits", {"branch": branch}) for branch in site.foreign["branch"]),
        *(("schema", {"branch": branch}) for branch in site.foreign["branch"]),
        *(("commits_get", {"id": commit}) for commit in site.foreign["commit_id"]),
        *(("snapshot", {"at": at}) for at in site.foreign["at"]),
    ]
    for tool, arguments in calls:
        params = {"name": tool, "arguments": arguments}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        reply = site.server.post("/mcp", body, token=site.tokens["ana"])
        assert reply.status == 200
        assert reply.json["result"]["isError"] is True, (tool, arguments, reply.body[:300])
        assert SECRET not in text_of(reply).replace(json.dumps(arguments), ""), (tool, arguments)
    mine = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "get", "arguments": own}}
    assert site.server.post("/mcp", mine, token=site.tokens["ana"]).json["result"]["isError"] is False


@pytest.mark.parametrize("route", GRAPH_ROUTES, ids=named)
def test_the_graph_of_another_tenant_is_closed(site: Tenants, route: Route) -> None:
    for request in [request_of(route, site.mine, graph="b"), *foreign_requests(site, route)]:
        other = RouteRequest(request.route, request.path, request.members, request.headers, "b")
        reply = send(site, other)
        if route.gates:
            assert reply.status in REFUSED, (reply.status, reply.body[:300])
        assert SECRET not in text_of(reply)


@pytest.mark.parametrize("route", [route for route in ROUTES if route.name in SECRET_EXISTENCE], ids=named)
def test_a_denial_looks_like_an_unknown_id(site: Tenants, route: Route) -> None:
    def answer(commit_id: str) -> tuple[int, str]:
        reply = send(site, request_of(route, site.mine).with_value("commit_id", commit_id))
        text = reply.body.decode().replace(commit_id, "ID").replace(reply.headers["x-request-id"], "REQUEST")
        return reply.status, text

    unknown = answer("01BX5ZZKBKACTAV9WEVGEMMVRZ")
    assert unknown[0] in (403, 404)
    assert {answer(commit_id) for commit_id in site.foreign["commit_id"]} == {unknown}


def test_an_etag_of_another_caller_gives_nothing(site: Tenants) -> None:
    """A tag depends on the request and the commit; with it, the policy is still asked first."""
    for route in (route for route in READS if route.etag and "branch" in members_of(route)):
        request = request_of(route, {**site.mine, "branch": "main"})
        tag = request.send(site.server, token=site.tokens["root"]).headers.get("etag", "*")
        for value in (tag, "*"):
            reply = request.send(site.server, token=site.tokens["ana"], headers={"If-None-Match": value})
            assert reply.status in REFUSED, (route.name, reply.status)
    for route in (route for route in READS if route.etag and "commit_id" in members_of(route)):
        for commit_id in site.foreign["commit_id"]:
            request = request_of(route, site.mine).with_value("commit_id", commit_id)
            reply = request.send(site.server, token=site.tokens["ana"], headers={"If-None-Match": "*"})
            assert reply.status in REFUSED, (route.name, reply.status)


def test_a_minimum_commit_reveals_no_commit(site: Tenants, monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit that the caller may not read is one that this server does not see."""
    monkeypatch.setattr("omnigraph.server.exchange.MIN_COMMIT_WAIT_S", 0.0)
    route = next(route for route in ROUTES if route.name == "query")
    wanted = [*site.foreign["commit_id"], "01BX5ZZKBKACTAV9WEVGEMMVRZ"]
    for commit_id in wanted:
        request = request_of(route, site.mine)
        reply = request.send(site.server, token=site.tokens["ana"], headers={"Omnigraph-Min-Commit": commit_id})
        assert reply.status == 503, reply.body
    own = {"Omnigraph-Min-Commit": site.mine["commit_id"]}
    assert request_of(route, site.mine).send(site.server, token=site.tokens["ana"], headers=own).status == 200


def test_operations_of_others_do_not_exist(site: Tenants) -> None:
    route = next(route for route in ROUTES if route.path == "/maintenance/verify")
    started = request_of(route, site.mine).send(site.server, token=site.tokens["do-maintain"])
    assert started.status == 202
    operation = started.json["id"]
    for actor in ("ana", "ben", "none", "do-read"):
        token = site.tokens[actor]
        assert operation not in text_of(site.server.get("/operations", token=token))
        for method in ("GET", "DELETE"):
            assert site.server.request(method, f"/operations/{operation}", token=token).status == 404
    assert site.server.get(f"/operations/{operation}", token=site.tokens["do-maintain"]).status == 200
