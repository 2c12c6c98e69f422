"""Spark under rules for rows: queries, DataFrames and the data source show what the in-process engine shows."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import CompileError, Denied, InputError, PageCursorRejected, TypeNotFound
from omnigraph.graph import Graph
from omnigraph.query.visibility import Visibility
from omnigraph.spark import OmniGraphDataSource, scans
from omnigraph.spark.scans import Scan, job_of
from omnigraph.spark.visible_batches import TableRules
from property.test_visibility import NothingToAsk, ask
from support.random_reads.graphs import Point, new_subject
from support.visible import SHAPES, projected, random_rules

SEED = 20_261_118
SCHEMA = """
node Note { name: String @key  tenant: String  text: String? @index  pay: I64?  secret: String?  vec: Vector(2)? }
node Sealed { name: String @key }
edge Cites: Note -> Note { weight: I64? }
edge Holds: Sealed -> Note
"""
POLICY = """version: 2
groups: { staff: [ana], owners: [bo] }
attributes: { declare: { tenant: String }, ana: { tenant: acme } }
rows: { default: allow }
rules:
  - { id: staff, allow: { actors: { group: staff }, role: editor } }
  - { id: owners, allow: { actors: { group: owners }, role: owner } }
  - id: own-tenant
    allow: { actors: { group: staff }, actions: [row_read], types: [Note], when: 'resource.tenant == principal.tenant' }
  - { id: sealed, allow: { actors: { group: owners }, actions: [row_read], types: [Sealed] } }
  - id: pay
    allow: { actors: { group: owners }, actions: [property_read], types: [Note], properties: [pay], otherwise: mask }
  - { id: secret, allow: { actors: { group: owners }, actions: [property_read], types: [Note], properties: [secret] } }
"""


def note(name: str, tenant: str, text: str) -> dict[str, Any]:
    data = {"name": name, "tenant": tenant, "text": text, "pay": 9_999, "secret": "s", "vec": [1.0, float(len(name))]}
    return {"type": "Note", "data": data}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rules")
    (folder / "policy.yaml").write_text(POLICY)
    graph = og.init(folder / "graph", SCHEMA, sync=False)
    graph.load(
        [
            note("a", "acme", "red apple"),
            note("b", "acme", "green apple apple"),
            note("cc", "acme", "blue"),
            *(note(f"x{n}", "other", "apple blue") for n in range(20)),
            {"type": "Sealed", "data": {"name": "s"}},
            *(
                {"edge": "Cites", "from": one, "to": other, "data": {"weight": weight}}
                for one, other, weight in (("a", "b", 1), ("b", "x1", 1), ("x1", "cc", -1), ("b", "cc", 5))
            ),
            {"edge": "Holds", "from": "s", "to": "a"},
        ],
        mode="append",
    )
    return folder


def opened(site: Path, actor: str = "ana") -> Graph:
    graph = og.open(site / "graph", policy=site / "policy.yaml", actor=actor)
    assert isinstance(graph, Graph)
    return graph


QUERIES = [
    "match { $n: Note } return { $n.name, $n.pay, $n } order { $n.name }",
    "match { $n: Note $n.pay > 1 } return { count($n) as n }",
    'match { $n: Note } return { $n.name, bm25($n.text, "apple") as s } order { bm25($n.text, "apple") } limit 9',
    "match { $n: Note } return { $n.name } order { nearest($n.vec, [1.0, 2.0]) } limit 2",
    'match { $a: Note { name: "a" } $a cites{1,3} $b } return { $b.name } order { $b.name }',
    'match { $a: Note { name: "a" } $p: shortest { $a cites{1,9} $b } by weight } '
    "return { $b.name, nodes($p, pay) as pay, weight($p) as w } order { $b.name }",
    "match { $a: Note not { $a cites $b } } return { $a.name } order { $a.name }",
    "match { $a: Note $a $e:cites $b } return { $a.name, $e.weight } order { $a.name, $b.name }",
]  # fmt: skip


@pytest.mark.parametrize("text", QUERIES)
def test_query_sees_what_the_process_sees(spark: Any, site: Path, text: str) -> None:
    graph = opened(site)
    found = graph.query(text, engine="spark", spark=spark)
    assert found.to_pylist() == graph.query(text, engine="memory").to_pylist()
    assert found.columns == graph.query(text, engine="memory").columns


def test_pages_of_a_limited_caller(spark: Any, site: Path) -> None:
    text = "match { $n: Note } return { $n.name, $n.pay } order { $n.name }"
    graph = opened(site)
    first = graph.query(text, page=2, engine="spark", spark=spark)
    second = graph.query(text, page=2, after=first.next, engine="spark", spark=spark)
    assert [first.to_pylist(), second.to_pylist()] == [page.to_pylist() for page in graph.pages(text, page=2)]
    assert second.next is None
    with pytest.raises(PageCursorRejected, match="another query"):
        opened(site, "bo").query(text, page=2, after=first.next, engine="spark", spark=spark)


def test_hidden_names_do_not_exist(spark: Any, site: Path) -> None:
    graph = opened(site)
    for text in ("match { $s: Sealed } return { $s.name }", "match { $n: Note } return { $n.secret }"):
        with pytest.raises(CompileError):
            graph.query(text, engine="spark", spark=spark)
    with pytest.raises(TypeNotFound):
        graph.to_spark("Sealed", spark=spark)
    with pytest.raises(InputError, match="has no column 'secret'"):
        graph.to_spark("Note", columns=["secret"], spark=spark)


def test_dataframe_shows_visible_rows_and_values(spark: Any, site: Path) -> None:
    graph = opened(site)
    frame = graph.to_spark("Note", spark=spark)
    assert frame.columns == graph.to_arrow("Note").column_names
    assert sorted((row["name"], row["pay"]) for row in frame.collect()) == [("a", None), ("b", None), ("cc", None)]
    edges = graph.to_spark("Cites", columns=["weight"], spark=spark)
    assert edges.columns == ["weight"]
    assert sorted(row["weight"] for row in edges.collect()) == [1, 5]
    assert len(opened(site, "bo").to_spark("Note", spark=spark).collect()) == 23


def test_filter_of_a_dataframe_reads_nothing_hidden(spark: Any, site: Path) -> None:
    graph = opened(site)
    assert graph.to_spark("Note", columns=["name"], filter="pay = 9999", spark=spark).collect() == []
    found = graph.to_spark("Note", columns=["name"], filter="pay is null and tenant like 'a%'", spark=spark)
    assert sorted(row["name"] for row in found.collect()) == ["a", "b", "cc"]
    with pytest.raises(Exception, match="secret"):
        graph.to_spark("Note", columns=["name"], filter="secret = 's'", spark=spark).collect()


def read(spark: Any, site: Path, type_name: str, **options: str) -> Any:
    spark.dataSource.register(OmniGraphDataSource)
    given = {"uri": str(site / "graph"), "type": type_name, "policy": str(site / "policy.yaml"), "actor": "ana"}
    return spark.read.format("omnigraph").options(**{**given, **options}).load()


def test_data_source_applies_a_policy(spark: Any, site: Path) -> None:
    frame = read(spark, site, "Note")
    assert "secret" not in frame.columns
    assert sorted((row["name"], row["pay"]) for row in frame.collect()) == [("a", None), ("b", None), ("cc", None)]
    assert read(spark, site, "Sealed", actor="bo").count() == 1


REFUSED = {
    "hidden type": ("Sealed", {}, "'Sealed' does not exist"),
    "hidden property": ("Note", {"filter": "secret = 's'"}, "use DataFrame.filter"),
    "guarded ends": ("Cites", {}, "Graph.to_spark"),
    "unknown actor": ("Note", {"actor": "eve"}, "no rule allows action .export"),
}


@pytest.mark.parametrize(("type_name", "options", "message"), REFUSED.values(), ids=REFUSED)
def test_data_source_refuses(spark: Any, site: Path, type_name: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(Exception, match=message):
        read(spark, site, type_name, **options).collect()


def test_data_source_writes_no_rows_under_a_policy(spark: Any, site: Path) -> None:
    frame = spark.createDataFrame([("new", "other")], "name string, tenant string")
    options = {"uri": str(site / "graph"), "type": "Note", "policy": str(site / "policy.yaml"), "actor": "ana"}
    with pytest.raises(Exception, match="applies no policy"):
        frame.write.format("omnigraph").mode("append").options(**options).save()


def test_audited_rows_are_not_read_by_spark(spark: Any, site: Path) -> None:
    (site / "audited.yaml").write_text(POLICY.replace("default: allow", "default: allow, audit: 5"))
    graph = og.open(site / "graph", policy=site / "audited.yaml", actor="ana")
    with pytest.raises(Denied, match="audits the rows"):
        graph.query(QUERIES[0], engine="spark", spark=spark)
    with pytest.raises(Denied, match="audits the rows"):
        graph.to_spark("Note", spark=spark)


def check(root: Path, spark: Any, seed: int, questions: int) -> None:
    """Run random reads under rules of some shapes on Spark and compare them with the projected world."""
    random = Random(seed)
    subject = new_subject(root, random)
    asked = 0
    for number in range(40 * questions):
        shape = SHAPES[(seed + number) % len(SHAPES)]
        point: Point = subject.somewhere()
        rules = random_rules(random, point.world.catalog, shape)
        left = projected(point.world, rules).catalog
        if not left.nodes or not left.edges:
            continue
        state = random.random()
        try:
            wrong = ask(subject, Random(state), rules, point, engine="spark", spark=spark)
        except (CompileError, NothingToAsk):
            continue
        assert wrong is None, f"seed {seed}, {shape}, question {state}: {wrong}"
        asked += 1
        if asked == questions:
            return
    raise AssertionError("too few questions were sound")


def test_random_reads_see_the_projected_graph(spark: Any, tmp_path: Path) -> None:
    check(tmp_path / "graph", spark, SEED, 3)


@pytest.mark.long
@pytest.mark.parametrize("number", range(40))
def test_random_reads_see_the_projected_graph_long(spark: Any, tmp_path: Path, number: int) -> None:
    check(tmp_path / "graph", spark, SEED + 100 + number, 12)


def visible_notes(site: Path) -> list[tuple[str, int | None]]:
    """Read in this process what a worker reads."""
    context = opened(site)._context
    snapshot = context.snapshot("main")
    scan = Scan(
        job_of(context.repository, snapshot, context.visibility_of(snapshot)),
        "node:Note",
        {"name": "name", "pay": "pay"},
    )
    return [(row["name"], row["pay"]) for batch in scan.read(((0, 0),)) for row in batch.to_pylist()]


NOTES = [("a", None), ("b", None), ("cc", None)]


def test_workers_read_visible_rows_and_values(site: Path) -> None:
    assert visible_notes(site) == NOTES


@pytest.mark.parametrize(("field", "value"), [("rows", None), ("values", {})])
def test_missing_guard_of_rows_is_noticed(site: Path, monkeypatch: pytest.MonkeyPatch, field: str, value: Any) -> None:
    init = TableRules.__init__

    def unguarded(self: TableRules, *given: Any) -> None:
        init(self, *given)
        object.__setattr__(self, field, value)

    monkeypatch.setattr(TableRules, "__init__", unguarded)
    assert visible_notes(site) != NOTES


def test_missing_guard_of_ends_is_noticed(spark: Any, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(site).to_spark("Cites", columns=["id"], spark=spark).count() == 2
    monkeypatch.setattr(scans, "guarded_ends", lambda *_: {})
    assert opened(site).to_spark("Cites", columns=["id"], spark=spark).count() == 4


def test_hidden_property_is_not_scanned(site: Path) -> None:
    context = opened(site)._context
    snapshot = context.snapshot("main")
    visibility = context.visibility_of(snapshot)
    assert isinstance(visibility, Visibility)
    job = job_of(context.repository, snapshot, visibility)
    with pytest.raises(LookupError, match="'secret' is hidden"):
        list(Scan(job, "node:Note", {"secret": "secret"}).read(((0, 0),)))
    with pytest.raises(LookupError, match="hidden rows"):
        list(Scan(job, "node:Note", {"name": "name"}, filter="pay > 1").read(((0, 0),)))
