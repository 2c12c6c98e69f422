"""Missing vectors are embedded later as one commit; existing vectors stay."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import InputError, TypeNotFound

SCHEMA = """
node Note {
    slug: String @key
    text: String?
    meaning: Vector(8)? @embed("text")
    picture: Blob?
}

node Plain {
    name: String @key
}
"""
LOCAL = {"OMNIGRAPH_EMBED_PROVIDER": "local"}
RECORDS = [
    {"type": "Note", "data": {"slug": "a", "text": "rivers flood", "picture": "base64:AAEC"}},
    {"type": "Note", "data": {"slug": "b", "text": " "}},
    {"type": "Note", "data": {"slug": "c", "text": "given", "meaning": [1, 0, 0, 0, 0, 0, 0, 0]}},
    {"type": "Note", "data": {"slug": "d"}},
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    graph = og.init(tmp_path / "g.omni", SCHEMA, environ={})
    assert graph.load(RECORDS, mode="merge").pending_embeddings == 1
    return tmp_path / "g.omni"


def vectors(graph: og.Graph) -> dict[str, list[float] | None]:
    rows = graph.to_arrow("Note", columns=["slug", "meaning"]).to_pylist()
    return {row["slug"]: row["meaning"] for row in rows}


def test_only_missing_vectors_are_embedded(path):
    graph = og.open(path, environ=LOCAL, actor="ana")
    before = {record["data"]["slug"]: record for record in graph.export() if "data" in record}
    result = graph.embed(message="vectors")
    assert (result.embedded, graph.commit(result.commit_id).kind) == ((("Note", 1),), "embed")
    found = vectors(graph)
    assert found["a"] is not None
    assert (found["b"], found["c"], found["d"]) == (None, [1, 0, 0, 0, 0, 0, 0, 0], None)
    after = {record["data"]["slug"]: record for record in graph.export()}
    assert after["a"]["data"]["picture"] == before["a"]["data"]["picture"]
    again = graph.embed()
    assert (again.embedded, again.commit_id) == ((), None)
    assert graph.verify() == []


def test_again_embeds_all_vectors(path):
    graph = og.open(path, environ=LOCAL)
    assert graph.embed(again=True).to_json()["embedded_rows"] == 2
    assert vectors(graph)["c"] != [1, 0, 0, 0, 0, 0, 0, 0]
    assert vectors(graph)["d"] is None


def test_without_a_provider_nothing_is_written(path):
    graph = og.open(path, environ={})
    head = graph.snapshot().commit_id
    with pytest.raises(InputError, match="no embedding provider is configured") as caught:
        graph.embed()
    assert caught.value.code == "embedding_unconfigured"
    assert graph.snapshot().commit_id == head


def test_only_types_with_vectors_are_accepted(path):
    graph = og.open(path, environ=LOCAL)
    assert graph.embed(types=["Note"]).embedded == (("Note", 1),)
    with pytest.raises(TypeNotFound, match="there is no node type 'Plain' with an @embed property"):
        graph.embed(types=["Plain"])
