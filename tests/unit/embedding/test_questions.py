"""Texts of stored rows and texts of queries reach the provider in their own roles, through one client."""

from __future__ import annotations

import pytest

from omnigraph.errors import ModelMismatch
from support.writes import new_graph, node

SCHEMA = 'node Doc { name: String @key  text: String  vec: Vector(8)? @embed("text") }'
ASK = """query q($t: String) { match { $d: Doc } return { $d.name, nearest($d.vec, $t) as far }
    order { nearest($d.vec, $t) } limit 1 }"""


@pytest.fixture
def environ(provider):
    return {"GEMINI_API_KEY": "k", "OMNIGRAPH_EMBED_BASE_URL": provider.url, "OMNIGRAPH_EMBED_MODEL": "m1"}


def test_a_query_is_embedded_as_a_query(tmp_path, provider, environ):
    graph = new_graph(tmp_path, SCHEMA, environ=environ)
    graph.load([node("Doc", name=name, text=f"about {name}") for name in "ab"], mode="append")
    assert {seen.body["taskType"] for seen in provider.seen} == {"RETRIEVAL_DOCUMENT"}
    provider.seen.clear()
    (row,) = graph.query(ASK, params={"t": "about b"}).to_rows()
    assert row == {"d.name": "b", "far": pytest.approx(0, abs=1e-6)}
    (seen,) = provider.seen
    assert seen.body["taskType"] == "RETRIEVAL_QUERY"
    assert seen.body["outputDimensionality"] == 8
    assert seen.path.endswith("/models/m1:embedContent")


def test_another_model_is_refused_before_the_request(tmp_path, provider, environ):
    schema = SCHEMA.replace('@embed("text")', '@embed("text", model="m0")')
    graph = new_graph(tmp_path, schema, node("Doc", name="a", text="x", vec=[1] * 8), environ=environ)
    with pytest.raises(ModelMismatch) as caught:
        graph.query(ASK, params={"t": "words"})
    assert provider.seen == []
    assert (caught.value.recorded, caught.value.resolved) == ("m0", "m1")
    assert "'Doc.vec'" in caught.value.message
    assert len(graph.query("query q($v: Vector(8)) { match { $d: Doc } return { $d.name } "
                           "order { nearest($d.vec, $v) } limit 1 }", params={"v": [1] * 8})) == 1  # fmt: skip
