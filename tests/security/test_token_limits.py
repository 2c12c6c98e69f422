"""Limits of tokens on a server: every action × every kind of limit, for an actor whom the policy allows everything."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.policy.rules import EFFECTS, KNOWN_ACTIONS, SERVER_ACTIONS, WITHOUT_EFFECT
from omnigraph.server.auth.tokens import new_token, token_digest
from omnigraph.server.route_table import ROUTES
from support.route_requests import request_of
from support.server import Reply, ServerUnderTest, serving
from support.tenants import UnlimitedTries

SCHEMA = "node Person { name: String @key }"
LIMIT = "imports/*"
INSIDE, OUTSIDE = "imports/x", "main"
ALL_PEOPLE = "match { $p: Person } return { $p.name }"
JUDGED = [action for action in EFFECTS if action not in WITHOUT_EFFECT]

POLICY = {
    "version": 2,
    "groups": {"owners": ["olga"]},
    "proposals": {"main": {"approvals": 1}, "imports/guarded": {"approvals": 1}},
    "rules": [{"id": "all", "allow": {"actors": {"group": "owners"}, "role": "owner"}}],
}
SERVER_POLICY = {
    "version": 1,
    "groups": {"owners": ["olga"]},
    "rules": [{"id": "all", "allow": {"actors": {"group": "owners"}, "actions": [*SERVER_ACTIONS]}}],
}


@dataclass(frozen=True)
class Site:
    """The server, its graph, and a token for each limit."""

    server: ServerUnderTest
    graph: og.Graph
    tokens: dict[str, str]

    def send(self, limit: str, method: str, path: str, body: Any = None, **options: Any) -> Reply:
        return self.server.request(method, path, body, token=self.tokens[limit], **options)


def limits() -> dict[str, dict[str, Any]]:
    """The entry of the token file for each limit."""
    past = (datetime.now(UTC) - timedelta(days=1)).isoformat()
    entries: dict[str, dict[str, Any]] = {
        "none": {},
        "branches": {"only": {"branches": [LIMIT]}},
        "no branch": {"only": {"branches": []}},
        "this graph": {"only": {"graphs": ["kb"]}},
        "other graph": {"only": {"graphs": ["other"]}},
        "expired": {"not_after": past},
    }
    entries |= {name: {"only": {"actions": ["invoke_query", name]}} for name in ("read", "change")}
    entries |= {f"only {action}": {"only": {"actions": [action]}} for action in JUDGED}
    return entries


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    folder = tmp_path_factory.mktemp("site")
    graph = og.init(folder / "kb.omni", SCHEMA, sync=False)
    graph.load([{"type": "Person", "data": {"name": "ana"}}], mode="merge")
    for branch in (INSIDE, "imports/y", "imports/guarded"):
        graph.branch_create(branch)
    graph.store_query(f"query people() @definer {{ {ALL_PEOPLE} }}", actor="olga")
    for branch in (INSIDE, "imports/y", "imports/guarded"):
        graph.mutate(f'insert Person {{ name: "{branch}" }}', branch=branch)
        graph.store_query(f"query people() @definer {{ {ALL_PEOPLE} }}", actor="olga", branch=branch)
    tokens = {limit: new_token() for limit in limits()}
    entries = [
        {"actor": "olga", "name": limit, "sha256": token_digest(tokens[limit]).hex(), **entry}
        for limit, entry in limits().items()
    ]
    config = {
        "graphs": {"kb": {"uri": "./kb.omni", "policy": {"file": "policy.yaml"}}},
        "server": {"graphs": ["kb"], "default_graph": "kb", "policy": {"file": "server.yaml"}, "audit": {"dir": "log"}},
    }
    files = {"tokens.json": {"tokens": entries}, "policy.yaml": POLICY, "server.yaml": SERVER_POLICY, "c.yaml": config}
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(folder / "tokens.json")}
    with serving(config=folder / "c.yaml", environ=environ) as server:
        server.app.server.failed_tries = UnlimitedTries()
        yield Site(server, graph, tokens)


def proposed(graph: og.Graph, branch: str) -> str:
    """A proposal to a branch that is inside or outside the limit, from one inside."""
    return graph.propose(INSIDE, into="imports/y" if branch == INSIDE else branch, title="x").id


numbers = itertools.count()


def forced(graph: og.Graph, branch: str) -> dict[str, Any]:
    return {"source": INSIDE, "target": "imports/guarded" if branch == INSIDE else branch, "force": True}


def commented(graph: og.Graph, branch: str, path: str, body: dict[str, Any]) -> tuple[str, str, Any]:
    return "POST", f"/proposals/{proposed(graph, branch)}/{path}", body


Send = Callable[[og.Graph, str], tuple[str, str, Any]]
ON_BRANCH: dict[str, Send] = {
    "read": lambda _, b: ("POST", "/query", {"query": f"query q() {{ {ALL_PEOPLE} }}", "branch": b}),
    "export": lambda _, b: ("POST", "/export", {"branch": b}),
    "change": lambda _, b: ("POST", "/mutate", {"query": 'query q() { upsert Person { name: "zoe" } }', "branch": b}),
    "schema_apply": lambda _, b: ("POST", "/schema/apply", {"schema_source": SCHEMA, "branch": b}),
    "branch_create": lambda _, b: ("PATCH", f"/branches/{b.replace('/', '%2F')}", {"description": "x"}),
    "branch_delete": lambda _, b: ("DELETE", f"/branches/{b.replace('x', 'none').replace('/', '%2F')}", None),
    "branch_merge": lambda _, b: ("POST", "/branches/merge", {"source": "imports/y", "target": b}),
    "tag_create": lambda _, b: ("POST", "/tags", {"name": f"t-{b[0]}", "branch": b}),
    "tag_delete": lambda g, b: ("DELETE", f"/tags/{g.on(b).tag_create(f'd-{next(numbers)}').name}", None),
    "maintain": lambda _, b: ("POST", "/maintenance/indices", {"branch": b}),
    "proposal_create": lambda _, b: (
        "POST", "/proposals", {"source": "imports/y", "target": b, "title": "x"},
    ),
    "proposal_comment": lambda g, b: commented(g, b, "comments", {"text": "x"}),
    "proposal_check": lambda g, b: commented(g, b, "checks/ci", {"state": "pass", "commit": "x"}),
    "proposal_approve": lambda g, b: commented(g, b, "review", {"verdict": "approve", "commit": "x"}),
    "proposal_land": lambda g, b: commented(g, b, "land", {}),
    "proposal_close": lambda g, b: commented(g, b, "close", {}),
    "proposal_bypass": lambda g, b: ("POST", "/branches/merge", forced(g, b)),
}  # fmt: skip
FURTHER: dict[str, Send] = {
    "invoke_query": lambda _, b: ("POST", "/queries/people", {"branch": b}),
    "query_store": lambda _, b: ("POST", "/queries", {"source": f"query p{b[0]}() {{ {ALL_PEOPLE} }}", "branch": b}),
    "query_define": lambda _, b: (
        "POST", "/queries", {"source": f"query d{b[0]}() @definer {{ {ALL_PEOPLE} }}", "branch": b},
    ),
}  # fmt: skip
GRANTED = {
    "no branch": (),
    "branches": (INSIDE,),
    "other graph": (),
    "expired": (),
    "this graph": (OUTSIDE, INSIDE),
    "none": (OUTSIDE, INSIDE),
}
"""Limit → the branches on which a token has the actions that name a branch."""


def test_every_action_is_classified_and_has_a_request() -> None:
    assert EFFECTS.keys() == KNOWN_ACTIONS.keys()
    assert {action for action in JUDGED if EFFECTS[action] == "branch"} == ON_BRANCH.keys()
    assert {action for action in JUDGED if EFFECTS[action] == "further"} == FURTHER.keys()
    for action, scope in KNOWN_ACTIONS.items():
        assert (scope is not None) == (EFFECTS[action] == "branch"), action


def is_refused(reply: Reply) -> bool:
    """True if the caller may not make a request. Queries and proposals that it may not use do not exist for it."""
    assert reply.status < 500, reply.body
    hidden = reply.status == 404 and reply.json["reason"] in ("query_not_found", "proposal_not_found")
    return hidden or reply.status in (401, 403)


@pytest.mark.parametrize("action", [*ON_BRANCH, *FURTHER])
def test_actions_on_branches_stay_within_the_limits(site: Site, action: str) -> None:
    send = {**ON_BRANCH, **FURTHER}[action]
    for limit, granted in GRANTED.items():
        for branch in (OUTSIDE, INSIDE):
            reply = site.send(limit, *send(site.graph, branch))
            assert is_refused(reply) == (branch not in granted), (limit, branch, reply.status, reply.body)
            assert (reply.status == 401) == (limit == "expired")


@pytest.mark.parametrize("action", [action for action in EFFECTS if EFFECTS[action] == "whole"])
def test_a_token_that_is_limited_to_branches_has_no_effect_on_the_whole_graph(site: Site, action: str) -> None:
    values = {"type": "Person", "ids": ["ana"], "reason": "x", "texts": ["first"], "confirm": True, "actor": "olga"}
    routes = [route for route in ROUTES if any(gate.action == action for gate in route.gates)]
    assert routes
    version, messages = site.graph.newest_version, [commit.message for commit in site.graph.commits()]
    for limit in ("no branch", "branches", "other graph", "expired"):
        for route in routes:
            reply = request_of(route, values).send(site.server, token=site.tokens[limit])
            assert reply.status == (401 if limit == "expired" else 403), (limit, route.name, reply.status, reply.body)
    assert site.graph.newest_version == version
    assert [commit.message for commit in site.graph.commits()] == messages
    shown = next(route for route in routes if route.method == "GET")
    assert request_of(shown, values).send(site.server, token=site.tokens["none"]).status not in (401, 403)


@pytest.mark.parametrize("action", JUDGED)
def test_a_token_that_is_limited_to_an_action_has_no_other(site: Site, action: str) -> None:
    shown = site.send(f"only {action}", "GET", "/me?branch=imports/x").json
    listed = {*shown["actions"]}
    for graph in shown["graphs"]:
        listed |= {*graph["actions"], *(name for branch in graph["branches"] for name in branch["actions"])}
    assert listed == {action}
    send = {**ON_BRANCH, **FURTHER}.get(action)
    if send is not None:
        other = "export" if action == "read" else "read"
        assert is_refused(site.send(f"only {other}", *send(site.graph, INSIDE)))


def test_a_query_with_other_rights_runs_within_the_actions_of_the_token(site: Site) -> None:
    site.graph.store_query('query add() @definer { upsert Person { name: "zoe" } }', actor="olga", branch=INSIDE)
    for query, action in (("people", "read"), ("add", "change")):
        for limit in ("read", "change", "only invoke_query"):
            reply = site.send(limit, "POST", f"/queries/{query}", {"branch": INSIDE})
            assert is_refused(reply) == (limit != action), (query, limit, reply.body)


def test_the_policy_page_lists_the_effect_of_every_action() -> None:
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text(encoding="utf-8")
    table = page.split("### Limits of tokens", 1)[1].split("| action |", 1)[1].split("\n\n", 1)[0]
    rows = [row.strip("|").split("|") for row in table.splitlines()[2:]]
    words = {"on the branches of the limit": "branch", "by the further action": "further", "never": "whole"}
    listed = {action: words[effect.strip()] for names, effect, _ in rows for action in re.findall(r"`(\w+)`", names)}
    assert listed == {action: EFFECTS[action] for action in JUDGED}
