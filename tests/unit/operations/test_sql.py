"""SQL on a graph, by the real DuckDB."""

from __future__ import annotations

import asyncio
import sys
import threading
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

import omnigraph as og
from omnigraph.aio import AsyncGraph
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.engine.exec.context import Limits
from omnigraph.errors import Cancelled, InputError, LimitReached, MissingPackage, NotFound, QueryTimeout
from omnigraph.storage.lance.scan import Scan
from support.writes import edge, new_graph, node

SCHEMA = """
node Person {
    handle: String @key
    name: String
    age: I32?
    height: F64?
    big: U64?
    small: U32?
    seen: DateTime?
    born: Date?
    active: Bool?
    role: enum(a, b)?
    meaning: Vector(2)?
    tags: [String]?
    picture: Blob?
}
node Town { name: String @key  size: I64? }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> Town
edge Town: Person -> Town
"""
TOP = 2**64 - 1


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    people = [
        node(
            "Person",
            handle=f"p{n:02}",
            name=f"Name {n}",
            age=None if n == 7 else n,
            height=n / 2,
            big=TOP - n,
            small=n,
            seen=f"2026-01-{n + 1:02}T10:20:30.123Z",
            born=f"2000-01-{n + 1:02}",
            active=n % 2 == 0,
            role="a" if n < 5 else "b",
            meaning=[1.0, float(n)],
            tags=["x", f"t{n}"],
            picture="base64:aGk=",
        )
        for n in range(20)
    ]
    towns = [node("Town", name="york", size=5), node("Town", name="bath")]
    edges = [edge("Knows", f"p{n:02}", f"p{n + 1:02}", since="2020-02-02") for n in range(19)]
    edges += [edge("LivesIn", f"p{n:02}", "york" if n < 12 else "bath") for n in range(15)]
    return new_graph(tmp_path_factory.mktemp("sql"), SCHEMA, *people, *towns, *edges)


PAIRS = [
    ("select name from Person", "match { $p: Person } return { $p.name }"),
    ("select name from Person where age > 4", "match { $p: Person $p.age > 4 } return { $p.name }"),
    ("select name from Person where age is null", "match { $p: Person $p.age is null } return { $p.name }"),
    ("select name from Person where age between 3 and 5",
     "match { $p: Person $p.age >= 3 $p.age <= 5 } return { $p.name }"),
    ("select name from Person where handle = 'p03'", 'match { $p: Person { handle: "p03" } } return { $p.name }'),
    ("select name from Person where handle in ('p03', 'p04', 'zz')",
     'match { $p: Person $p.handle in ["p03", "p04", "zz"] } return { $p.name }'),
    ("select name from Person where role = 'a' or age > 17",
     'match { $p: Person $p.role = "a" or $p.age > 17 } return { $p.name }'),
    ("select name from Person where not (role = 'a')", 'match { $p: Person $p.role != "a" } return { $p.name }'),
    ("select name, height from Person where height < 3.5",
     "match { $p: Person $p.height < 3.5 } return { $p.name, $p.height }"),
    ("select name, height from Person where height >= 3.5",
     "match { $p: Person $p.height >= 3.5 } return { $p.name, $p.height }"),
    (f"select name, big from Person where big = {TOP}",
     f"match {{ $p: Person $p.big = {TOP} }} return {{ $p.name, $p.big }}"),
    ("select name from Person where small > 15", "match { $p: Person $p.small > 15 } return { $p.name }"),
    ("select name, seen from Person where seen < timestamptz '2026-01-05 00:00:00Z'",
     'match { $p: Person $p.seen < datetime("2026-01-05T00:00:00Z") } return { $p.name, $p.seen }'),
    ("select name, born from Person where born = date '2000-01-09'",
     'match { $p: Person $p.born = date("2000-01-09") } return { $p.name, $p.born }'),
    ("select name from Person where active", "match { $p: Person $p.active = true } return { $p.name }"),
    ("select role, count(*) from Person group by 1", "match { $p: Person } return { $p.role, count($p) }"),
    ("select sum(age), min(age), max(age) from Person",
     "match { $p: Person } return { sum($p.age), min($p.age), max($p.age) }"),
    ("select avg(height) from Person", "match { $p: Person } return { avg($p.height) }"),
    ("select p.name, q.name from Knows k join Person p on k.src = p.id join Person q on k.dst = q.id",
     "match { $p: Person $p knows $q } return { $p.name, $q.name }"),
    ("select t.name, count(*) from LivesIn l join Town t on l.dst = t.id group by 1",
     "match { $p: Person $p livesIn $t } return { $t.name, count($p) }"),
    ("select distinct p.role from Person p join LivesIn l on l.src = p.id",
     "match { $p: Person $p livesIn $t } return distinct { $p.role }"),
    ("select meaning, tags from Person where age < 3",
     "match { $p: Person $p.age < 3 } return { $p.meaning, $p.tags }"),
]  # fmt: skip


@pytest.mark.parametrize(("sql", "query"), PAIRS, ids=[sql for sql, _ in PAIRS])
def test_sql_and_query_return_the_same_rows(graph: og.Graph, sql: str, query: str) -> None:
    found, expected = graph.sql(sql), graph.query(query)
    assert sorted(map(str, zip(*found.to_columns(), strict=True))) == sorted(
        map(str, zip(*expected.to_columns(), strict=True))
    )
    assert len(found) > 0


def test_types_survive(graph: og.Graph) -> None:
    row = graph.sql("select * from Person where id = 'p03'").to_pylist()[0]
    stored = graph.get("Person", "p03")
    assert stored is not None
    assert row == {name: value for name, value in stored.items() if name != "picture"}
    assert (row["big"], row["seen"]) == (TOP - 3, datetime(2026, 1, 4, 10, 20, 30, 123000, UTC))
    assert row["born"] == date(2000, 1, 4)
    found = graph.sql("select array_cosine_distance(meaning, [1, 3]::float[2]) d from Person where id = 'p03'")
    assert found.to_pylist()[0]["d"] == pytest.approx(0, abs=1e-6)


def test_other_types_of_duckdb_become_types_of_the_graph(graph: og.Graph) -> None:
    text = """
        select sum(age) as i, sum(big)::hugeint * 10 as h, 1.25 as d, interval 1 day as span, map {'a': 1} as m,
            time '10:20' as t, timestamp '2026-01-01 01:02:03.004001' as at,
            {'a': 2::tinyint, 'b': [timestamp '2026-01-01 01:02:03']} as s,
            uuid '01890a5d-ac96-774b-bcce-b302099a8057' as u, 'x'::enum('x', 'y') as e, 'ab'::blob as b, null as nothing
        from Person where age < 2
    """
    assert graph.sql(text).to_pylist() == [
        {
            "i": 1,
            "h": str((TOP + TOP - 1) * 10),
            "d": 1.25,
            "span": "1 day",
            "m": "{a=1}",
            "t": "10:20:00",
            "at": datetime(2026, 1, 1, 1, 2, 3, 4000, tzinfo=UTC),
            "s": {"a": 2, "b": [datetime(2026, 1, 1, 1, 2, 3, tzinfo=UTC)]},
            "u": "01890a5d-ac96-774b-bcce-b302099a8057",
            "e": "x",
            "b": b"ab",
            "nothing": None,
        }
    ]


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, int]]:
    """The columns of each scan and the number of rows that it returned."""
    counts: list[tuple[Any, int]] = []
    batches = Scan.batches

    def counted(scan: Scan) -> Any:
        for batch in batches(scan):
            counts.append((scan._options["columns"], batch.num_rows))
            yield batch

    monkeypatch.setattr(Scan, "batches", counted)
    return counts


def test_columns_and_filters_reach_the_scanner(graph: og.Graph, scanned: list[tuple[Any, int]]) -> None:
    graph.sql("select name from Person where age >= 18 and role = 'b'")
    assert (sum(rows for _, rows in scanned), {*map(str, (names for names, _ in scanned))}) == (2, {"['name']"})
    scanned.clear()
    # Lance takes no filter on DateTime: the rows are filtered after the scan.
    graph.sql("select name from Person where seen > timestamptz '2026-01-19 00:00:00Z'")
    assert (sum(rows for _, rows in scanned), scanned[0][0]) == (20, ["name", "seen"])


def test_blobs_are_left_out_unless_named(graph: og.Graph) -> None:
    assert "picture" not in graph.sql("select * from Person limit 1").columns
    found = graph.sql("select picture from Person limit 1", blobs=["Person.picture"])
    assert found.to_pylist() == [{"picture": b"hi"}]
    with pytest.raises(InputError, match=r"no Blob property 'Person\.pictur'") as caught:
        graph.sql("select 1", blobs=["Person.pictur"])
    assert caught.value.hint == "did you mean 'Person.picture'?"
    with pytest.raises(InputError, match="list of names"):
        graph.sql("select 1", blobs="Person.picture")


def test_names_that_sql_does_not_distinguish(graph: og.Graph) -> None:
    assert graph.sql("show tables").to_columns() == [["Knows", "LivesIn", "Person", "Town", "Town_edge"]]
    assert graph.sql("select count(*) n from Town_edge").to_pylist() == [{"n": 0}]


def test_parameters(graph: og.Graph) -> None:
    assert len(graph.sql("select id from Person where age > $n", {"n": 17})) == 2
    assert len(graph.sql("select id from Person where age > ? and role = ?", [17, "b"])) == 2
    with pytest.raises(InputError):
        graph.sql("select id from Person where age > $n", {"m": 17})


# -- time ------------------------------------------------------------------------------------------


def test_connections_at_two_commits(tmp_path: Path) -> None:
    graph = new_graph(tmp_path, SCHEMA, node("Town", name="york"))
    before, commit = graph.duckdb(), graph.snapshot().commit_id
    graph.load([node("Town", name="bath")], mode="append")
    after = graph.duckdb()
    count = "select count(*) from Town"
    assert (before.sql(count).fetchall(), after.sql(count).fetchall()) == ([(1,)], [(2,)])
    assert graph.sql(f"{count} as n", at=commit).to_pylist()[0] != graph.sql(f"{count} as n").to_pylist()[0]
    assert graph.sql(count, at=commit).commit_id == commit
    graph.branch_create("draft", at=commit)
    assert graph.on("draft").sql("select name from Town").to_pylist() == [{"name": "york"}]
    assert graph.sql("select name from Town", branch="draft").to_pylist() == [{"name": "york"}]
    # Rows go back by load.
    graph.load({"Town": after.sql("select name || '2' as name, 7 as size from Town")}, mode="append")
    assert len(graph.sql("select * from Town")) == 4
    for connection in (before, after):
        connection.close()


# -- stored queries --------------------------------------------------------------------------------


def test_stored_queries_are_views_that_run_when_first_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = new_graph(tmp_path, SCHEMA, node("Town", name="york", size=5), node("Town", name="bath", size=9))
    graph.store_query(
        "query large($least: I64) { match { $t: Town $t.size >= $least } return { $t.name as name, $t as town } }",
        'query add() { insert Town { name: "hull" } }',
        "query twice() { match { $t: Town } return { $t.name as a, $t.size as a } }",
    )
    calls: list[Any] = []
    invoke = og.Graph.invoke

    def counted(graph: og.Graph, *args: Any, **more: Any) -> Any:
        calls.append(args)
        return invoke(graph, *args, **more)

    monkeypatch.setattr(og.Graph, "invoke", counted)
    connection = graph.duckdb(queries={"hits": ("large", {"least": 6})})
    assert calls == []
    assert connection.sql("select name, town.size from hits where name > 'a'").fetchall() == [("bath", 9)]
    assert connection.sql("select count(*) from hits").fetchall() == [(1,)]
    assert calls == [("large", {"least": 6})]
    connection.close()
    assert graph.sql("select count(*) n from hits", queries={"hits": ("large", {"least": 1})}).to_pylist() == [{"n": 2}]
    wrong: dict[str, Any] = {
        "there is no stored query 'larg'": {"h": ("larg", {})},
        "is a mutation": {"h": "add"},
        "two columns 'a'": {"h": "twice"},
        "'town' is the view of a type": {"town": ("large", {"least": 1})},
        "least": {"h": "large"},
        "the query has no parameter 'lest'": {"h": ("large", {"least": 1, "lest": 1})},
    }
    for message, queries in wrong.items():
        with pytest.raises((InputError, NotFound), match=message):
            graph.sql("select 1", queries=queries)


# -- what is refused -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("insert into Person values (1)", "sql_read_only"),
        ("update Person set age = 1", "sql_read_only"),
        ("delete from Person", "sql_read_only"),
        ("create table x as select 1", "sql_read_only"),
        ("drop view Person", "sql_read_only"),
        ("copy Person to 'people.csv'", "sql_read_only"),
        ("attach 'x.duckdb'", "sql_read_only"),
        ("set enable_external_access = true", "sql_read_only"),
        ("install httpfs", "sql_read_only"),
        ("select * from read_csv('s.csv')", "sql_error"),
        ("select * from 's.csv'", "sql_error"),
        ("select * from read_text('/etc/passwd')", "sql_error"),
        ("select * from local_variable", "sql_error"),
        ("select missing from Person", "sql_error"),
        ("select cast(name as int) from Person", "sql_error"),
        ("select error(name) from Person", "sql_error"),
        ("selct 1", "sql_error"),
        ("", "sql_one_select"),
        ("select 1; select 2", "sql_one_select"),
        ("select 1; drop view Person", "sql_one_select"),
    ],
)
def test_statements_that_do_more_than_read_are_refused(graph: og.Graph, text: str, code: str) -> None:
    local_variable = graph.to_arrow("Town")
    assert local_variable.num_rows
    with pytest.raises(InputError) as caught:
        graph.sql(text)
    assert caught.value.code == code


def test_limits(graph: og.Graph) -> None:
    endless = "select count(*) from range(100000000) a, range(1000000) b where a.range * b.range % 7 = 3"
    with pytest.raises(QueryTimeout):
        graph.sql(endless, timeout=0.2)
    cancel = Cancellation()
    timer = threading.Timer(0.2, cancel.cancel)
    timer.start()
    with pytest.raises(Cancelled):
        graph.sql(endless, cancel=cancel)
    timer.join()
    with pytest.raises(LimitReached, match="more than 3 rows"):
        graph.sql("select * from Person", limits=Limits(rows_max=3))
    with pytest.raises(LimitReached, match="more than 30 bytes"):
        graph.sql("select * from Person", limits=Limits(bytes_max=30))


def test_an_error_of_a_scan_keeps_its_class(tmp_path: Path) -> None:
    graph = new_graph(tmp_path, SCHEMA, node("Town", name="york"))
    for file in (tmp_path).rglob("*.lance"):
        if file.is_file():
            file.write_bytes(b"")
    with pytest.raises(og.errors.OmniGraphError) as caught:
        og.open(graph.uri).sql("select name from Town")
    assert not isinstance(caught.value, InputError)


def test_a_missing_package_is_named(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingPackage) as caught:
        graph.sql("select 1")
    assert caught.value.hint == "install it: pip install 'omnigraph[sql]'"


def test_async_graph(graph: og.Graph) -> None:
    async def count() -> Any:
        async with AsyncGraph(graph) as handle:
            return (await handle.sql("select count(*) n from Person")).to_pylist()

    assert asyncio.run(count()) == [{"n": 20}]


# -- files -----------------------------------------------------------------------------------------


def test_export_to_a_database_file(graph: og.Graph, tmp_path: Path) -> None:
    out = tmp_path / "all.duckdb"
    assert graph.export(out, format="duckdb") == 20 + 2 + 19 + 15
    with duckdb.connect(str(out), read_only=True) as connection:
        names = connection.sql("show tables").fetchall()
        assert names == [("Knows",), ("LivesIn",), ("Person",), ("Town",), ("Town_edge",)]
        found = connection.sql("select handle, big, picture, meaning from Person where age = 3").fetchall()
        assert found == [("p03", TOP - 3, b"hi", (1.0, 3.0))]
    with pytest.raises(InputError, match="exists"):
        graph.export(out, format="duckdb")
    some = tmp_path / "some.duckdb"
    assert graph.export(some, format="duckdb", types=["Town"]) == 2
    for options in ({"partitioned": True}, {"engine": "spark"}):
        with pytest.raises(InputError):
            graph.export(tmp_path / "other.duckdb", format="duckdb", **options)
    with pytest.raises(InputError, match="cannot be written"):
        graph.export(tmp_path / "missing" / "x.duckdb", format="duckdb")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["all.duckdb", "some.duckdb"]
