"""Searches, neighbours and further members of entities over HTTP."""

from __future__ import annotations

from support.server import ServerUnderTest


def test_search_explains_its_hits(server: ServerUnderTest) -> None:
    found = server.post("/search", {"text": "ana", "rank_of": "bo"}).json
    assert [hit["id"] for hit in found["hits"]] == ["ana"]
    (share,) = found["hits"][0]["why"]
    assert (share["by"], share["rank"], share["terms"][0]["places"]) == ("words", 1, [[0, 3]])
    assert found["rank_of"][0]["reason"] == "no_match"
    assert found["hits"][0]["data"] == {"age": 30, "name": "ana"}
    narrow = server.post("/search", {"text": "ana bo", "filters": {"age": {">": 30}}, "by": "words"}).json
    assert [hit["id"] for hit in narrow["hits"]] == ["bo"]
    wrong = server.post("/search", {"text": "ana", "filters": {"none": 1}})
    assert (wrong.status, wrong.json["reason"]) == (400, "bad_filter")
    assert server.post("/search", {"text": "ana", "types": ["None"]}).status == 404
    assert server.post("/search", {"text": "ana", "limit": 5000}).status == 400


def test_places_count_utf16_if_requested(server: ServerUnderTest) -> None:
    server.post("/mutate", {"query": 'insert Person { name: "\U0001f426 heron" }'})
    for offsets, start in (("unicode", 2), ("utf16", 3)):
        found = server.post("/search", {"text": "heron", "offsets": offsets}).json
        assert found["hits"][0]["why"][0]["terms"][0]["places"] == [[start, start + 5]]


def test_neighbours_in_pages(server: ServerUnderTest) -> None:
    page = server.get("/entities/Person/ana/neighbors").json
    assert [(each["edge"], each["direction"], each["id"]) for each in page["neighbors"]] == [("Knows", "out", "bo")]
    assert page["neighbors"][0]["edge_data"] == {"since": 2020}
    assert "next" not in page
    none = server.get("/entities/Person/ana/neighbors", params={"direction": "in"}).json
    assert none["neighbors"] == []
    assert server.get("/entities/Person/none/neighbors").json["reason"] == "entity_not_found"
    assert server.get("/entities/Person/ana/neighbors", params={"direction": "up"}).status == 400


def test_further_members_of_an_entity(server: ServerUnderTest) -> None:
    plain = server.get("/entities/Person/ana").json
    assert "blame" not in plain
    assert "degrees" not in plain
    found = server.get("/entities/Person/ana", params={"include": "blame,degrees"}).json
    assert {each["property"] for each in found["blame"]} == {"age", "name", "photo"}
    assert [(each["direction"], each["count"]) for each in found["degrees"]] == [("out", 1), ("in", 0)]
    edge = server.get("/entities/Person/ana/neighbors").json["neighbors"][0]["edge_id"]
    assert server.get(f"/entities/Knows/{edge}", params={"include": "degrees"}).json["degrees"] == []
    assert server.get("/entities/Person/ana", params={"include": "none"}).status == 400
