"""The retriever: texts, parameters, and the metadata of a hit."""

from __future__ import annotations

import pytest
from langchain_omnigraph import OmniGraphRetriever

from omnigraph.errors import InputError


def test_documents_of_a_hybrid_query_with_hops(notes):
    retriever = OmniGraphRetriever(notes, query="recall", text="note.text", k=2)
    first, second = retriever.invoke("what did the flooding damage")
    assert first.page_content == "Flooding of the river damaged the bridge."
    assert first.id == "n3"
    assert first.metadata["year"] == 2010
    assert "meaning" not in first.metadata  # vectors are left out
    hit = first.metadata["omnigraph"]
    assert (hit["id"], hit["type"], hit["query"], hit["commit"]) == ("n3", "Note", "recall", notes.commits()[0].id)
    assert [rank["by"] for rank in hit["ranks"]] == ["nearest(meaning)", "bm25(text)"]
    assert all(rank["rank"] == 1 for rank in hit["ranks"])
    assert hit["path"] == [
        {"edge": "Wrote", "from": {"id": "Bo", "type": "Author"}, "to": {"id": "n3", "type": "Note"}}
    ]
    assert second.id != first.id


def test_parameters_of_the_query(notes):
    retriever = OmniGraphRetriever(notes, query="recall", text="note.text", params={"author": "Ana"})
    assert {document.id for document in retriever.invoke("flooding")} == {"n1", "n2"}
    assert {document.id for document in retriever.invoke("flooding", author="Bo")} == {"n3", "n4"}
    with pytest.raises(InputError, match=r"no parameter '\$auther'"):
        retriever.invoke("flooding", auther="Bo")


def test_plain_columns_and_a_limit(notes):
    retriever = OmniGraphRetriever(notes, query="titles", text="n.text", k=1)
    (found,) = retriever.invoke("bridge")
    assert found.metadata.keys() == {"id", "type", "year", "omnigraph"}
    assert (found.metadata["omnigraph"]["id"], found.metadata["omnigraph"]["type"]) == (found.id, "Note")
    assert len(retriever.invoke("bridge", k=2)) == 2


def test_paths(notes):
    (first, _) = OmniGraphRetriever(notes, query="reach", text="note.text", params={"from": "Ana"}).invoke("floods")
    assert first.metadata["omnigraph"]["path"] == [{"edge": "Wrote", "from": "Ana", "to": first.id}]


def test_branch_and_point(notes):
    before = notes.commits()[0].id
    notes.branch_create("draft")
    notes.load([{"type": "Note", "data": {"slug": "n9", "text": "Flooding, again."}}], mode="merge", branch="draft")
    options = {"query": "titles", "text": "n.text"}
    assert len(OmniGraphRetriever(notes, **options).invoke("flooding")) == 2
    assert len(OmniGraphRetriever(notes, branch="draft", **options).invoke("flooding")) == 3
    assert len(OmniGraphRetriever(notes, branch="draft", at=before, **options).invoke("flooding")) == 2


def test_wrong_names_are_refused(notes):
    with pytest.raises(InputError, match="no stored query 'remember' on 'main'"):
        OmniGraphRetriever(notes, query="remember", text="text").invoke("x")
    with pytest.raises(InputError, match=r"'recall' returns no 'note\.title'"):
        OmniGraphRetriever(notes, query="recall", text="note.title").invoke("x")
    with pytest.raises(InputError, match=r"no parameter '\$words'"):
        OmniGraphRetriever(notes, query="recall", text="note.text", question="words").invoke("x")
    with pytest.raises(InputError, match="no String parameter for the question"):
        OmniGraphRetriever(notes, query="titles", text="n.text", params={"words": "x"}).invoke("x")
    with pytest.raises(InputError, match="is a mutation"):
        OmniGraphRetriever(
            notes, query="write_note", text="x", params={"slug": "a", "text": "b", "author": "Ana"}, question="text"
        ).invoke("x")
