"""Conditions on columns that do not fit the cache: equal rows, no complete column, wide texts."""

from __future__ import annotations

import pytest

import omnigraph
from omnigraph import arrays
from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import TableData
from omnigraph.engine.expr import streamed_masks
from omnigraph.graph import Graph
from support.writes import edge, new_graph, node

SCHEMA = """
node Doc { key: String @key  text: String?  title: String  n: I64?  f: F32?  day: Date?  ok: Bool?  tags: [String]? }
edge Cites: Doc -> Doc { note: String? }
"""
STREAMED = {
    "complete_column_rows": 0,
    "complete_column_bytes": 0,
    "take_row_cost": 4,
    "hot_column_share": 0.0,
    "column_share_max": 0.0,
    "id_segments_rows_min": 4,
    "lazy_result_bytes": 200,
}
"""No column fits the cache."""


def docs() -> list:
    rows = [
        node(
            "Doc",
            key=f"d{number:02}",
            text=None if number % 9 == 4 else f"text {number} it's 100% _a {'x' * (number % 5)}",
            title=f"title {number % 6}",
            n=None if number % 7 == 3 else number - 20,
            f=number / 3,
            day=f"2020-01-{number % 28 + 1:02}",
            ok=None if number % 5 == 0 else number % 2 == 0,
            tags=[f"t{number % 3}", "all"],
        )
        for number in range(50)
    ]
    return [*rows, *(edge("Cites", f"d{n:02}", f"d{(n * 3) % 50:02}", note=f"note {n}") for n in range(50))]


@pytest.fixture(scope="module")
def graph(tmp_path_factory) -> Graph:
    made = new_graph(tmp_path_factory.mktemp("g"), SCHEMA, *docs())
    made.mutate('query q() { delete Doc where key = "d05" }')
    made.mutate('query q() { update Doc set { title: "changed", n: 700 } where key = "d09" }')
    made.load([node("Doc", key="d90", title="added", text="it's new")], mode="append")
    return made


CONDITIONS = [
    '$d.text contains "1"',
    '$d.text contains "it\'s"',
    '$d.text contains "%"',
    '$d.text contains "_a"',
    '$d.text contains ""',
    "$d.text contains $t",
    '$d.text starts_with "text 1"',
    '$d.text ends_with "xx"',
    '$d.text = "text 1 it\'s 100% _a x"',
    '$d.text != "text 1 it\'s 100% _a x"',
    '$d.text > "text 3"',
    '"text 3" >= $d.text',
    "$d.n > 3",
    "$d.n <= 2.5",
    "$d.n != 700",
    "$d.f < 4.0",
    "$d.f = 0.33333334",
    '$d.day >= date("2020-01-12")',
    "$d.ok = true",
    "$d.text is null",
    'not ($d.text contains "1")',
    '($d.text contains "1" or $d.n > 20)',
    '($d.text contains "1" and $d.n > 0)',
    '($d.text contains "1" or $d.text is null)',
    '$d.text matches "[0-9]{2} it"',
    'lower($d.title) = "title 3"',
    "length($d.text) > 22",
    '$d.title in ["title 1", "title 2"]',
    '$d.tags contains "t1"',
    "$d.n + 1 > $d.f",
]


def both(
    graph: Graph, query: str, params: dict | None = None, absent: tuple[str, ...] = ("text", "title")
) -> tuple[list, list]:
    """Return the rows of a query from complete columns and from a graph whose columns do not fit the cache.

    The columns `absent` are not in memory afterwards.
    """
    expected = omnigraph.open(graph.uri, read_only=True).query(query, params=params).to_pylist()
    with tuning.replaced(**STREAMED):
        other = omnigraph.open(graph.uri, read_only=True)
        found = other.query(query, params=params).to_pylist()
        data = other._context.cache.table(other.snapshot().table("node:Doc"))
        for name in absent:
            assert other._context.cache.find((*data.key, data.column_key(name))) is None, name
    return expected, found


@pytest.mark.parametrize("condition", CONDITIONS)
def test_the_rows_are_those_of_complete_columns(graph, condition):
    sig = "$t: String" if "$t" in condition else ""
    query = f"query q({sig}) {{ match {{ $d: Doc  {condition} }} return {{ $d.key }} }}"
    absent = () if " and " in condition else ("text", "title")  # statistics read the columns of a small table
    expected, found = both(graph, query, {"t": "2 it"} if sig else None, absent)
    assert found == expected
    assert len(expected) < 50 or condition == '$d.text contains ""'


@pytest.mark.parametrize(
    "match",
    [
        '$d: Doc  $d.text contains "1"  $d.n > 0  $d.title = "title 3"',
        '$d: Doc  $d.text contains "1"  $d cites $e  $e.text contains "2"',
        '$d: Doc  $d $c: cites $e  $c.note ends_with "7"',
    ],
)
def test_several_conditions_and_hops(graph, match):
    query = f"query q() {{ match {{ {match} }} return {{ $d.key, $d.text }} order {{ $d.key }} }}"
    expected, found = both(graph, query, absent=())
    assert found == expected
    assert expected


@pytest.mark.parametrize(
    ("condition", "note"),
    [
        ('$d.text contains "1"', "rows selected while they are read"),
        ("length($d.text) > 20", "evaluated batch by batch"),
    ],
)
def test_profiles_name_the_scan(graph, condition, note):
    with tuning.replaced(**STREAMED):
        other = omnigraph.open(graph.uri, read_only=True)
        text = str(other.profile(f"query q() {{ match {{ $d: Doc  {condition} }} return {{ $d.key }} }}"))
    assert note in text


def test_results_of_large_rows_are_fetched_batch_by_batch(graph):
    with tuning.replaced(**STREAMED):
        other = omnigraph.open(graph.uri, read_only=True)
        batches = list(other.query("query q() { match { $d: Doc } return { $d.key, $d.text } }").batches())
    assert len(batches) > 5
    assert sum(batch.num_rows for batch in batches) == 50


WIDE = [
    "$d: Doc } return { $d.key, $d.text }",
    "$d: Doc } return { $d }",
    "$d: Doc } return { $d.key } order { $d.text desc, $d.key }",
    "$d: Doc } return { $d.title, count($d) as c, min($d.text) as a, max($d.text) as b } order { $d.title }",
    "$d: Doc } return { $d.text, count($d) as c } order { $d.text }",
    "$d: Doc } return { count(distinct $d.text) as c, collect($d.title) as t }",
    '$d: Doc  $d.text > "text 3" } return { upper($d.text) as u, length($d.text) as n } order { $d.key }',
    "$d: Doc  optional { $d cites $e  $e.n > 10 } } return { $d.key, $e.text } order { $d.key }",
    "$d: Doc  $d.text = $d.text } return { $d.tags } order { $d.key }",
    '$d: Doc  search($d.text, "text") } return { $d.key } order { $d.key }',
    "$d: Doc } return { case when $d.n > 3 then $d.text else $d.title end as c } order { $d.key }",
]


@pytest.mark.parametrize("streamed", [False, True], ids=["complete", "streamed"])
@pytest.mark.parametrize("match", WIDE)
def test_texts_of_more_than_2_gib_give_the_same_results(graph, monkeypatch, match, streamed):
    query = f"query q() {{ match {{ {match} }}"
    expected = omnigraph.open(graph.uri, read_only=True).query(query).to_arrow()
    monkeypatch.setattr(arrays, "TEXT_BYTES_MAX", 400)
    with tuning.replaced(**(STREAMED if streamed else {})):
        found = omnigraph.open(graph.uri, read_only=True).query(query).to_arrow()
    assert found.to_pylist() == expected.to_pylist()
    assert found.schema.types == expected.schema.types


@pytest.mark.parametrize("characters", [1, 5, 8, 64])
@pytest.mark.parametrize("order", ["$d.text", "$d.text desc", "$d.title, $d.text desc"])
def test_texts_are_ordered_by_their_beginnings(graph, characters, order):
    query = f"query q() {{ match {{ $d: Doc }} return {{ $d.key, $d.text }} order {{ {order} }} }}"
    with tuning.replaced(rank_characters=characters):
        expected, found = both(graph, query)
    assert found == expected


@pytest.mark.parametrize("characters", [3, 64])
def test_groups_and_counts_of_texts_need_no_complete_column(graph, characters):
    columns = "$d.text, count($d) as c, count(distinct $d.title) as t"
    query = f"query q() {{ match {{ $d: Doc }} return {{ {columns} }} order {{ $d.text }} }}"
    with tuning.replaced(rank_characters=characters):
        expected, found = both(graph, query, absent=())
    assert found == expected


@pytest.mark.parametrize("characters", [3, 64])
@pytest.mark.parametrize("key", ["", "$d.title", "$d.n"])
def test_smallest_and_largest_texts_need_no_complete_column(graph, characters, key):
    columns = "min($d.text) as low, max($d.text) as high, max($d.text where $d.n > 5) as some"
    rest = f"return {{ {key}, {columns} }} order {{ {key} }}" if key else f"return {{ {columns} }}"
    with tuning.replaced(rank_characters=characters):
        expected, found = both(graph, f"query q() {{ match {{ $d: Doc }} {rest} }}", absent=("text",))
    assert found == expected
    assert any(row["high"] is not None for row in expected)


@pytest.mark.parametrize("match", ["", '$d.title != "title 1"'])
def test_a_case_does_not_scan_a_column_for_each_batch(graph, monkeypatch, match):
    columns = 'case when $d.text contains "xx" then "long" else $d.title end as c, count($d) as n'
    query = f"query q() {{ match {{ $d: Doc  {match} }} return {{ {columns} }} order {{ c }} }}"
    seen: list[str | None] = []
    matches = TableData.matches

    def counted(self, names, sql):
        seen.append(sql)
        return matches(self, names, sql)

    monkeypatch.setattr(streamed_masks, "_BATCH_BYTES", 1_000)
    monkeypatch.setattr(streamed_masks, "_LARGE_BYTES", 1)
    monkeypatch.setattr(TableData, "matches", counted)
    expected, found = both(graph, query, absent=("text",))
    assert found == expected
    assert len(seen) == (0 if match else 1), "one scan of all texts; the batches of some rows are read by number"
