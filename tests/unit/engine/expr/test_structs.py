"""Objects and lists of a result: types, conversions, and explanations of ranks."""

from __future__ import annotations

import datetime as dt
import json

import pyarrow as pa
import pytest

from support.writes import edge, new_graph, node

SCHEMA = """
node T { name: String @key  big: I64?  wide: U64?  day: Date?  at: DateTime?  text: String?  vec: Vector(2)? }
edge Next: T -> T { n: I32? }
"""
AT = "2020-02-29T10:11:12.345Z"
ROWS = [
    node("T", name="a", big=2**60, wide=2**64 - 1, day="2020-02-29", at=AT, text="red red fox", vec=[1, 0]),
    node("T", name="b", big=1, text="red hen", vec=[1, 1]),
    node("T", name="c", text="blue hen", vec=[0, 1]),
    edge("Next", "a", "c", n=1),
    edge("Next", "a", "b", n=2),
    edge("Next", "b", "c"),
]
MADE = """query q() {
    match { $x: T optional { $x next $y } }
    return {
        $x.name as name
        { node: $x, at: $x.at, deep: { day: $x.day, wide: $x.wide } } as o
        [$x.at, null] as times
        collect($y) as after
        collect({ day: $y.day, big: $y.big }) as days
    }
    order { name }
}"""


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return new_graph(tmp_path_factory.mktemp("nested"), SCHEMA, *ROWS)


def rows(graph, body):
    return graph.query(f"query q() {{ {body} }}").to_rows()


def test_arrow_result_has_structs_and_lists(graph):
    schema = graph.query(MADE).schema
    struct = schema.field("o").type
    assert [field.name for field in struct] == ["node", "at", "deep"]
    assert struct.field("deep").type == pa.struct([("day", pa.date32()), ("wide", pa.uint64())])
    assert schema.field("times").type == pa.list_(pa.date64())
    assert schema.field("after").type == pa.list_(struct.field("node").type)


def test_python_result_has_dicts_lists_and_datetimes(graph):
    first = graph.query(MADE).to_pylist()[0]
    moment = dt.datetime(2020, 2, 29, 10, 11, 12, 345_000, tzinfo=dt.UTC)
    assert first["o"]["at"] == first["o"]["node"]["at"] == first["times"][0] == moment
    assert first["o"]["deep"] == {"day": dt.date(2020, 2, 29), "wide": 2**64 - 1}
    assert [one["name"] for one in first["after"]] == ["b", "c"]
    assert first == next(iter(graph.query(MADE)))


def test_nested_json_integers_are_safe_for_javascript(graph):
    first = json.loads(graph.query(MADE).to_json())[0]
    assert first["o"]["deep"] == {"day": "2020-02-29", "wide": "18446744073709551615"}
    assert first["o"]["node"]["big"] == str(2**60)
    assert first["times"] == [AT, None]


def test_missing_values(graph):
    last = graph.query(MADE).to_rows()[-1]
    assert (last["name"], last["after"], last["days"]) == ("c", [], [{"day": None, "big": None}])


def test_notebook_display(graph):
    html = graph.query(MADE)._repr_html_()
    assert "18446744073709551615" in html


def test_data_frames(graph):
    pytest.importorskip("pandas")
    frame = graph.query(MADE).to_pandas()
    assert frame["o"][0]["deep"]["wide"] == 2**64 - 1, "integers next to a null stay integers"
    assert [one["big"] for one in frame["after"][0]] == [1, None]
    polars = pytest.importorskip("polars")
    schema = graph.query(MADE).to_polars().schema
    assert schema["after"] == polars.List(schema["o"].fields[0].dtype)


def test_large_result_is_the_same_in_batches(graph, tune):
    text = """query q() {
        match { $x next $y }
        return { { from: $x, to: [$y.name, $x.name] } as o, why(), { s: bm25($y.text, "hen") } as s }
        order { bm25($y.text, "hen"), $x.name }
    }"""
    whole = graph.query(text).to_rows()
    assert len(whole) == 3
    tune(lazy_result_rows=0)
    found = graph.query(text)
    batches = list(found.batches(2))
    assert [batch.num_rows for batch in batches] == [2, 1]
    assert found.to_rows() == whole
    assert all(batch.schema == found.schema for batch in batches)


def test_only_remaining_groups_are_collected(graph):
    body = 'match { $x next $y } return { $x.name, collect($y) as all } having { $x.name > "a" }'
    assert [(row["x.name"], [one["name"] for one in row["all"]]) for row in rows(graph, body)] == [("b", ["c"])]
    body = "match { $x next $y } return { $x.name, collect($y.name) as all } order { $x.name desc } skip 1 limit 1"
    assert rows(graph, body) == [{"x.name": "a", "all": ["b", "c"]}]


def test_result_without_rows(graph):
    nothing = "match { $x: T $x.big < 0 }"
    counted = f"{nothing} return {{ {{ n: count($x), all: collect($x) }} as o }}"
    assert rows(graph, counted) == [{"o": {"n": 0, "all": []}}]
    assert rows(graph, f"{nothing} return {{ {{ n: count($x), by: $x.name }} as o }}") == []
    assert rows(graph, f"{nothing} return {{ {{ by: $x.name }} as o, [$x] as l }}") == []
    assert rows(graph, "match { $x: T } return { collect($x), count($x) + 1 } limit 0") == []


def test_objects_are_distinct_by_value_and_nodes_by_id(graph):
    body = 'match { $x next $y } return distinct { { to: $y, hen: $y.text contains "hen" } as o }'
    assert sorted(row["o"]["to"]["name"] for row in rows(graph, body)) == ["b", "c"]
    body = "match { $x next $y } return { [$y.name] as to, count($x) as n } order { n desc }"
    assert rows(graph, body) == [{"to": ["c"], "n": 2}, {"to": ["b"], "n": 1}]


def test_keys_used_only_in_expressions_define_groups(graph):
    body = "match { $x next $y } return { length($x.name) + count($y) as n } order { n }"
    assert rows(graph, body) == [{"n": 4}], "all names are one letter long"
    body = "match { $x next $y } return { coalesce($y.big, 0) + count($x) as n } order { n desc }"
    assert rows(graph, body) == [{"n": 2}, {"n": 2}]
    body = "match { $x next $y } return distinct { coalesce($y.big, 0) + count($x) as n } order { n desc }"
    assert rows(graph, body) == [{"n": 2}]


def test_rank_position_counts_entities_not_rows(graph):
    body = """match { $x next $y } return { $x.name, $y.name, why() as w }
        order { nearest($y.vec, [0, 1]), $x.name } limit 3"""
    found = rows(graph, body)
    assert [(row["x.name"], row["y.name"], row["w"][0]["rank"]) for row in found] == [
        ("a", "c", 1), ("b", "c", 1), ("a", "b", 2)
    ]  # fmt: skip
    assert [row["w"][0]["by"] for row in found] == ["nearest(vec)"] * 3


def test_shares_add_up_to_the_fused_score(graph):
    rank = 'rrf(nearest($x.vec, [1, 0]) * 2, bm25($x.text, "hen"), 5)'
    body = f"match {{ $x: T }} return {{ {{ s: {rank}, w: why() }} as o }} order {{ {rank} }} limit 3"
    for row in rows(graph, body):
        shares = [one["share"] for one in row["o"]["w"] if one["share"] is not None]
        assert sum(shares) == pytest.approx(row["o"]["s"])
    (best, *_) = rows(graph, body)
    assert best["o"]["w"][0] == {"by": "nearest(vec)", "rank": 2, "score": pytest.approx(1 - 0.5**0.5), "share": 2 / 7}


def test_mutation_returns_objects_and_lists(tmp_path):
    graph = new_graph(tmp_path, SCHEMA, *ROWS)
    shown = "return { { t: $t.name, n: [$t.big, 1.5] } as o }"
    done = graph.mutate(f'query q() {{ update T set {{ big: 7 }} where name = "b" as $t {shown} }}')
    assert done.rows.to_rows() == [{"o": {"t": "b", "n": [7.0, 1.5]}}]
