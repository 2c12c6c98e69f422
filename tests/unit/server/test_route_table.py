"""The route table: every row is complete, gated and documented."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from omnigraph.policy.rules import KNOWN_ACTIONS, SERVER_ACTIONS
from omnigraph.server.api_description import openapi
from omnigraph.server.api_description.route_reference import END, START, route_reference
from omnigraph.server.app import make_router
from omnigraph.server.route import Route
from omnigraph.server.route_table import ROUTES

OPENAPI = Path(openapi.__file__).with_name("openapi.json")
REFERENCE = Path(__file__).parents[3] / "docs/http.md"
FREE: frozenset[str] = frozenset({"getMe", "listOperations", "getOperation", "cancelOperation"})
"""Protected routes that every authenticated actor may use.

They show only what belongs to the actor: its own rights, and its own work.
"""


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_protected_route_has_an_action(route: Route) -> None:
    if route.scope == "public":
        assert not route.gates
        return
    assert route.gates or route.name in FREE, "a route without an action is open to every token"
    assert {gate.action for gate in route.gates} <= set(KNOWN_ACTIONS if route.scope == "graph" else SERVER_ACTIONS)


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
def test_a_route_that_writes_runs_in_a_lane_of_writes(route: Route) -> None:
    # A route whose writes only the graph tells takes the lane of writes for them.
    assert not route.may_write or route.lane in ("writes", "slow") or route.writes_when is not None
    assert route.method == "GET" or route.writes or route.scope != "graph" or route.body is not None


def test_names_and_paths_are_unique() -> None:
    assert len({route.name for route in ROUTES}) == len(ROUTES)
    make_router()


def test_the_committed_openapi_document_is_current() -> None:
    text = json.dumps(openapi.openapi_document(), indent=1, ensure_ascii=False) + "\n"
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        OPENAPI.write_text(text, encoding="utf-8")
    assert OPENAPI.read_text(encoding="utf-8") == text, "run the tests with OMNIGRAPH_UPDATE_GOLDEN=1"


def test_the_nested_form_lists_the_same_operations() -> None:
    flat, nested = openapi.openapi_document(), openapi.openapi_document(nested=True, secured=False)
    assert "securitySchemes" not in nested["components"]
    assert sum(map(len, flat["paths"].values())) == sum(map(len, nested["paths"].values()))
    assert all("security" not in operation for path in nested["paths"].values() for operation in path.values())


def test_the_reference_of_routes_is_current() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    before, rest = text.split(START)
    after = rest.split(END)[1]
    current = f"{before}{START}\n\n{route_reference()}{END}{after}"
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        REFERENCE.write_text(current, encoding="utf-8")
    assert REFERENCE.read_text(encoding="utf-8") == current, "run the tests with OMNIGRAPH_UPDATE_GOLDEN=1"
