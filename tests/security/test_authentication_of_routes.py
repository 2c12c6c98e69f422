"""OWASP API 2 on a running server: no route answers without a valid token, and only the token names the actor."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.server.app import GRAPH_PREFIX
from omnigraph.server.auth import failed_tries
from omnigraph.server.auth.token_file import create_token, revoke_tokens
from omnigraph.server.auth.tokens import Principal, new_token, token_digest
from omnigraph.server.route_table import ROUTES, Route
from support.server import ServerUnderTest, serving

EXPIRED = new_token()
POLICY = """version: 1
groups:
  team: [ana]
rules:
  - id: team-writes
    allow:
      actors: { group: team }
      actions: [read, change]
"""
ADD = "query add($name: String) { insert Person { name: $name } }"
PROTECTED = [route for route in ROUTES if route.scope != "public"]
PATHS = [
    (route, prefix + route.path)
    for route in PROTECTED
    for prefix in ("", GRAPH_PREFIX)
    if not prefix or route.scope == "graph"
]
REFUSED = {
    "no token": ({}, "missing_token"),
    "another scheme": ({"Authorization": "Basic YW5hOmFuYQ=="}, "missing_token"),
    "wrong token": ({"Authorization": f"Bearer {new_token()}"}, "invalid_token"),
    "expired token": ({"Authorization": f"Bearer {EXPIRED}"}, "token_expired"),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    og.init(folder / "kb.omni", "node Person { name: String @key }", sync=False)
    (folder / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (folder / "omnigraph.yaml").write_text(
        "graphs: {kb: {uri: ./kb.omni}}\npolicy: {file: policy.yaml}\nserver: {graph: kb}\n", encoding="utf-8"
    )
    return folder


@pytest.fixture(scope="module")
def server(site: Path) -> Iterator[ServerUnderTest]:
    path = site / "tokens.json"
    entry = {"actor": "old", "sha256": token_digest(EXPIRED).hex(), "not_after": "2020-01-01T00:00:00Z"}
    path.write_text(json.dumps({"tokens": [entry]}), encoding="utf-8")
    token = create_token(path, Principal("ana", "laptop"))
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_FILE": str(path)}
    with serving(config=site / "omnigraph.yaml", environ=environ, token=token) as running:
        yield running


@pytest.fixture(autouse=True)
def tries(server: ServerUnderTest, monkeypatch: pytest.MonkeyPatch) -> failed_tries.FailedTries:
    """No test is slowed down by the failed tries of another."""
    counted = failed_tries.FailedTries()
    monkeypatch.setattr(server.app.server, "failed_tries", counted)
    return counted


def named(value: object) -> str | None:
    return f"{value.method} {value.name}" if isinstance(value, Route) else None


@pytest.mark.parametrize(("route", "path"), PATHS, ids=named)
def test_no_route_answers_without_a_valid_token(server: ServerUnderTest, route: Route, path: str) -> None:
    path = re.sub(r"\{\w+(:\w+)?\}", "absent", path)
    for headers, reason in REFUSED.values():
        sent = {"Authorization": "", **headers}
        # The body is wrong, and the graph of the path does not exist: the token is judged before both.
        reply = server.request(route.method, path, b"{" if route.body else None, headers=sent)
        assert reply.status == 401, (path, reason)
        assert reply.headers["www-authenticate"] == "Bearer"
        if route.method != "HEAD":
            assert (reply.json["code"], reply.json["reason"]) == ("unauthorized", reason)
            assert reply.json["request_id"] == reply.headers["x-request-id"]


def test_public_routes_need_no_token(server: ServerUnderTest) -> None:
    for route in ROUTES:
        if route.scope == "public" and "{" not in route.path:
            status = server.request(route.method, route.path, headers={"Authorization": ""}).status
            assert status < 400 or status in route.statuses, route.name


def test_nothing_but_the_token_names_the_actor(server: ServerUnderTest, site: Path) -> None:
    claims = {
        "X-Actor": "eve",
        "Omnigraph-Actor": "eve",
        "X-Forwarded-User": "eve",
        "From": "eve",
        "Cookie": "actor=eve",
    }
    body = {"query": ADD, "params": {"name": "by ana"}, "actor": "eve", "as": "eve"}
    assert server.post("/change", body, params={"actor": "eve"}, headers=claims).status == 200
    assert og.open(site / "kb.omni").commits(limit=1)[0].actor == "ana"


def test_token_in_the_query_string_is_not_accepted(server: ServerUnderTest) -> None:
    names = ("access_token", "token", "bearer", "authorization")
    reply = server.post("/query", {}, params=dict.fromkeys(names, server.token), headers={"Authorization": ""})
    assert reply.status == 401


def test_revoked_token_is_refused_after_a_reload(server: ServerUnderTest, site: Path) -> None:
    path = site / "tokens.json"
    token = create_token(path, Principal("ana", "phone"))
    query = {"query": "query q() { match { $p: Person } return { $p.name } }"}
    assert server.post("/query", query, token=token).status == 401
    assert server.holder.reload("test").ok
    assert server.post("/query", query, token=token).status == 200
    revoke_tokens(path, actor="ana", name="phone")
    assert server.holder.reload("test").ok
    reply = server.post("/query", query, token=token)
    assert (reply.status, reply.json["reason"]) == (401, "invalid_token")
    assert server.post("/query", query).status == 200


def test_broken_token_file_leaves_the_last_good_tokens(server: ServerUnderTest, site: Path) -> None:
    path = site / "tokens.json"
    good = path.read_bytes()
    query = {"query": "query q() { match { $p: Person } return { $p.name } }"}
    try:
        for broken in ("{", '{"ana": ""}', '{"ana": "a", "ben": "a"}'):
            path.write_text(broken, encoding="utf-8")
            assert not server.holder.reload("test").ok
            assert server.post("/query", query).status == 200
            assert server.post("/query", query, token="a").status == 401
    finally:
        path.write_bytes(good)
        assert server.holder.reload("test").ok


def test_many_failed_tries_are_slowed_down(
    server: ServerUnderTest, tries: failed_tries.FailedTries, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failed_tries, "DELAY_S", 0.01)
    for _ in range(failed_tries.TRIES_PER_MINUTE):
        assert server.post("/query", token="wrong").status == 401
    assert tries.delay_for("127.0.0.1") == 0
    assert server.post("/query", token="wrong").status == 401
    assert tries.delay_for("127.0.0.1") == failed_tries.DELAY_S


def test_refusals_carry_no_token(server: ServerUnderTest) -> None:
    token = new_token()
    reply = server.post("/query", {}, token=token)
    assert token not in f"{reply.headers} {reply.body!r}"
