"""OWASP API 5: function level. Every route × every role: an action that is not allowed is neither admitted nor run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from support.route_requests import RouteRequest, request_of, text_of
from support.tenants import GRAPH_ROLES, SECRET, SERVER_ROLES, Tenants

PROTECTED = [route for route in ROUTES if route.scope != "public"]
GATED = [route for route in PROTECTED if route.gates]
ALSO_READ = frozenset({"revertCommit", "getPlan", "invokeQuery", "invokeQueryIfGraphCommit", "getQueryRows"})
"""Routes that also read a branch or a commit, which `Graph` judges."""


def named(route: Route) -> str:
    return f"{route.method} {route.path}"


class Admitted:
    """Counts what passes the gate."""

    def __init__(self) -> None:
        self.count = 0

    def counting(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: Any, **options: Any) -> Any:
            self.count += 1
            return function(*arguments, **options)

        return counted


@pytest.fixture
def admitted(site: Tenants, monkeypatch: pytest.MonkeyPatch) -> Admitted:
    counter = Admitted()
    server = site.server.app.server
    for name in ("read", "write"):
        monkeypatch.setattr(server.admission, name, counter.counting(getattr(server.admission, name)))
    monkeypatch.setattr(server.operations, "start", counter.counting(server.operations.start))
    return counter


def actions(request: RouteRequest) -> set[str]:
    """The actions that the gates of a request ask for."""
    return {gate.action for gate in request.route.gates if gate.given is None or gate.given in request.members}


def is_judged_early(request: RouteRequest) -> bool:
    """True if the gate decides; otherwise `Graph` decides with the branch of the resolved commit."""
    given = {*request.path, *request.members}
    return not any(name.rstrip("_") in given for gate in request.route.gates for name in gate.unless)


def roles(route: Route) -> dict[str, str]:
    """Role → the only action that it may do."""
    known = SERVER_ROLES if route.scope == "server" else GRAPH_ROLES
    return {"none": "", **{role: action for action, role in known.items()}}


@pytest.mark.parametrize("route", GATED, ids=named)
def test_no_role_does_what_it_may_not(site: Tenants, admitted: Admitted, route: Route) -> None:
    request = request_of(route, site.mine)
    wanted = actions(request)
    heads = og.open(site.folder / "a.omni").commits(limit=1)[0].id
    for role, action in roles(route).items():
        if wanted <= {action}:
            continue
        reply = request.send(site.server, token=site.tokens[role])
        assert (reply.status, reply.json["code"]) == (403, "forbidden"), (role, reply.body)
        assert SECRET not in text_of(reply)
    assert admitted.count == 0 or not is_judged_early(request)
    assert og.open(site.folder / "a.omni").commits(limit=1)[0].id == heads


@pytest.mark.parametrize("route", GATED, ids=named)
def test_the_role_of_an_action_passes_its_gate(site: Tenants, route: Route) -> None:
    request = request_of(route, site.mine)
    for role, action in {**roles(route), "root": ""}.items():
        if role == "root" or (actions(request) == {action} and route.name not in ALSO_READ):
            reply = request.send(site.server, token=site.tokens[role])
            if route.scope == "graph" and not actions(request) <= GRAPH_ROLES.keys():
                # The policy is of version 1, which cannot grant the actions of version 2.
                assert reply.status == 403, (role, reply.status, reply.body[:500])
                continue
            assert reply.status not in (401, 403, 500), (role, reply.status, reply.body[:500])


@pytest.mark.parametrize("route", GATED, ids=named)
def test_a_right_on_one_graph_is_none_on_another(site: Tenants, admitted: Admitted, route: Route) -> None:
    if route.scope != "graph":
        return
    request = request_of(route, site.mine, graph="a")
    reply = request.send(site.server, token=site.tokens["ben"])
    assert reply.status in (403, 404)
    assert admitted.count == 0 or not is_judged_early(request)


def test_every_denial_is_in_the_audit_log(site: Tenants) -> None:
    for route in GATED:
        reply = request_of(route, site.mine).send(site.server, token=site.tokens["none"])
        assert f'"request_id":"{reply.headers["x-request-id"]}"' in site.audit_text, route.name
