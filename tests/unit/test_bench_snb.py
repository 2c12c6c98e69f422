"""The social-network workload at its smallest scale: sound data, and the answers of DuckDB for all reads."""

from __future__ import annotations

from dataclasses import replace

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from bench.snb import oracle
from bench.snb.compare import Disagreement, normal
from bench.snb.generate import Data, Generator, Size, make
from bench.snb.mixed import copied, operations, report, run_mixed
from bench.snb.side_by_side import OURS, Line, SystemFailed, compare_and_time, means, run
from bench.snb.side_by_side import table as shown_table
from bench.snb.systems import DuckDb, OmniGraph, load
from bench.snb.updates import DELETES, INSERTS, Update
from bench.snb.versions import check, compare_version, plan
from bench.snb.workload import FOLDER, PARAMETERS, SCHEMA, Parameters, Query, queries, sections

import omnigraph as og
from omnigraph.query.lint import lint
from omnigraph.query.syntax.format import format_queries
from omnigraph.schema.check import compile_schema

SCALE = 0.003
SETS = 20
"""Sets of parameters of each query."""


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Data:
    return make(SCALE, tmp_path_factory.mktemp("snb"))


def tables_of(scale: float) -> dict[str, pa.Table]:
    tables: dict[str, pa.Table] = {}
    Generator(Size(scale), tables.__setitem__).run()
    return tables


def keys(data: Data, type_: str) -> set[int]:
    return set(data.read(type_)["number"].to_pylist())


def by_number(data: Data, type_: str, column: str = "creationDate") -> dict[int, int]:
    table = data.read(type_)
    return dict(zip(table["number"].to_pylist(), table[column].cast(pa.int64()).to_pylist(), strict=True))


def test_generator_is_deterministic(data):
    again = tables_of(SCALE)
    assert sorted(again) == data.names
    for name, table in again.items():
        assert table.combine_chunks().equals(data.read(name)), name


def test_every_edge_joins_nodes_of_its_types(data):
    catalog = compile_schema(SCHEMA)
    assert sorted([*catalog.nodes, *catalog.edges]) == data.names
    numbers = {name: keys(data, name) for name in catalog.nodes}
    for name, edge in catalog.edges.items():
        table = data.read(name)
        assert table.num_rows > 0, name
        assert set(table["from"].to_pylist()) <= numbers[edge.from_type], name
        assert set(table["to"].to_pylist()) <= numbers[edge.to_type], name
    assert not numbers["Post"] & numbers["Comment"], "messages share one space of numbers"


def test_pairs_are_distinct(data):
    for name in ("Knows", "HasMember", "LikesPost", "LikesComment", "PostHasTag", "CommentHasTag", "HasInterest"):
        table = data.read(name)
        pairs = list(zip(table["from"].to_pylist(), table["to"].to_pylist(), strict=True))
        assert len(set(pairs)) == len(pairs), name
    knows = data.read("Knows")
    assert all(a < b for a, b in zip(knows["from"].to_pylist(), knows["to"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("edge", "source", "target"),
    [
        ("HasModerator", "Forum", "Person"),
        ("PostHasCreator", "Post", "Person"),
        ("CommentHasCreator", "Comment", "Person"),
        ("ReplyOfPost", "Comment", "Post"),
        ("ReplyOfComment", "Comment", "Comment"),
        ("RootPost", "Comment", "Post"),
    ],
)
def test_dates_are_in_order(data, edge, source, target):
    sources, targets = by_number(data, source), by_number(data, target)
    table = data.read(edge)
    assert all(sources[a] > targets[b] for a, b in zip(table["from"].to_pylist(), table["to"].to_pylist(), strict=True))


@pytest.mark.parametrize(
    ("edge", "source", "target", "column"),
    [
        ("Knows", "Person", "Person", "creationDate"),
        ("HasMember", "Forum", "Person", "joinDate"),
        ("LikesPost", "Person", "Post", "creationDate"),
        ("LikesComment", "Person", "Comment", "creationDate"),
    ],
)
def test_dates_of_edges_follow_their_ends(data, edge, source, target, column):
    sources, targets = by_number(data, source), by_number(data, target)
    table = data.read(edge)
    dates = table[column].cast(pa.int64()).to_pylist()
    for a, b, date in zip(table["from"].to_pylist(), table["to"].to_pylist(), dates, strict=True):
        assert date > max(sources[a], targets[b])


def test_degrees_are_skewed_and_friends_are_alike():
    tables = tables_of(0.02)
    knows, located = tables["Knows"], tables["PersonIsLocatedIn"]
    ends = np.concatenate([knows["from"].to_numpy(), knows["to"].to_numpy()])
    degrees = np.unique(ends, return_counts=True)[1]
    assert 8 < degrees.mean() < 40
    assert degrees.max() > 3 * np.median(degrees)
    tags = np.unique(tables["PostHasTag"]["to"].to_numpy(), return_counts=True)[1]
    assert tags.max() > 5 * np.median(tags)
    country = dict(zip(tables["IsPartOf"]["from"].to_pylist(), tables["IsPartOf"]["to"].to_pylist(), strict=True))
    home = {a: country[b] for a, b in zip(located["from"].to_pylist(), located["to"].to_pylist(), strict=True)}
    pairs = list(zip(knows["from"].to_pylist(), knows["to"].to_pylist(), strict=True))
    together = sum(home[a] == home[b] for a, b in pairs) / len(pairs)
    counts = np.unique(list(home.values()), return_counts=True)[1] / len(home)
    assert together > 3 * float((counts**2).sum()), "friends share a country more often than random persons"


def test_weights_of_friendships_follow_from_the_replies_and_studies(data):
    db = duckdb.connect()
    oracle.fill(db, data)
    wrong = db.execute(
        "WITH reply AS (SELECT c.creator AS a, m.creator AS b FROM message c JOIN message m ON m.number = c.reply_of), "
        "pair AS (SELECT least(a, b) AS a, greatest(a, b) AS b, count(*) AS n FROM reply WHERE a <> b GROUP BY ALL), "
        "years AS (SELECT x.person AS a, y.person AS b, min(abs(x.classYear - y.classYear)) + 1 AS w "
        "FROM study x JOIN study y ON x.organisation = y.organisation GROUP BY ALL) "
        "SELECT k.* FROM knows k LEFT JOIN pair p ON p.a = k.a AND p.b = k.b "
        "LEFT JOIN years y ON y.a = k.a AND y.b = k.b WHERE k.a < k.b AND ("
        "k.interaction IS DISTINCT FROM CASE WHEN p.n > 0 THEN greatest(round(40 - sqrt(p.n)), 1) END "
        "OR k.studied IS DISTINCT FROM y.w)"
    ).fetchall()
    assert wrong == []


def test_every_query_has_parameters_and_an_oracle(data):
    found = queries()
    assert {query.name for query in found} == set(PARAMETERS)
    for group in {query.group for query in found}:
        assert set(sections(group, "sql")) == {query.name for query in found if query.group == group}
    parameters = Parameters(data)
    assert parameters.of("ic2", 3) == parameters.of("ic2", 3)
    assert parameters.of("ic2", 3) != parameters.of("ic9", 3)


@pytest.fixture(scope="module")
def lines(data) -> list[Line]:
    """Two queries on two systems, which are loaded by this."""
    chosen = [query for query in queries() if query.name in ("is3", "ic13")]
    return run(SCALE, data.folder.parents[1], [OURS, "duckdb"], chosen, sets=2, rounds=1, budget_s=0)


def test_systems_are_loaded_and_take_turns(lines):
    assert [line.query.name for line in lines] == ["is3", "ic13"]
    assert all(set(line.calls) == {OURS, "duckdb"} and len(line.calls[OURS]) == 1 for line in lines)
    shown = shown_table(lines, [OURS, "duckdb"])
    assert "ic13" in shown
    assert shown.splitlines()[0].split() == ["ms", "rows", OURS, "p95", "duckdb", "p95", "ratio"]
    assert "geometric mean of the complex reads" in shown


def test_every_answer_is_that_of_duckdb(data, lines):
    del lines
    folder = data.folder.parent
    graph = og.open(folder / OURS / "graph")
    db = duckdb.connect(str(folder / "duckdb" / "db"), read_only=True, config={"threads": 1})
    parameters = Parameters(data)
    answered = set()
    for query in queries():
        for given in parameters.of(query.name, SETS):
            expected = normal(db.execute(query.sql, given).fetchall(), query.ordered)
            assert normal(graph.query(query.ours, given), query.ordered) == expected, f"{query.name} {given}"
            if expected:
                answered.add(query.name)
    assert answered == set(PARAMETERS), "some set of parameters of each query must have an answer"


def test_reads_of_every_version_are_those_of_duckdb(data, tmp_path):
    """A branch, main beside it, the commit before all updates, and the merge."""
    chosen = [query for query in queries() if query.group != "bi"]
    made = plan(data, chosen, sets=1)
    assert {update.name for update in made.branch} == {*INSERTS, *DELETES}
    changed = {v: sum(made.answers[v][q.name] != made.answers["before"][q.name] for q in chosen) for v in made.answers}
    assert changed["branch"] > 15 > changed["main"] > 5
    assert made.answers["merged"] != made.answers["branch"]
    graph = load(data, tmp_path / "graph")
    assert check(graph, made, chosen) == 4 * sum(map(len, made.params.values()))
    wrong = replace(made, answers={"merged": made.answers["before"]})
    with pytest.raises(Disagreement, match="merged, is1 "):
        compare_version(graph, wrong, chosen, "merged")


def test_systems_agree_on_a_mix_of_reads_and_updates(data, lines):
    del lines
    mix = operations(data, queries(), 60)
    assert sum(isinstance(one, Update) for one in mix) > 5
    found = {}
    for system in (OmniGraph, DuckDb):
        opened = system(copied(data.folder.parent / system.name))
        opened.open()
        found[system.name] = run_mixed(opened, mix)
    shown = report(found)
    assert "mixed, omnigraph: " in shown
    assert all(kind in shown for kind in ("; insert ", "; delete ", "; complex "))
    found["duckdb"][0][3].append((0,))
    with pytest.raises(Disagreement, match="read 3 of the mix"):
        report(found)


def test_means_are_of_the_fastest_peer():
    def line(group: str, **ms: float) -> Line:
        return Line(Query("q", group, "", ""), 0, {name: [1e9, value, 0] for name, value in ms.items()})

    found = means([line("short", omnigraph=2), line("bi", omnigraph=1, a=8, b=9), line("bi", omnigraph=2, a=9, b=1)])
    assert found == {"bi": pytest.approx(2.0)}


def test_a_wrong_answer_stops_the_run():
    class Fixed:
        def __init__(self, rows: list[tuple[int]] | None) -> None:
            self.rows = rows

        def call(self, what: str, *_: object) -> object:
            return self.rows is not None if what == "can" else (self.rows, 1.0)

    query, other = Query("q", "bi", "", ""), Query("q", "bi", "", "", ordered=False)
    systems = {
        OURS: Fixed([(1,), (2,)]),
        "same": Fixed([(1,), (2,)]),
        "none": Fixed(None),
        "turned": Fixed([(2,), (1,)]),
    }
    with pytest.raises(Disagreement, match="turned says"):
        compare_and_time(query, systems, [{}], rounds=1, budget_s=0)
    line = compare_and_time(other, systems, [{}, {}], rounds=2, budget_s=9)
    assert line.rows == 2
    assert {name: len(calls) for name, calls in line.calls.items()} == {OURS: 4, "same": 4, "turned": 4}


def test_a_peer_that_fails_is_left_out_and_shown():
    class Answer:
        def call(self, what: str, *_: object) -> object:
            return True if what == "can" else ([(1,)], 1.0)

    class NoMemory(Answer):
        def call(self, what: str, *_: object) -> object:
            if what == "ask":
                raise SystemFailed("small: no memory")
            return True

    query = Query("q", "bi", "", "")
    line = compare_and_time(query, {OURS: Answer(), "large": Answer(), "small": NoMemory()}, [{}], rounds=1, budget_s=9)
    assert line.calls == {OURS: [1.0], "large": [1.0]}
    assert str(line) == "q: omnigraph 1.00, large 1.00, small: no memory"
    assert shown_table([line], [OURS, "large", "small"]).splitlines()[1].split() == [
        *("q", "1.0", "1.00", "1.00", "1.00", "1.00", "failed", "–", "1.00")
    ]
    with pytest.raises(SystemFailed, match="no memory"):
        compare_and_time(query, {OURS: NoMemory(), "large": Answer()}, [{}], rounds=1, budget_s=9)


def test_queries_are_formatted_and_have_no_warnings():
    catalog = compile_schema(SCHEMA)
    for path in sorted((FOLDER / "queries").glob("*.gq")):
        text = path.read_text(encoding="utf-8")
        assert format_queries(text) == text, path.name
        report = lint(catalog, text, query_path=path.name, schema_source={})
        # L301: the counts of the workload are those of nodes, not of edges.
        others = [finding.code for finding in report.findings if finding.code != "L301"]
        assert (report.errors, [result.warnings for result in report.results if result.warnings], others) == (0, [], [])
