"""The vector store: columns, filters, diversity, commits and branches."""

from __future__ import annotations

from datetime import date

import numpy as np
import pytest
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.vectorstores.utils import maximal_marginal_relevance
from langchain_omnigraph import OmniGraphVectorStore

import omnigraph as og
from omnigraph.errors import InputError, RecordError

FAKE = DeterministicFakeEmbedding(size=6)


def make_store(graph: og.Graph, **options: object) -> OmniGraphVectorStore:
    return OmniGraphVectorStore(graph, type="Note", vector="meaning", **options)


def test_metadata_are_properties_of_the_node(empty):
    store = make_store(empty)
    document = Document(page_content="a weir", metadata={"kind": "memo", "year": 1999, "tags": ["water"]})
    assert store.add_documents([document], ids=["w"], message="weirs") == ["w"]
    row = empty.get("Note", "w")
    assert (row["text"], row["kind"], row["year"], row["tags"]) == ("a weir", "memo", 1999, ["water"])
    assert store.get_by_ids(["w", "missing"]) == [Document(id="w", page_content="a weir", metadata=document.metadata)]
    assert empty.commits()[0].message == "weirs"


def test_a_call_is_one_commit(empty):
    store = make_store(empty)
    before = len(empty.commits())
    store.add_texts(["one", "two", "three"], ids=["1", "2", "3"])
    store.delete(["1", "2"])
    messages = [commit.message for commit in empty.commits()][: len(empty.commits()) - before]
    assert messages == ["delete documents of Note", "add 3 documents to Note"]
    assert store.add_documents([]) == []
    assert store.delete([]) is True
    assert len(empty.commits()) == before + 2
    store.delete()
    assert empty.to_arrow("Note").num_rows == 0


def test_metadata_without_a_column_are_refused_by_name(empty):
    store = make_store(empty)
    with pytest.raises(InputError, match="'page', 'source' of the document 'a' have no column in 'Note'") as refused:
        store.add_texts(["x"], [{"page": 3, "source": "f.pdf", "year": 1}], ids=["a"])
    assert "json_metadata" in str(refused.value.hint)
    with pytest.raises(InputError, match="'text'"):  # the column of the text is not a column of metadata
        store.add_texts(["x"], [{"text": "other"}])
    with pytest.raises(RecordError, match="year"):
        store.add_texts(["x"], [{"year": "nineteen"}])
    assert len(empty.commits()) == 1


def test_metadata_without_a_column_go_to_one_json_property(empty):
    store = make_store(empty, json_metadata="extra")
    store.add_texts(["x"], [{"page": 3, "year": 7, "text": "other", "nested": {"a": [1]}}], ids=["a"])
    assert empty.get("Note", "a")["extra"] == '{"nested": {"a": [1]}, "page": 3, "text": "other"}'
    (found,) = store.get_by_ids(["a"])
    assert found.metadata == {"page": 3, "year": 7, "text": "other", "nested": {"a": [1]}}
    with pytest.raises(InputError, match="'odd' of the document 'b' are not JSON"):
        store.add_texts(["x"], [{"odd": object()}], ids=["b"])
    store.add_texts(["y"], ids=["a"])  # the JSON is replaced, a property that is not given stays
    assert store.get_by_ids(["a"])[0].metadata == {"year": 7}


@pytest.mark.parametrize(
    ("filter", "params", "expected"),
    [
        ({"kind": "report"}, None, {"n4"}),
        ({"year": {">=": 2000, "<": 2010}}, None, {"n2"}),
        ({"year": {"in": [1999, 2010]}}, None, {"n1", "n3"}),
        ({"year": None}, None, {"n4"}),
        ({"year": {"!=": None}, "text": {"icontains": "BRIDGE"}}, None, {"n3"}),
        ("$a wrote $doc $a.name = $who", {"who": "Ana"}, {"n1", "n2"}),
        ('$doc.year > 2000 or $doc.kind = "report"', None, {"n2", "n3", "n4"}),
    ],
)
def test_filters_are_conditions_of_the_graph(notes, filter, params, expected):
    found = make_store(notes).similarity_search("flood", k=10, filter=filter, params=params)
    assert {document.id for document in found} == expected


def test_wrong_filters_are_refused(notes):
    store = make_store(notes)
    for filter in ({"year": {"~": 1}}, {"a b": 1}, {"year": {"<": None}}, ["year"]):
        with pytest.raises(InputError) as refused:
            store.similarity_search("x", filter=filter)
        assert refused.value.code == "bad_filter"
    with pytest.raises(InputError, match="no argument 'where'"):
        store.similarity_search("x", where="year > 3")


def test_hits_show_where_they_come_from(notes):
    store = make_store(notes, hit_metadata=True)
    (first, *_) = store.similarity_search("flooding of rivers", k=2, filter={"year": {">": 2005}})
    hit = first.metadata["omnigraph"]
    assert (hit["id"], hit["type"], hit["commit"]) == ("n3", "Note", notes.commits()[0].id)
    assert [(rank["by"], rank["rank"]) for rank in hit["ranks"]] == [("nearest(meaning)", 1)]


def test_scores_are_distances_and_relevances(notes):
    store = make_store(notes)
    ((document, distance),) = store.similarity_search_with_score("The bridge was painted green.", k=1)
    assert document.id == "n4"
    assert distance == pytest.approx(0, abs=1e-6)
    ((_, relevance),) = store.similarity_search_with_relevance_scores("The bridge was painted green.", k=1)
    assert relevance == pytest.approx(1, abs=1e-6)
    assert store.similarity_search("anything", k=0) == []


@pytest.mark.parametrize("lambda_mult", [0.0, 0.3, 0.5, 1.0])
def test_diversity_agrees_with_langchain(empty, lambda_mult):
    """The oracle is LangChain's own function, which needs the vector of the question."""
    store = OmniGraphVectorStore(empty, type="Note", vector="given", embedding=FAKE)
    texts = [f"text {n}" for n in range(12)]
    store.add_texts(texts, ids=texts)
    question = FAKE.embed_query("question")
    nearest = store.similarity_search_by_vector(question, k=9)
    vectors = FAKE.embed_documents([document.page_content for document in nearest])
    expected = maximal_marginal_relevance(np.array(question), vectors, lambda_mult, k=4)
    found = store.max_marginal_relevance_search("question", k=4, fetch_k=9, lambda_mult=lambda_mult)
    assert [document.id for document in found] == [nearest[at].id for at in expected]
    assert found == store.max_marginal_relevance_search_by_vector(question, k=4, fetch_k=9, lambda_mult=lambda_mult)


def test_diversity_of_an_empty_store(empty):
    assert make_store(empty).max_marginal_relevance_search("x") == []


def test_keys_that_are_uuids(tmp_path):
    graph = og.init(
        tmp_path / "u.omni", "node Doc { key: Uuid @key text: String seen: Date? v: Vector(6)? }", sync=False
    )
    store = OmniGraphVectorStore(graph, type="Doc", embedding=FAKE)
    first, second = store.add_texts(["one", "two"], [{"seen": date(2024, 5, 1)}, {}])
    assert store.get_by_ids([second, first])[1].metadata == {"seen": date(2024, 5, 1)}
    store.delete([first])
    assert [document.id for document in store.similarity_search("one")] == [second]


def test_a_branch_keeps_its_documents_to_itself(notes):
    notes.branch_create("draft")
    draft = make_store(notes, branch="draft")
    draft.add_texts(["Herons nest on the dyke."], ids=["n5"])
    assert draft.get_by_ids(["n5"])
    assert not make_store(notes).get_by_ids(["n5"])
    notes.merge("draft")
    assert make_store(notes).get_by_ids(["n5"])


async def test_async_methods_and_retriever(notes):
    store = await OmniGraphVectorStore.afrom_texts(
        ["Herons nest on the dyke."], None, ids=["n5"], graph=notes, type="Note", vector="meaning"
    )
    found = await store.as_retriever(search_kwargs={"k": 1, "filter": {"slug": "n5"}}).ainvoke("herons")
    assert [document.id for document in found] == ["n5"]


def test_a_store_without_its_properties_is_refused(empty, tmp_path):
    for options, message in [
        ({"type": "Nite"}, "no node type 'Nite'"),
        ({"type": "Note"}, "has 2 Vector properties"),
        ({"type": "Note", "vector": "text"}, "is not a Vector"),
        ({"type": "Note", "vector": "meaning", "text": "body"}, "no property 'body'"),
        ({"type": "Note", "vector": "meaning", "json_metadata": "year"}, "is not a String"),
        ({"type": "Note", "vector": "given"}, "is not embedded from 'text'"),
    ]:
        with pytest.raises(InputError, match=message):
            OmniGraphVectorStore(empty, **options)
    free = og.init(tmp_path / "free.omni", "node Free { text: String v: Vector(6)? }")
    with pytest.raises(InputError, match="no single String or Uuid key"):
        OmniGraphVectorStore(free, type="Free", embedding=FAKE)
    with pytest.raises(InputError, match="needs a graph"):
        OmniGraphVectorStore.from_texts(["x"], FAKE, type="Note")
    with pytest.raises(InputError, match="1 ids are given for 2 documents"):
        make_store(empty).add_documents([Document(page_content="a"), Document(page_content="b")], ids=["1"])
