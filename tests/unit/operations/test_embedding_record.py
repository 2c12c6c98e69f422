"""The graph records the model of a column's vectors and refuses vectors of another model."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pytest

import omnigraph as og
from omnigraph.errors import EmbeddingMismatch, InputError
from omnigraph.versioning.model.manifest_objects import EmbeddingSpace
from support.store import repository_of

SCHEMA = """
node Note {
    slug: String @key
    text: String?
    meaning: Vector(8)? @embed("text")
}
"""
LOCAL = {"OMNIGRAPH_EMBED_PROVIDER": "local", "OMNIGRAPH_EMBED_MODEL": "local-hashed-ngrams-v1"}
MOCK = {"OMNIGRAPH_EMBED_PROVIDER": "mock", "OMNIGRAPH_EMBED_MODEL": "m-1"}
OTHER_MODEL = {"OMNIGRAPH_EMBED_PROVIDER": "mock", "OMNIGRAPH_EMBED_MODEL": "m-2"}
MIXED = {"OMNIGRAPH_EMBED_ALLOW_MIXED": "1"}
BY_MOCK = EmbeddingSpace("mock", "m-1", 8)
BY_LOCAL = EmbeddingSpace("local", "local-hashed-ngrams-v1", 8)
SEARCH = "query q($q: String) { match { $n: Note } return { $n.slug } order { nearest($n.meaning, $q) } limit 5 }"
INSERT = "query q($s: String, $t: String) { insert Note { slug: $s, text: $t } }"


def note(slug: str, **data: Any) -> dict[str, Any]:
    return {"type": "Note", "data": {"slug": slug, "text": f"about {slug}", **data}}


def record(graph: og.Graph, branch: str = "main", type_name: str = "Note", column: str = "meaning") -> Any:
    return graph.snapshot(branch).embedding(f"node:{type_name}", column)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A graph with one vector, made by the mock provider."""
    graph = og.init(tmp_path / "g.omni", SCHEMA, environ=MOCK, sync=False)
    assert record(graph) is None
    graph.load([note("a")], mode="append")
    assert record(graph) == BY_MOCK
    return tmp_path / "g.omni"


def opened(path: Path, environ: dict[str, str], **more: str) -> og.Graph:
    return og.open(path, environ={**environ, **more}, sync=False)


def test_first_vector_makes_the_record(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, environ={}, sync=False)
    graph.load([note("a"), note("given", meaning=[1, 0, 0, 0, 0, 0, 0, 0])], mode="append")
    assert record(graph) is None, "vectors that are given have no model"
    graph = opened(tmp_path / "g", LOCAL)
    graph.embed()
    assert record(graph) == BY_LOCAL
    graph.mutate(INSERT, params={"s": "c", "t": "more"})
    assert record(opened(tmp_path / "g", {})) == BY_LOCAL
    first = graph.commits()[-1].id
    assert graph.snapshot(at=first).embedding("node:Note", "meaning") is None
    repository_of(graph).manifest.checkpoint(repository_of(graph).state().manifest)
    rows = lance.dataset(str(tmp_path / "g" / "__manifest")).to_table(filter="object_type = 'graph_head'").to_pylist()
    assert json.loads(rows[0]["metadata"])["embeddings"] == {
        "node:Note": {"meaning": ["local", "local-hashed-ngrams-v1", 8]}
    }


WRITES = {
    "load": lambda graph, _: graph.load([note("b")], mode="append"),
    "merge load": lambda graph, _: graph.load([note("b")], mode="merge"),
    "insert": lambda graph, _: graph.mutate(INSERT, params={"s": "b", "t": "more"}),
    "update": lambda graph, _: graph.mutate('query q() { update Note set { text: "x" } where slug = "a" }'),
    "embed": lambda graph, _: (
        og.open(graph.uri, environ={}, sync=False).load([note("b")], mode="append"),
        graph.embed(),
    ),
    "bulk load": lambda graph, folder: graph.load(written(folder), mode="append"),
    "bulk merge": lambda graph, folder: graph.load(written(folder), mode="merge"),
}


def written(folder: Path) -> str:
    """A file with one note; with `_jobs` it is loaded by a job."""
    file = folder / "notes.jsonl"
    file.write_text(json.dumps(note("b")) + "\n")
    return str(file)


@pytest.fixture
def _jobs(tune: Callable[..., None]) -> None:
    tune(memory_load_bytes_max=-1)


@pytest.mark.usefixtures("_jobs")
@pytest.mark.parametrize("environ", [LOCAL, OTHER_MODEL], ids=["another provider", "another model"])
@pytest.mark.parametrize("name", WRITES)
def test_write_with_another_model_is_refused_unless_permitted(path, tmp_path, name, environ):
    graph = opened(path, environ)
    head = graph.commits()[0].id
    with pytest.raises(EmbeddingMismatch, match=r"'Note.meaning'.*'mock', model 'm-1', 8 dimensions") as refused:
        WRITES[name](graph, tmp_path)
    assert refused.value.code == "embedding_mismatch"
    assert "OMNIGRAPH_EMBED_ALLOW_MIXED=1" in (refused.value.hint or "")
    if name != "embed":
        assert graph.commits()[0].id == head
    permitted = opened(path, environ, **MIXED)
    if name == "embed":
        permitted.embed()
    else:
        WRITES[name](permitted, tmp_path)
    assert record(permitted) == BY_MOCK, "the record stays"
    assert permitted.verify() == []


@pytest.mark.usefixtures("_jobs")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_bulk_load_records_its_model(tmp_path, mode):
    graph = og.init(tmp_path / "g", SCHEMA, environ=MOCK, sync=False)
    graph.load(written(tmp_path), mode=mode)
    assert record(graph) == BY_MOCK


def test_query_with_another_model_is_refused_unless_permitted(path):
    assert len(opened(path, MOCK).query(SEARCH, params={"q": "about a"})) == 1
    for environ in (LOCAL, OTHER_MODEL):
        graph = opened(path, environ)
        for ask in (
            lambda graph=graph: graph.query(SEARCH, params={"q": "about a"}),
            lambda graph=graph: graph.query(SEARCH, params={"q": "about a"}, page=2),
        ):
            with pytest.raises(EmbeddingMismatch):
                ask()
        assert len(graph.query("query q() { match { $n: Note } return { $n.slug } }")) == 1
        assert len(opened(path, environ, **MIXED).query(SEARCH, params={"q": "about a"})) == 1


def test_embedding_the_whole_column_again_replaces_the_record(path):
    graph = opened(path, LOCAL)
    graph.embed(again=True)
    assert record(graph) == BY_LOCAL
    assert len(graph.query(SEARCH, params={"q": "about a"})) == 1
    with pytest.raises(EmbeddingMismatch):
        opened(path, MOCK).query(SEARCH, params={"q": "about a"})
    before = graph.commits()[1].id
    assert len(opened(path, MOCK).query(SEARCH, params={"q": "about a"}, at=before)) == 1, "the past has its own record"


def test_overwrite_and_empty_table_replace_the_record(path):
    graph = opened(path, LOCAL)
    graph.load([note("b")], mode="overwrite")
    assert record(graph) == BY_LOCAL
    graph.mutate('query q() { delete Note where slug = "b" }')
    other = opened(path, MOCK)
    other.load([note("c")], mode="append")
    assert record(other) == BY_MOCK


def test_branch_has_its_own_record_and_merge_copies_it(path):
    graph = opened(path, LOCAL)
    graph.branch_create("new-model")
    graph.embed(branch="new-model", again=True)
    assert (record(graph), record(graph, "new-model")) == (BY_MOCK, BY_LOCAL)
    graph.merge("new-model", into="main")
    assert record(graph) == BY_LOCAL


def test_branches_with_different_models_do_not_merge(path):
    graph = opened(path, LOCAL)
    graph.branch_create("new-model")
    graph.embed(branch="new-model", again=True)
    graph.load([note("n")], mode="append", branch="new-model")
    opened(path, MOCK).load([note("m")], mode="append", branch="main")
    with pytest.raises(InputError, match="nothing was merged") as refused:
        graph.merge("new-model", into="main")
    assert refused.value.code == "embedding_mismatch"
    graph.embed(again=True)
    graph.merge("new-model", into="main", resolve="theirs")
    assert record(graph) == BY_LOCAL
    assert len(graph.query(SEARCH, params={"q": "about a"})) == 3


def test_record_follows_a_renamed_column_and_is_removed_with_a_dropped_one(path):
    graph = opened(path, MOCK)
    renamed = SCHEMA.replace("node Note {", 'node Page @rename_from("Note") {').replace(
        '@embed("text")', '@embed("text") @rename_from("meaning")'
    )
    graph.apply_schema(renamed.replace("meaning: Vector", "sense: Vector"))
    assert record(graph, type_name="Page", column="sense") == BY_MOCK
    without = "node Page { slug: String @key  text: String? }"
    graph.apply_schema(without, allow_data_loss=True)
    assert record(graph, type_name="Page", column="sense") is None
    graph.apply_schema(without.replace("}", 'sense: Vector(8)? @embed("text") }'))
    assert record(graph, type_name="Page", column="sense") is None
