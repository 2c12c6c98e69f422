"""Vector search, text search and rank fusion; an index does not change results."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from omnigraph.errors import InputError, ParameterError, TypeCheckError
from omnigraph.graph import Graph
from support.oracle.text import cosine_distance
from support.writes import edge, new_graph, node

SCHEMA = """
node Doc { name: String @key  text: String? @index  other: String?  vec: Vector(3)? @index }
node Tag { name: String @key }
edge About: Doc -> Tag { weight: I64? }
"""

DOCS: dict[str, tuple[str | None, list[float] | None]] = {
    "a": ("red river", [1, 0, 0]),
    "b": ("red red stone", [2, 0, 0]),
    "c": ("blue stone", [0, 1, 0]),
    "d": (None, [0, 0, 0]),
    "e": ("", None),
    "f": ("river river river", [-1, 0, 0]),
}


@pytest.fixture
def graph(tmp_path):
    docs = [node("Doc", name=name, text=text, vec=vec) for name, (text, vec) in DOCS.items()]
    tags = [node("Tag", name="t"), node("Tag", name="u")]
    about = [edge("About", *ends, id_=id_) for id_, ends in {"3": "bt", "1": "bu", "2": "at", "0": "ft"}.items()]
    return new_graph(tmp_path, SCHEMA, *docs, *tags, *about)


def ask(graph: Graph, match: str, give: str, then: str = "", params: str = "", **values: Any) -> list[tuple[Any, ...]]:
    result = graph.query(f"query q({params}) {{ match {{ {match} }} return {{ {give} }} {then} }}", params=values)
    return [tuple(row.values()) for row in result.to_rows()]


def names(graph: Graph, match: str, then: str, params: str = "", **values: Any) -> str:
    return "".join(name for (name,) in ask(graph, match, "$d.name", then, params, **values))


# -- nearest -----------------------------------------------------------------------------------------


def test_nearest_orders_by_distance_then_id(graph):
    assert names(graph, "$d: Doc", "order { nearest($d.vec, [1, 0, 0]) } limit 9") == "abcdf"
    assert names(graph, "$d: Doc", "order { nearest($d.vec, [1, 0, 0]), $d.name desc } limit 9") == "badcf"
    assert names(graph, "$d: Doc", "order { nearest($d.vec, [1, 0, 0]) } limit 2") == "ab"
    assert names(graph, "$d: Doc", "order { nearest($d.vec, [1, 0, 0]) } limit 0") == ""


def test_nearest_as_a_value(graph):
    rows = ask(graph, "$d: Doc", "$d.name, nearest($d.vec, $v)", "order { $d.name }", "$v: Vector(3)", v=[0, 2, 0])
    assert rows == [("a", 1.0), ("b", 1.0), ("c", 0.0), ("d", 1.0), ("e", None), ("f", 1.0)]


def test_a_zero_query_vector_has_distance_one(graph):
    assert names(graph, "$d: Doc", "order { nearest($d.vec, [0, 0, 0]) } limit 9") == "abcdf"
    assert {row[0] for row in ask(graph, "$d: Doc", "nearest($d.vec, [0, 0, 0])")} == {1.0, None}


def test_nearest_ranks_the_rows_of_the_whole_match(graph):
    assert (
        names(graph, '$d: Doc $d about $t $t: Tag { name: "t" }', "order { nearest($d.vec, [1, 0, 0]) } limit 2")
        == "ab"
    )
    assert names(graph, "$d: Doc not { $d about $_ }", "order { nearest($d.vec, [1, 0, 0]) } limit 2") == "cd"
    assert names(graph, '$t: Tag { name: "u" } $t about $d', "order { nearest($d.vec, [1, 0, 0]) } limit 5") == "b"


def test_rows_of_one_entity_are_ordered_by_their_edges(graph):
    rows = ask(graph, "$d: Doc $d $z:about $t", "$d.name, $t.name", "order { nearest($d.vec, [1, 0, 0]) } limit 3")
    assert rows == [("a", "t"), ("b", "u"), ("b", "t")], "edge 1 before edge 3, independent of variable names"
    assert ask(graph, "$d: Doc $d $z:about $t", "$d.name", "order { nearest($d.vec, [1, 0, 0]) } limit 2") == [
        ("a",),
        ("b",),
    ]


def test_optional_edges_order_rows(graph):
    match = "$d: Doc optional { $d $z:about $t }"
    rows = ask(graph, match, "$d.name, $t.name", "order { nearest($d.vec, [1, 0, 0]) } limit 4")
    assert rows == [("a", "t"), ("b", "u"), ("b", "t"), ("c", None)], "edge 1 before edge 3"


def test_the_query_vector_must_have_the_dimension_of_the_property(graph):
    with pytest.raises(TypeCheckError) as caught:
        names(graph, "$d: Doc", "order { nearest($d.vec, [1, 0]) } limit 1")
    assert caught.value.code == "T15"
    with pytest.raises(ParameterError, match="expected 3 dimensions, got 2"):
        names(graph, "$d: Doc", "order { nearest($d.vec, $v) } limit 1", "$v: Vector(3)", v=[1, 0])


def test_a_null_query_is_refused(graph):
    with pytest.raises(InputError, match="'nearest' on 'vec' got null instead of a text or a vector"):
        names(graph, "$d: Doc", "order { nearest($d.vec, $v) } limit 1", "$v: Vector(3)?", v=None)


@pytest.mark.parametrize("limit", [1, 10, 500])
def test_a_code_scan_ranks_like_a_full_comparison(tmp_path, limit):
    """More rows than are compared in full; many equal, some close to the range limits of 32-bit floats."""
    random = Random(limit)
    pool = [[random.uniform(-1, 1) for _ in range(7)] for _ in range(400)]
    pool += [[v * 1e-38 for v in vector] for vector in pool[:9]] + [[v * 1e37 for v in vector] for vector in pool[:9]]
    pool += [[0.0] * 7, [*pool[0][:6], pool[0][6] + 1e-6]]
    vectors = [None if random.random() < 0.05 else random.choice(pool) for _ in range(9_000)]
    graph = new_graph(tmp_path, "node V { k: I64 @key  vec: Vector(7)? }")
    graph.load([node("V", k=at, vec=vector) for at, vector in enumerate(vectors)], mode="append")
    query = np.array(pool[0], np.float32).tolist()
    result = graph.query(
        f"query q($v: Vector(7)) {{ match {{ $x: V }} return {{ $x.k, nearest($x.vec, $v) as d }}"
        f" order {{ nearest($x.vec, $v) }} limit {limit} }}",
        params={"v": query},
    )
    rounded = [None if vector is None else np.array(vector, np.float32).tolist() for vector in vectors]
    scored = [(cosine_distance(vector, query), str(at)) for at, vector in enumerate(rounded) if vector is not None]
    # Distances of multiples of a vector differ in their last digits; distances of equal vectors must not.
    expected = sorted(scored)[:limit]
    given = [(row["d"], str(row["x.k"])) for row in result]
    assert [d for d, _ in given] == pytest.approx([d for d, _ in expected], abs=1e-12)
    assert len({id_ for _, id_ in given}) == limit
    for (_, one), (_, other) in pairwise(given):
        if rounded[int(one)] == rounded[int(other)]:
            assert one < other


# -- text queries of nearest -------------------------------------------------------------------------

EMBEDDED = 'node Doc { name: String @key  text: String  vec: Vector(8)? @embed("text") }'


def test_a_text_query_is_embedded_like_stored_text(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED, environ={"OMNIGRAPH_EMBEDDINGS_MOCK": "1"})
    graph.load([node("Doc", name=name, text=f"about {name}") for name in "abc"], mode="append")
    for name in "abc":
        rows = ask(
            graph, "$d: Doc", "$d.name, nearest($d.vec, $t)", "order { nearest($d.vec, $t) } limit 1", "$t: String",
            t=f"about {name}",
        )  # fmt: skip
        assert rows == [(name, pytest.approx(0.0, abs=1e-6))]
    assert names(graph, "$d: Doc", 'order { nearest($d.vec, "about c") } limit 1') == "c"


def test_a_blank_text_and_a_missing_provider_are_refused(tmp_path):
    graph = new_graph(tmp_path, EMBEDDED, node("Doc", name="a", text="x", vec=[1] * 8))
    with pytest.raises(InputError) as caught:
        names(graph, "$d: Doc", 'order { nearest($d.vec, "words") } limit 1')
    assert caught.value.code == "embedding_unconfigured"
    with pytest.raises(InputError) as caught:
        names(graph, "$d: Doc", 'order { nearest($d.vec, "  ") } limit 1')
    assert caught.value.code == "blank_query"


def test_a_model_other_than_the_recorded_one_is_refused(tmp_path):
    schema = EMBEDDED.replace('@embed("text")', '@embed("text", model="m1")')
    environ = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1", "OMNIGRAPH_EMBED_MODEL": "m2"}
    graph = new_graph(tmp_path, schema, node("Doc", name="a", text="x", vec=[1] * 8), environ=environ)
    with pytest.raises(InputError, match=r"m1.*m2|m2.*m1"):
        names(graph, "$d: Doc", 'order { nearest($d.vec, "words") } limit 1')


# -- text --------------------------------------------------------------------------------------------


def test_text_predicates(graph):
    found = {
        'search($d.text, "RIVERS")': "af",
        'match_text($d.text, "rivers blue")': "acf",
        'search($d.text, "the")': "",
        'search($d.text, "")': "",
        'fuzzy($d.text, "rivet", 1)': "af",
        'fuzzy($d.text, "rivet", 0)': "",
        'fuzzy($d.text, "rod")': "ab",
        'search($d.text, "red") search($d.text, "river")': "a",
        'search($d.text, "red") not { search($d.text, "stone") }': "a",
        '$t: Tag { name: "t" } $d about $t search($d.text, "red")': "ab",
        'search($d.text, "stone") = false': "adef",
        'search($d.other, "red")': "",
    }
    for condition, expected in found.items():
        assert names(graph, f"$d: Doc {condition}", "order { $d.name }") == expected, condition
    assert names(graph, "$d: Doc search($d.text, $q)", "", "$q: String?", q=None) == ""


def test_match_all_words_or_any(graph):
    find = "$d: Doc search($d.text, $q{})"
    for query, some, every in (
        ("red river", "abf", "a"),
        ("river", "af", "af"),
        ("the red", "ab", "ab"),
        ("red green", "ab", ""),
        ("the", "", ""),
        (None, "", ""),
    ):
        for function in ("search", "match_text"):
            any_of, all_of = (find.format(more).replace("search", function) for more in ("", ", all"))
            assert names(graph, any_of, "order { $d.name }", "$q: String?", q=query) == some
            assert names(graph, all_of, "order { $d.name }", "$q: String?", q=query) == every
    assert names(graph, '$d: Doc not search($d.text, "red river", all)', "order { $d.name }") == "bcdef"
    assert ask(graph, '$d: Doc { name: "b" }', 'search($d.text, "red river", all) as every') == [(False,)]
    for third in ("any", '"all"', "1", "$d.name"):
        with pytest.raises(TypeCheckError, match="the third argument of 'search' is the word 'all'"):
            names(graph, f'$d: Doc search($d.text, "red", {third})', "")
    plan = graph.explain('query q() { match { $d: Doc search($d.text, "red river", all) } return { $d.name } }')
    assert 'search($d.text, "red river", all)' in str(plan)


def test_text_without_spaces_is_found(tmp_path):
    long = "吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。"
    texts = {"a": long, "b": "東京都庁", "c": "京都へ行く", "d": "한국어를 배우다", "e": "Python入門"}
    graph = new_graph(tmp_path, SCHEMA, *(node("Doc", name=name, text=text) for name, text in texts.items()))
    for query, found in (
        ("猫である", "a"),
        ("見当", "a"),
        ("東京", "b"),
        ("京都", "bc"),
        ("한국", "d"),
        ("入門 python", "e"),
        ("ｐｙｔｈｏｎ", "e"),
        ("犬", ""),
    ):
        assert names(graph, "$d: Doc search($d.text, $q)", "order { $d.name }", "$q: String", q=query) == found
    every = "$d: Doc search($d.text, $q, all)"
    assert names(graph, every, "order { $d.name }", "$q: String", q="東京都庁") == "b"
    assert names(graph, "$d: Doc", 'order { bm25($d.text, "京都へ") } limit 2') == "cb"


def test_text_predicates_as_values(graph):
    rows = ask(graph, "$d: Doc", '$d.name, search($d.text, "red"), bm25($d.text, "blue")', "order { $d.name }")
    assert [row[1] for row in rows] == [True, True, False, False, False, False]
    assert [row[2] > 0 for row in rows] == [False, False, True, False, False, False]
    assert ask(graph, "$d: Doc", "bm25($d.text, $q)", "limit 1", "$q: String?", q=None) == [(0.0,)]


def test_bm25_drops_rows_without_a_match_and_uses_statistics_of_the_whole_type(graph):
    assert names(graph, "$d: Doc", 'order { bm25($d.text, "river") }') == "fa"
    assert names(graph, "$d: Doc", 'order { bm25($d.text, "river") asc }') == "fa"
    whole = ask(graph, "$d: Doc", 'bm25($d.text, "river") as s', "order { s } limit 1")
    filtered = ask(graph, '$d: Doc { name: "f" }', 'bm25($d.text, "river")')
    assert whole == filtered, "a filter does not change term statistics"


@pytest.mark.parametrize("edits", [-1, None])
def test_max_edits_must_be_at_least_zero(graph, edits):
    with pytest.raises(InputError, match="max_edits"):
        names(graph, "$d: Doc fuzzy($d.text, $q, $m)", "", "$q: String, $m: I64?", q="red", m=edits)


# -- rank fusion -------------------------------------------------------------------------------------


def test_rrf_adds_the_reciprocal_ranks(graph):
    fused = 'rrf(nearest($d.vec, [1, 0, 0]), bm25($d.text, "stone red"), 1)'
    rows = ask(graph, "$d: Doc", f"$d.name, {fused} as s", "order { s } limit 9")
    near = {name: at for at, name in enumerate("abcdf", 1)}
    relevant = {name: at for at, name in enumerate(names(graph, "$d: Doc", 'order { bm25($d.text, "stone red") }'), 1)}
    score = {
        name: sum(1 / (1 + arm[name]) for arm in (near, relevant) if name in arm) for name in near.keys() | relevant
    }
    best = sorted(score, key=lambda name: (-score[name], near.get(name, 99), relevant.get(name, 99)))
    assert [name for name, _ in rows] == best
    assert [s for _, s in rows] == pytest.approx([score[name] for name in best])


def test_the_vector_ranking_of_rrf_ends_at_the_limit(graph):
    fused = 'rrf(nearest($d.vec, [1, 0, 0]), bm25($d.text, "stone"))'
    rows = ask(graph, "$d: Doc", f"$d.name, {fused} as s", f"order {{ {fused} }} limit 2")
    assert [name for name, _ in rows] == ["b", "a"]
    assert rows[1][1] == pytest.approx(1 / 61), "rank 1 in the first ranking, unranked in the second"


def test_equal_fused_scores_are_ordered_by_the_first_ranking(graph):
    # a is first by distance and second by relevance; b is the reverse.
    by_near = 'rrf(nearest($d.vec, [1, 0, 0]), bm25($d.text, "red stone"))'
    by_words = 'rrf(bm25($d.text, "red stone"), nearest($d.vec, [1, 0, 0]))'
    match = '$d: Doc not { $d.name > "b" }'
    assert names(graph, match, 'order { bm25($d.text, "red stone") }') == "ba"
    assert names(graph, match, f"order {{ {by_near} }} limit 2") == "ab"
    assert names(graph, match, f"order {{ {by_words} }} limit 2") == "ba"


def test_rrf_of_two_rankings_of_one_kind(graph):
    near = "rrf(nearest($d.vec, [1, 0, 0]), nearest($d.vec, [0, 1, 0]))"
    assert names(graph, "$d: Doc", f"order {{ {near} }} limit 5") == "acbdf"
    words = 'rrf(bm25($d.text, "river"), bm25($d.text, "stone"))'
    assert names(graph, "$d: Doc", f"order {{ {words} }} limit 9") == "fcab"


@pytest.mark.parametrize("k", [0, -5, None])
def test_k_must_be_at_least_one(graph, k):
    with pytest.raises(InputError, match="k of 'rrf'"):
        names(graph, "$d: Doc", 'order { rrf(bm25($d.text, "x"), bm25($d.text, "y"), $k) } limit 1', "$k: I64?", k=k)


# -- indexes do not change results -------------------------------------------------------------------

QUESTIONS = {
    'search($d.text, "river stone")': "order { $d.name }",
    'fuzzy($d.text, "rivet")': "order { $d.name }",
    "$d.name != $d.text": 'order { bm25($d.text, "red stone river") }',
    '$d.text != "no"': "order { nearest($d.vec, [1, 1, 0]) } limit 4",
    "$d.name > $d.other": "order { $d.name }",
    '$d.name > ""': 'order { rrf(nearest($d.vec, [1, 1, 0]), bm25($d.text, "stone")) } limit 4',
}


def test_a_partial_index_does_not_change_results(graph, tmp_path, tune):
    tune(segment_rows_min=0, postings_disk_rows_min=0, vector_disk_bytes_min=0)
    more = [node("Doc", name=f"m{at}", text="red river stone", vec=[at, 1, 0]) for at in range(5)]
    steps = [
        lambda g: g.ensure_indices(),
        lambda g: g.load(more, mode="append"),
        lambda g: g.mutate('query q() { delete Doc where name = "b" }'),
        lambda g: g.optimize(),
        lambda g: g.mutate('query q() { delete Doc where name = "m1" }'),
        lambda g: g.load([node("Doc", name="c", text="river", vec=[1, 1, 0])], mode="merge"),
        lambda g: g.ensure_indices(),
        lambda g: g.optimize(),
    ]  # fmt: skip
    for step in steps:
        step(graph)
        # The same rows in a graph without an index and without history.
        fresh = new_graph(tmp_path / f"fresh{steps.index(step)}", SCHEMA)
        fresh.load(list(graph.export()), mode="append")
        for match, then in QUESTIONS.items():
            assert names(graph, f"$d: Doc {match}", then) == names(fresh, f"$d: Doc {match}", then), (match, then)
