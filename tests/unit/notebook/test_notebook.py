"""Notebook output: well-formed, escaped HTML, and deterministic pictures that need no network."""

from __future__ import annotations

import math
import re
import traceback
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import omnigraph as og
from omnigraph.notebook.picture import DOTS_MOST, Dot, Line, draw, place
from omnigraph.notebook.tables import cell, table

SCHEMA = """
node Person {
    name: String @key
    age: I32?
}

node Town {
    label: String @key
}

edge Knows: Person -> Person
edge LivesIn: Person -> Town
"""
NASTY = "<script>alert('x')</script> & \"co\""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g.omni", SCHEMA)
    people = [{"type": "Person", "data": {"name": name, "age": 1}} for name in ("Ana", "Bo", NASTY)]
    graph.load(
        [
            *people,
            {"type": "Town", "data": {"label": "Aa"}},
            {"edge": "Knows", "from": "Ana", "to": "Bo"},
            {"edge": "Knows", "from": "Bo", "to": NASTY},
            {"edge": "LivesIn", "from": "Ana", "to": "Aa"},
        ],
        mode="merge",
    )
    return graph


def parsed(html: str) -> ET.Element:
    """Return the HTML as a tree: it must be well-formed and contain no scripts and no external references."""
    tree = ET.fromstring(f"<body>{html}</body>")
    for element in tree.iter():
        assert not element.tag.endswith("script")
        assert not any(name in element.attrib for name in ("src", "href", "onclick", "onload"))
    return tree


def texts(tree: ET.Element, tag: str) -> list[str]:
    return ["".join(element.itertext()) for element in tree.iter() if element.tag.rpartition("}")[2] == tag]


def test_a_result_is_a_table(graph):
    tree = parsed(
        graph.query("query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }")._repr_html_()
    )
    assert texts(tree, "th") == ["p.name", "p.age"]
    assert set(texts(tree, "td")) == {"Ana", "Bo", NASTY, "1"}
    assert texts(tree, "svg") == []


def test_a_result_with_nodes_is_drawn(graph):
    html = graph.query("query q() { match { $a knows $b } return { $a, $b } }")._repr_html_()
    tree = parsed(html)
    (svg,) = [element for element in tree.iter() if element.tag.endswith("svg")]
    titles = texts(svg, "title")
    assert {f"Person {name}" for name in ("Ana", "Bo", NASTY)} <= set(titles)
    assert titles.count("Knows") == 2
    assert html == graph.query("query q() { match { $a knows $b } return { $a, $b } }")._repr_html_()


def test_paths_and_hops_against_the_arrow(graph):
    drawn = graph.query("query q() { match { $a knows{1,2} $b } return { $a, $b } }")._repr_html_()
    assert "Knows{1,2}" in texts(parsed(drawn), "title")
    against = graph.query("query q() { match { $t: Town $p livesIn $t } return { $t, $p } }")._repr_html_()
    assert "LivesIn" in texts(parsed(against), "title")


def test_nodes_without_a_hop_are_dots_alone(graph):
    titles = texts(parsed(graph.query("query q() { match { $p: Person } return { $p } }")._repr_html_()), "title")
    assert len(titles) == 3


def test_only_the_first_rows_are_shown_with_a_note(graph):
    graph.load([{"type": "Person", "data": {"name": f"p{n}"}} for n in range(80)], mode="merge")
    html = graph.query("query q() { match { $p: Person } return { $p } }")._repr_html_()
    assert "the first 50 of 83 rows" in html
    assert f"{DOTS_MOST} of 50 nodes" in html
    assert len(re.findall("<tr>", html)) == 51


def test_graphs_schemas_and_changes_have_html(graph):
    tree = parsed(graph._repr_html_())
    assert {"node:Person", "edge:Knows", "3", "2"} <= set(texts(tree, "td"))
    assert {"node type Person", "node type Town", "LivesIn"} <= set(texts(tree, "title"))
    schema = graph.schema
    assert (schema, isinstance(schema, str)) == (SCHEMA, True)
    assert SCHEMA in "".join(parsed(schema._repr_html_()).itertext())
    graph.branch_create("x")
    graph.on("x").mutate('query q() { update Person set { age: 2 } where name = "Bo" }')
    changes = graph.diff("main", "x")
    assert len(list(changes)) == len(list(changes)) == 1
    assert changes.counts() == {"node:Person": {"insert": 0, "update": 1, "delete": 0}}
    cells = texts(parsed(changes._repr_html_()), "td")
    assert cells == ["~", "node:Person", "Bo", "age: 1 → 2"]
    assert "main → x" in repr(changes)


def test_cells():
    assert cell(NASTY) == "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt; &amp; &quot;co&quot;"
    assert "null" in cell(None)
    assert cell([1, "ü"]) == "[1, &quot;ü&quot;]"
    assert len(cell("x" * 1000)) == 200
    assert table(["a"], []).count("<td>") == 0


def test_positions_are_in_the_frame_and_distinct():
    keys = [str(number) for number in range(30)]
    ends = [(str(number), str(number // 2)) for number in range(1, 30)]
    places = place(keys, ends, 460, 320)
    assert places == place(keys, ends, 460, 320)
    assert all(0 < x < 460 and 0 < y < 320 for x, y in places.values())
    nearest = min(math.dist(a, b) for a, b in combinations(places.values(), 2))
    assert nearest > 8
    joined = sum(math.dist(places[a], places[b]) for a, b in ends) / len(ends)
    apart = sum(math.dist(a, b) for a, b in combinations(places.values(), 2)) / math.comb(30, 2)
    assert joined < 0.6 * apart


def test_odd_pictures():
    assert draw([], []) == ""
    assert "<circle" in draw([Dot("a", "A", "k")], [Line("a", "a", "self"), Line("a", "gone")])
    two = draw([Dot("a", "A", "k"), Dot("b", "B", "l"), Dot("a", "A", "k")], [Line("a", "b", "x", directed=False)])
    assert two.count('r="9"') == 2
    assert "marker-end" not in two.split("</defs>")[1]


def test_nodes_are_chips_in_the_colour_of_their_type(graph):
    html = graph.query("query q() { match { $p: Person $p livesIn $t } return { $p, $t, $p.age } }")._repr_html_()
    tree = parsed(html)
    chips = list(tree.iter("span"))
    assert ["".join(chip.itertext()) for chip in chips] == ["Ana", "Aa"]
    assert "Person id: Ana" in chips[0].attrib["title"]
    fills = [element.attrib["fill"] for element in tree.iter() if element.attrib.get("r") == "9"]
    assert [re.search("background:(#\\w+)", chip.attrib["style"])[1] for chip in chips] == fills
    assert [cell.attrib["style"] for cell in tree.iter("td")] == ["text-align:left"] * 2 + ["text-align:right"]


def test_nodes_in_lists_and_objects_are_chips(graph):
    query = "query q() { match { $a knows $b } return { $a.name, collect($b) as all, { who: $a } as one } }"
    spans = texts(parsed(graph.query(query)._repr_html_()), "span")
    assert sorted(spans) == sorted(["Ana", "Bo", "Bo", NASTY])


def test_a_path_is_drawn_with_its_edges(graph):
    query = 'query q() { match { $a: Person { name: "Ana" } $p: path { $a knows{2,2} $b } } return { $p } }'
    tree = parsed(graph.query(query)._repr_html_())
    assert "".join(next(tree.iter("td")).itertext()) == f"Ana → Bo → {NASTY}"
    assert texts(tree, "title").count("Knows") == 2


def test_a_path_against_the_arrow_keeps_the_direction_of_its_edge(graph):
    query = 'query q() { match { $b: Person { name: "Bo" } $p: path { $a knows $b } } return { $p } }'
    html = graph.query(query)._repr_html_()
    ahead = 'query q() { match { $a: Person { name: "Ana" } $p: path { $a knows $b } } return { $p } }'
    assert html == graph.query(ahead)._repr_html_()


def test_loops_and_parallel_lines_are_labelled_and_apart():
    dots = [Dot("a", "A", "k"), Dot("b", "B", "k")]
    loops = draw(dots, [Line("a", "a", "self"), Line("a", "a", "again"), Line("a", "a", "hops{1,2}", several=True)])
    assert [label for label in texts(parsed(loops), "text") if label in ("self", "again", "hops{1,2}")] != []
    assert len(set(re.findall(r'<path d="(M[^"]+C[^"]+)"', loops))) == 3
    pair = draw(dots, [Line("a", "b", "x"), Line("b", "a", "y"), Line("a", "b", "z")])
    curves = re.findall(r"Q(\d+ \d+) ", pair)
    assert len(curves) == len(set(curves)) == 3


def test_a_plan_is_shown_as_lines(graph):
    plan = graph.explain("query q() { match { $p: Person } return { $p.name } }")
    assert isinstance(plan, str)
    assert "".join(parsed(plan._repr_html_()).itertext()) == plan


def test_an_error_in_a_notebook_is_short_and_has_its_hint(graph):
    with pytest.raises(og.errors.BranchNotFound) as caught:
        graph.snapshot("nothing")
    error = caught.value
    lines = error._render_traceback_()
    assert lines[0].endswith('graph.snapshot("nothing")')
    assert lines[1].startswith("BranchNotFound: ")
    assert lines[2:] == [f"hint: {error.hint}"]
    assert f"hint: {error.hint}" in "".join(traceback.format_exception(error))
    error.hint = "another"
    assert error._render_traceback_()[2:] == ["hint: another"]
