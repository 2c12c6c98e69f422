"""Search in the nodes of all types: rankings, fusion, explanations, filters, pages, absent nodes."""

from __future__ import annotations

import json
from datetime import date

import pytest

import omnigraph as og
from omnigraph.errors import InputError, OmniGraphError, PageCursorRejected, TypeNotFound
from omnigraph.operations.search import search as search_module
from omnigraph.operations.search.search_result import SearchResult
from omnigraph.operations.search.utf16_places import utf16_places

SCHEMA = """
node Note {
  slug: String @key
  title: String
  text: String?
  kind: enum(field, desk)?
  tags: [String]?
  written: Date?
  stars: I64?
  meaning: Vector(64)? @embed("text")
}
node Person {
  name: String @key
  bio: String?
}
node Tally { year: I32 @key }
edge Wrote: Person -> Note
"""
NOTES = [
    {
        "slug": "weir",
        "title": "Night herons at the weir",
        "text": "\U0001f426 Three night herons stood on the weir at dusk",
        "kind": "field",
        "tags": ["bird"],
        "written": "2026-03-04",
        "stars": 3,
    },
    {"slug": "cats", "title": "Cats", "text": "Cats sleep in the sun", "kind": "desk", "written": "2025-01-01"},
    {"slug": "owl", "title": "An owl", "text": "A bird of the night", "kind": "field", "tags": ["bird"]},
    {"slug": "bare", "title": "Nothing"},
]
PEOPLE = [{"name": "ana", "bio": "Ana watches herons"}, {"name": "bo"}]
RECORDS = [
    *({"type": "Note", "data": note} for note in NOTES),
    *({"type": "Person", "data": person} for person in PEOPLE),
    {"type": "Tally", "data": {"year": 2026}},
]
LOCAL = {"OMNIGRAPH_EMBED_PROVIDER": "local"}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("search") / "g", SCHEMA, sync=False, environ=LOCAL)
    graph.load(RECORDS, mode="merge")
    return graph


@pytest.fixture(scope="module")
def plain(graph):
    """The same graph without an embedding provider."""
    return og.open(graph.uri, environ={})


def found(result: SearchResult) -> list[tuple[str, str]]:
    return [(hit.type, hit.id) for hit in result.hits]


def test_words_and_meaning_are_fused(graph):
    result = graph.search("night heron at the weir")
    assert found(result)[0] == ("Note", "weir")
    assert ("Person", "ana") in found(result)
    assert result.counts == {"Note": 3, "Person": 1}
    assert result.notes == ("without vectors, ranked by words only: Person",)
    assert result.next is None
    assert result.commit_id == graph.commits(limit=1)[0].id
    first = result.hits[0]
    assert [(share.by, share.rank) for share in first.why] == [("words", 1), ("meaning", 1)]
    assert first.score == pytest.approx(sum(share.share for share in first.why)) == pytest.approx(2 / 61)
    assert [hit.rank for hit in result.hits] == [1, 2, 3, 4]
    assert {"meaning"}.isdisjoint(first.row)


def test_the_score_by_words_is_that_of_the_query_language(graph):
    result = graph.search("night herons", by="words")
    text = "match { $x: Note } return { id($x) as id, bm25($x.title, $q) as a, bm25($x.text, $q) as b }"
    scores = {row["id"]: max(row["a"], row["b"]) for row in graph.query(text, {"q": "night herons"})}
    for hit in result.hits:
        (share,) = hit.why
        if hit.type == "Note":
            assert share.score == pytest.approx(scores[hit.id])
        assert sum(term.weight for term in share.terms) == pytest.approx(share.score)
        for term in share.terms:
            assert all(
                term.word.lower()[:4] in hit.row[share.property][start:end].lower() for start, end in term.places
            )
            assert term.places
    assert [share.rank for hit in result.hits for share in hit.why] == [1, 2, 3]


def test_the_distance_is_that_of_the_query_language(graph):
    result = graph.search("a bird of the night", ["Note"], by="meaning")
    rank = "nearest($x.meaning, $q)"
    text = f"match {{ $x: Note }} return {{ id($x) as id, {rank} as d }} order {{ {rank} }} limit 9"
    rows = graph.query(text, {"q": "a bird of the night"}).to_pylist()
    assert [(hit.id, hit.why[0].score) for hit in result.hits] == [(row["id"], row["d"]) for row in rows]
    assert found(result)[0] == ("Note", "owl")
    assert result.notes == ()


def test_filters_apply_before_the_ranking(graph):
    assert found(graph.search("night", by="words", filters={"written": {">=": "2026-01-01"}})) == [("Note", "weir")]
    assert found(graph.search("night", by="words", filters={"written": {">": date(2026, 3, 4)}})) == []
    assert found(graph.search("night", filters={"kind": "field", "stars": 3})) == [("Note", "weir")]
    assert found(graph.search("night", filters={"tags": {"contains": "bird"}, "kind": {"in": ["field"]}})) == [
        ("Note", "weir"),
        ("Note", "owl"),
    ]
    both = graph.search("night", filters={"stars": {">=": 1, "<": 9}})
    assert found(both) == [("Note", "weir")]
    assert "Person is not searched: it has no property 'stars'" in both.notes


@pytest.mark.parametrize(
    ("filters", "message"),
    [
        ({"colour": 1}, "no searched type has the property 'colour'"),
        ({"stars": {"~": 1}}, "unknown operator '~'"),
        ({"stars": None}, "compares with null"),
        ({"stars": {"contains": 1}}, "'contains' does not apply to 'Note.stars'"),
        ({"stars": "many"}, "the filter of 'stars': expected I64, found the string 'many'"),
        ({"stars": {"in": [1, "many"]}}, "the filter of 'stars': expected I64, found the string 'many'"),
        ({"stars": {"in": 1}}, "the filter of 'stars': expected [I64], found the integer 1"),
        ({"tags": "bird"}, "'=' does not apply to 'Note.tags'"),
        ({"meaning": [1.0]}, "does not apply to 'Note.meaning'"),
        ({"stars": {"icontains": "a"}}, "does not apply"),
        (["stars"], "filters are a mapping"),
    ],
)
def test_a_wrong_filter_is_refused(graph, filters, message):
    with pytest.raises(OmniGraphError) as caught:
        graph.search("night", ["Note"], filters=filters)
    assert message in str(caught.value)


def test_pages_continue_at_the_same_commit(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False, environ={})
    notes = [{"type": "Note", "data": {"slug": f"n{at:02}", "title": "heron " * (at + 1)}} for at in range(25)]
    graph.load(notes, mode="merge")
    whole = graph.search("heron", by="words", limit=100)
    first = graph.search("heron", by="words", limit=10)
    graph.mutate('insert Note { slug: "new", title: "heron heron" }')
    second = graph.search("heron", by="words", limit=10, after=first.next)
    third = graph.search("heron", by="words", limit=10, after=second.next)
    assert found(first) + found(second) + found(third) == found(whole)
    assert [hit.rank for hit in third.hits] == [21, 22, 23, 24, 25]
    assert third.next is None
    assert third.commit_id == whole.commit_id
    with pytest.raises(PageCursorRejected, match="another search"):
        graph.search("cats", by="words", after=first.next)
    with pytest.raises(PageCursorRejected):
        graph.search("heron", by="words", after="no token")


def test_without_a_provider_words_remain(plain):
    result = plain.search("night")
    assert {hit.id for hit in result.hits} == {"weir", "owl"}
    assert "no embedding provider is configured" in result.notes[0]
    assert [share.by for share in result.hits[0].why] == ["words"]
    with pytest.raises(InputError) as caught:
        plain.search("night", by="meaning")
    assert caught.value.code == "embedding_unconfigured"


def test_meaning_needs_vectors(graph):
    with pytest.raises(InputError, match="no searched type has vectors"):
        graph.search("night", ["Person"], by="meaning")
    assert graph.search("night", ["Note", "Person"], by="meaning").notes == ("without vectors, not searched: Person",)


def test_the_rank_of_a_node(graph):
    (hit,) = graph.search("night herons", by="words", limit=1, rank_of="ana").rank_of
    assert (hit.type, hit.rank, hit.reason, hit.why[0].rank) == ("Person", 3, None, 3)
    (dropped,) = graph.search("night", filters={"kind": "field", "stars": 9}, rank_of="weir").rank_of
    assert (dropped.reason, dropped.filters) == ("filtered", ("stars = 9",))
    (silent,) = graph.search("night", by="words", rank_of="cats").rank_of
    assert (silent.reason, silent.message) == ("no_match", "it contains none of the words")
    (empty,) = graph.search("night", rank_of="bare").rank_of
    assert empty.message == "it contains none of the words and it has no vector"
    (unknown,) = graph.search("night", rank_of="nobody").rank_of
    assert (unknown.type, unknown.reason) == (None, "not_found")


def test_a_node_beyond_the_rankings_has_scores(graph, monkeypatch):
    monkeypatch.setattr(search_module, "DEPTH", 1)
    (late,) = graph.search("night herons", rank_of="owl").rank_of
    assert late.reason == "beyond"
    assert [(share.by, share.rank) for share in late.why] == [("words", None), ("meaning", None)]
    assert all(share.score > 0 for share in late.why)


def test_types_without_text_are_noted_if_named(graph):
    assert graph.search("2026", ["Tally", "Note"], by="words").notes == ("Tally has no text and no vector to search",)
    with pytest.raises(TypeNotFound, match="there is no node type 'Notes'"):
        graph.search("night", ["Notes"])


@pytest.mark.parametrize(
    "arguments",
    [{"text": "  "}, {"by": "guess"}, {"limit": 0}, {"limit": 1001}, {"limit": True}, {"text": "x" * 10_001}],
)
def test_wrong_arguments_are_refused(graph, arguments):
    with pytest.raises(InputError):
        graph.search(**{"text": "night", **arguments})


def test_without_why_nothing_is_explained(graph):
    assert all(hit.why == () for hit in graph.search("night", why=False).hits)


def test_places_in_utf16(graph):
    result = graph.search("night herons", ["Note"], by="words", filters={"text": {"starts_with": "\U0001f426"}})
    monkey = graph.search("dusk", ["Note"], by="words")
    ((start, _),) = monkey.hits[0].why[0].terms[0].places
    ((units, _),) = utf16_places(monkey).hits[0].why[0].terms[0].places
    assert units == start + 1
    assert utf16_places(result).hits[0].id == result.hits[0].id
    json.dumps(result.to_json(str))
