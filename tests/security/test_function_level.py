"""OWASP API 5: function level. Every route × every role: an action that is not allowed is neither admitted nor run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import omnigraph as og
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES
from support.route_requests import request_of, text_of
from support.tenants import GRAPH_ROLES, SECRET, SERVER_ROLES, Tenants

PROTECTED = [route for route in ROUTES if route.scope != "public"]
GATED = [route for route in PROTECTED if route.gates]
HIDDEN: frozenset[str] = frozenset({"getCommitChanges"})
"""Routes that answer 404 to a caller without the right, because existence is the secret."""


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


def roles(route: Route) -> dict[str, str]:
    """Role → the only action that it may do."""
    known = SERVER_ROLES if route.scope == "server" else GRAPH_ROLES
    return {"none": "", **{role: action for action, role in known.items()}}


@pytest.mark.parametrize("route", GATED, ids=named)
def test_no_role_does_what_it_may_not(site: Tenants, admitted: Admitted, route: Route) -> None:
    wanted = {gate.action for gate in route.gates if gate.given is None}
    heads = og.open(site.folder / "a.omni").commits(limit=1)[0].id
    for role, action in roles(route).items():
        if wanted <= {action}:
            continue
        reply = request_of(route, site.mine).send(site.server, token=site.tokens[role])
        assert reply.status == (404 if route.name in HIDDEN else 403), (role, reply.body)
        assert reply.json["code"] == ("not_found" if route.name in HIDDEN else "forbidden")
        assert SECRET not in text_of(reply)
    # A hidden object is looked up, so that its denial takes as long as that of an unknown one.
    assert admitted.count == 0 or route.name in HIDDEN
    assert og.open(site.folder / "a.omni").commits(limit=1)[0].id == heads


@pytest.mark.parametrize("route", GATED, ids=named)
def test_the_role_of_an_action_passes_its_gate(site: Tenants, route: Route) -> None:
    for role, action in {**roles(route), "root": ""}.items():
        if role == "root" or {gate.action for gate in route.gates} == {action}:
            reply = request_of(route, site.mine).send(site.server, token=site.tokens[role])
            assert reply.status not in (401, 403, 500), (role, reply.status, reply.body[:500])


@pytest.mark.parametrize("route", GATED, ids=named)
def test_a_right_on_one_graph_is_none_on_another(site: Tenants, admitted: Admitted, route: Route) -> None:
    if route.scope != "graph":
        return
    reply = request_of(route, site.mine, graph="a").send(site.server, token=site.tokens["ben"])
    assert reply.status in (403, 404)
    assert admitted.count == 0 or route.name in HIDDEN


def test_every_denial_is_in_the_audit_log(site: Tenants) -> None:
    for route in GATED:
        reply = request_of(route, site.mine).send(site.server, token=site.tokens["none"])
        assert f'"request_id":"{reply.headers["x-request-id"]}"' in site.audit_text, route.name
