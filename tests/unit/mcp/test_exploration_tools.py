"""Search and neighbours."""

from __future__ import annotations


def test_search(endpoint, graph):
    answer = endpoint().call("search", {"text": "who paints ships", "by": "words"}).structured
    assert [(hit["type"], hit["id"]) for hit in answer["hits"]] == [("Person", "ana")]
    assert answer["hits"][0]["data"]["bio"] == "Paints ships."
    assert "meaning" not in answer["hits"][0]["data"]
    assert answer["commit"] == graph.head().commit_id
    assert endpoint().call("search", {"text": "ships", "types": ["Company"]}).structured["hits"] == []
    assert endpoint().call("search", {"text": "ships", "types": ["Nope"]}).is_error
    filtered = endpoint().call("search", {"text": "ships", "types": ["Person"], "filters": {"age": {">": 35}}})
    assert filtered.structured["hits"] == []


def test_search_has_pages(endpoint, graph):
    graph.load([{"type": "Person", "data": {"name": f"p{n:02}", "bio": "ships"}} for n in range(15)], mode="merge")
    found, after = [], None
    for _ in range(10):
        more = {"after": after} if after else {}
        answer = endpoint().call("search", {"text": "ships", "limit": 6, "by": "words", **more}).structured
        found += [hit["id"] for hit in answer["hits"]]
        after = answer.get("next")
        if after is None:
            break
    assert len(found) == len(set(found)) == 16


def test_neighbors(endpoint):
    answer = endpoint().call("neighbors", {"type": "Person", "id": "ana"}).structured
    assert [(each["edge"], each["direction"], each["id"]) for each in answer["neighbors"]] == [
        ("Knows", "out", "bo"),
        ("WorksAt", "out", "acme"),
    ]
    assert answer["counts"] == ["Knows out Person: 1", "WorksAt out Company: 1"]
    incoming = endpoint().call("neighbors", {"type": "Person", "id": "bo", "direction": "in"}).structured
    assert [each["id"] for each in incoming["neighbors"]] == ["ana"]
    first = endpoint().call("neighbors", {"type": "Person", "id": "ana", "limit": 1}).structured
    rest = endpoint().call("neighbors", {"type": "Person", "id": "ana", "after": first["next"]}).structured
    assert [each["id"] for each in rest["neighbors"]] == ["acme"]
    assert endpoint().call("neighbors", {"type": "Person", "id": "zoe"}).is_error
