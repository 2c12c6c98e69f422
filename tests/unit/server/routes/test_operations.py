"""Operations over HTTP: an actor sees its own work, an administrator sees all."""

from __future__ import annotations

import omnigraph as og
from support.guarded_server import SERVER_ADMIN, guarded
from support.server import ServerUnderTest
from support.waiting import wait_for

MAINTAINERS = """version: 1
groups: {team: [ana, bo]}
rules:
  - id: team-maintains
    allow: {actors: {group: team}, actions: [maintain]}
"""
BO = "token-of-bo"


def start(server: ServerUnderTest, token: str) -> str:
    accepted = server.post("/maintenance/recover", token=token)
    path = accepted.headers["location"]
    wait_for(lambda: bool(server.get(path, token=token).json["state"] == "done"), "the end of the operation")
    return path


def test_an_actor_sees_its_own_operations_and_an_administrator_all(graph: og.Graph) -> None:
    with guarded(graph, MAINTAINERS, SERVER_ADMIN) as server:
        mine, other = start(server, BO), start(server, server.token or "")
        listed = server.get("/operations", token=BO).json["operations"]
        assert [operation["actor_id"] for operation in listed] == ["bo"]
        assert (listed[0]["kind"], listed[0]["graph_id"]) == ("recover", "people")
        for method in ("GET", "DELETE"):
            hidden = server.request(method, other, token=BO)
            unknown = server.request(method, "/operations/none", token=BO)
            assert hidden.status == unknown.status == 404
            assert hidden.json["reason"] == unknown.json["reason"] == "no_such_operation"
        assert server.get(mine).status == 200
        assert len(server.get("/operations").json["operations"]) == 2


def test_operations_are_listed_in_pages(server: ServerUnderTest) -> None:
    for _ in range(3):
        start(server, "")
    ids = [operation["id"] for operation in server.get("/operations").json["operations"]]
    page = server.get("/operations", params={"limit": 2}).json
    rest = server.get("/operations", params={"after": page["next"]}).json
    assert [operation["id"] for operation in page["operations"] + rest["operations"]] == ids
    assert len(ids) == 3
    assert server.get("/operations?after=none").status == 404
    assert server.get("/operations?limit=0").status == 400
    assert server.get("/operations/..%2F..%2Fetc").status == 404
