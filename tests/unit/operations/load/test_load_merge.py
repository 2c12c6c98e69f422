"""Loads in mode `merge`: absent properties, repeated ids, edges without an id, and results."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import ConstraintViolation, InputError, RecordError
from omnigraph.graph import Graph
from omnigraph.operations.load.load_request import LoadRequest, check_missing
from omnigraph.operations.load.load_result import LoadResult, Reject
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource
from omnigraph.storage.lance.tables import Table
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from support.writes import edge, ends_of, new_graph, node, reopened, rows_of

SCHEMA = """
node P { k: String @key  must: String  a: I32?  b: I32?  nick: String? @unique  @range(a, 0..9) }
node Free { v: I32?  w: I32? }
edge Knows: P -> P { since: Date?  how: String?  @unique(src, dst) }
edge Met: P -> P { on: Date?  where: String?  @unique(src, dst, on) }
edge Plain: P -> P { n: I32? }
"""
MOCK = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}


class Loader:
    """Loads records in memory or with the tasks of a bulk load."""

    def __init__(self, root, how: str) -> None:
        self.root = root
        self.how = how

    def __call__(self, graph: Graph, records: list[Any], mode: str = "merge", **more: Any) -> LoadResult:
        if self.how == "memory":
            return graph.load(records, mode=mode, **more)
        path = self.root / "in.jsonl"
        path.write_text("\n".join(map(json.dumps, records)))
        rejects, options = more.pop("rejects", None), WriteOptions(idempotency_key=more.pop("job_id", None))
        missing = check_missing(more.pop("missing", "keep"))
        request = LoadRequest(
            mode, options, missing, set_aside=rejects is not None, environ=graph._context.environ, **more
        )
        source = FileSource(plan_input([str(path)], {}, 1, split_bytes=60))
        result = load_source(graph._repository, InlineRunner(), source, request)
        if rejects is not None:
            rejects += result.rejected
        return result


@pytest.fixture(params=["memory", "tasks"])
def load(request, tmp_path):
    return Loader(tmp_path, request.param)


@pytest.fixture
def graph(tmp_path):
    people = [
        node("P", k="x", must="m", a=1, b=2, nick="n"),
        node("P", k="y", must="m", nick="o"),
        node("P", k="z", must="m"),
    ]
    return new_graph(tmp_path, SCHEMA, *people, node("Free", id_="f", v=1, w=2))


# -- absent properties -------------------------------------------------------------------------------


def test_absent_property_keeps_its_value_and_null_clears_it(graph, load):
    load(graph, [node("P", k="x", b=None), node("Free", id_="f", v=5)])
    assert rows_of(graph, "P")["x"] == {"k": "x", "must": "m", "a": 1, "b": None, "nick": "n"}
    assert rows_of(graph, "Free")["f"] == {"v": 5, "w": 2}


def test_missing_null_replaces_whole_rows(graph, load):
    load(graph, [node("P", k="x", must="new")], missing="null")
    assert rows_of(graph, "P")["x"] == {"k": "x", "must": "new", "a": None, "b": None, "nick": None}
    with pytest.raises(RecordError, match=r"P\.must is required"):
        load(graph, [node("P", k="x")], missing="null")


def test_unknown_choice_for_missing_properties_is_refused(graph, load):
    with pytest.raises(InputError, match="'drop' is not a valid choice for missing properties") as caught:
        load(graph, [], missing="drop")
    assert caught.value.hint == "the choices are keep, null"


def test_new_row_requires_the_required_properties(graph, load):
    with pytest.raises(RecordError) as caught:
        load(graph, [node("P", k="x"), node("P", k="new", a=1)])
    assert (caught.value.line, caught.value.property_name, caught.value.rule) == (2, "must", "required")
    assert caught.value.message.endswith("line 2: P 'new' is new and needs must (String)")
    with pytest.raises(RecordError, match=r"P\.must is required"):
        load(graph, [node("P", k="x", must=None)])
    with pytest.raises(RecordError, match=r"P\.k is required"):
        load(graph, [node("P", must="m")])


def test_required_property_may_come_from_another_record(graph, load):
    load(graph, [node("P", k="new", a=1), node("P", k="new", must="later")])
    assert rows_of(graph, "P")["new"] == {"k": "new", "must": "later", "a": 1, "b": None, "nick": None}


@pytest.mark.parametrize("form", ["csv", "arrow", "parquet"])
def test_missing_column_is_absent_from_all_records(graph, tmp_path, form):
    table = pa.table({"k": ["x", "y"], "b": pa.array([None, 7], pa.int32())})
    if form == "csv":
        (tmp_path / "P.csv").write_text("k,b\nx,\ny,7\n")
        graph.load(tmp_path / "P.csv", mode="merge")
    elif form == "arrow":
        graph.load({"P": table}, mode="merge")
    else:
        pq.write_table(table, tmp_path / "P.parquet")
        graph.load(tmp_path / "P.parquet", mode="merge")
    found = rows_of(graph, "P")
    assert (found["x"]["a"], found["x"]["b"], found["x"]["nick"]) == (1, None, "n")
    assert (found["y"]["b"], found["y"]["nick"]) == (7, "o")


def test_only_absent_columns_are_read(graph, monkeypatch):
    seen: set[str] = set()
    read, rows_with = Table.read, Table.rows_with
    monkeypatch.setattr(
        Table,
        "read",
        lambda self, columns=None, **more: (seen.update(columns or ["*"]), read(self, columns, **more))[1],
    )
    monkeypatch.setattr(
        Table,
        "rows_with",
        lambda self, column, values, columns: (seen.update(columns), rows_with(self, column, values, columns))[1],
    )
    graph.load([node("P", k="x", must="m", a=2, nick="n2")], mode="merge")
    assert "b" in seen
    assert not seen & {"*", "must", "a"}


def test_more_rows_than_are_looked_up_by_id(graph):
    graph.load([node("Free", id_=f"g{n}", v=n, w=n) for n in range(2500)], mode="append")
    graph.load([node("Free", id_=f"g{n}", v=-n) for n in range(2200)], mode="merge")
    found = rows_of(graph, "Free")
    assert all(found[f"g{n}"] == {"v": -n if n < 2200 else n, "w": n} for n in range(2500))


def test_kept_unique_columns_are_validated(graph, load):
    with pytest.raises(ConstraintViolation, match="value 'n' is held by"):
        load(graph, [node("P", k="x", a=2), node("P", k="z", nick="n")])
    load(graph, [node("P", k="x", nick=None), node("P", k="z", nick="n")])
    assert rows_of(graph, "P")["z"]["nick"] == "n"


# -- several records of one row ----------------------------------------------------------------------


def test_records_of_one_id_are_applied_in_order(graph, load):
    result = load(
        graph,
        [
            node("P", k="x", a=5, b=None),
            node("P", k="y", a=3),
            node("P", k="x", a=None, nick="q"),
            node("P", k="x", b=8),
        ],
    )
    assert rows_of(graph, "P")["x"] == {"k": "x", "must": "m", "a": None, "b": 8, "nick": "q"}
    assert result.tables == (("node:P", 4),)


def test_missing_null_keeps_the_last_record(graph, load):
    load(graph, [node("P", k="x", must="1", a=5), node("P", k="x", must="2", b=6)], missing="null")
    assert rows_of(graph, "P")["x"] == {"k": "x", "must": "2", "a": None, "b": 6, "nick": None}


def test_records_of_a_row_are_set_aside_together(graph, load):
    rejects: list[Reject] = []
    records = [node("P", k="z", nick="o"), node("P", k="x", a=2), node("P", k="z", a=4), node("P", k="new", a=1)]
    result = load(graph, records, rejects=rejects)
    assert [(r.line, r.rule) for r in rejects] == [(1, "unique"), (3, "unique"), (4, "required")]
    assert result.tables == (("node:P", 1),)
    assert rows_of(graph, "P")["z"] == {"k": "z", "must": "m", "a": None, "b": None, "nick": None}
    assert rows_of(graph, "P")["x"]["a"] == 2


# -- edges without an id -----------------------------------------------------------------------------


def test_edge_is_matched_by_its_ends(graph, load):
    edges = [edge("Knows", "x", "y", since="2024-01-01", how="work"), edge("Knows", "y", "x")]
    first = load(graph, edges)
    before = rows_of(graph, "Knows")
    again = load(graph, edges)
    assert rows_of(graph, "Knows") == before
    assert (first.notes, again.notes) == ((), ())
    load(graph, [edge("Knows", "x", "y", how="club"), edge("Knows", "x", "z"), edge("Knows", "x", "z", how="new")])
    found = rows_of(graph, "Knows")
    assert {id_: row for id_, row in found.items() if id_ in before} == {
        id_: {**row, "how": "club"} if row["from"] == "x" else row for id_, row in before.items()
    }
    assert [row["how"] for row in found.values() if row["to"] == "z"] == ["new"]


def test_edge_is_matched_by_the_whole_tuple(graph, load):
    load(graph, [edge("Met", "x", "y", on="2024-01-01", where="a"), edge("Met", "x", "y", on="2024-01-02")])
    result = load(graph, [edge("Met", "x", "y", on="2024-01-02", where="b")])
    assert sorted(str(row["where"]) for row in rows_of(graph, "Met").values()) == ["a", "b"]
    assert result.notes == ()
    result = load(graph, [edge("Met", "x", "y", where="c")])
    assert len(rows_of(graph, "Met")) == 3
    assert result.notes[0].startswith("edge:Met: records without an id were added, and a second load adds them again")


def test_edge_with_an_id_is_matched_by_id(graph, load):
    load(graph, [edge("Knows", "x", "y", id_="e", how="work")])
    load(graph, [edge("Knows", "x", "y", since="2024-01-01"), edge("Knows", "x", "z", id_="e")])
    assert ends_of(graph, "Knows") == [("x", "z")]
    assert rows_of(graph, "Knows")["e"]["how"] == "work"


def test_unmatched_edges_are_added_and_reported(graph, load):
    for count in (1, 2):
        result = load(graph, [edge("Plain", "x", "y")])
        assert len(rows_of(graph, "Plain")) == count
        assert result.notes == (
            "edge:Plain: records without an id were added, and a second load adds them again; "
            "give ids or declare @unique(src, dst)",
        )
    assert load(graph, [edge("Plain", "x", "y", id_="p")]).notes == ()
    assert load(graph, [edge("Plain", "x", "y")], mode="append").notes == ()


# -- vectors -----------------------------------------------------------------------------------------

EMBEDDED = """
node D { k: String @key  text: String?  vec: Vector(2)? @embed("text")  n: I32? }
node R { k: String @key  text: String?  vec: Vector(2) @embed("text") }
"""


def vectors(graph: Graph, type_name: str = "D") -> dict[str, Any]:
    return {id_: row["vec"] for id_, row in rows_of(graph, type_name).items()}


def test_changed_text_is_embedded_again(tmp_path, load):
    graph = new_graph(tmp_path, EMBEDDED, environ=MOCK)
    given = [1.0, 0.0]
    start = [node("D", k="same", text="t", vec=given), node("D", k="changed", text="t", vec=given)]
    graph.load(
        [*start, node("D", k="other", text="t", vec=given), node("D", k="cleared", text="t", vec=given)], mode="append"
    )
    made = load(
        graph,
        [
            node("D", k="same", text="t"),
            node("D", k="changed", text="u"),
            node("D", k="other", n=1),
            node("D", k="cleared", text=None),
        ],
    )
    found = vectors(graph)
    assert (found["same"], found["other"], found["cleared"]) == (given, given, None)
    assert found["changed"] not in (given, None)
    assert made.embedded_rows == 1
    load(graph, [node("D", k="same", vec=None)])
    assert vectors(graph)["same"] not in (given, None)


def test_vector_given_before_its_text_changes_is_embedded_again(tmp_path, load):
    graph = new_graph(tmp_path, EMBEDDED, environ=MOCK)
    given = [1.0, 0.0]
    load(
        graph,
        [
            node("D", k="a", text="t", vec=given),
            node("D", k="a", text="u"),
            node("D", k="b", text="t"),
            node("D", k="b", vec=given),
        ],
    )
    found = vectors(graph)
    assert found["a"] not in (given, None)
    assert found["b"] == given


def test_required_vector_requires_its_text(tmp_path, load):
    graph = new_graph(tmp_path, EMBEDDED, node("R", k="a", text="t"), environ=MOCK)
    with pytest.raises(RecordError, match=r"R\.vec is required"):
        load(graph, [node("R", k="a", text=None)])
    load(graph, [node("R", k="a", vec=None)])
    assert vectors(graph, "R")["a"] is not None


# -- no records, repeated jobs -----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["merge", "append", "overwrite"])
def test_load_without_records_makes_no_commit(graph, load, mode):
    before = [commit.id for commit in graph.commits()]
    rejects: list[Reject] = []
    for records in ([], [{"type": "Nobody"}]):
        result = load(graph, records, mode, rejects=rejects, job_id="night")
        assert result.commit_id is None
        assert result.notes == ("no record was loaded; nothing was committed",)
    assert [commit.id for commit in graph.commits()] == before
    assert load(graph, [node("P", k="q", must="m")], "merge", job_id="night").commit_id is not None


def test_emptied_table_makes_a_commit(graph, tmp_path):
    (tmp_path / "Free.csv").write_text("id,v\n")
    result = graph.load(tmp_path / "Free.csv", mode="overwrite")
    assert result.commit_id == graph.commits()[0].id
    assert rows_of(graph, "Free") == {}
    assert graph.load(tmp_path / "Free.csv", mode="overwrite").commit_id is None


def test_repeated_job_returns_the_first_result(graph, load):
    records = [node("P", k="q", must="m"), {"type": "Nobody"}]
    rejects: list[Reject] = []
    first = load(graph, records, "append", job_id="night-1", rejects=rejects)
    again = load(graph, records, "append", job_id="night-1", rejects=rejects)
    assert (again.commit_id, again.tables, again.rejected_count) == (first.commit_id, first.tables, 1)
    assert (first.repeated, again.repeated) == (False, True)
    assert len(rejects) == 1
    assert again.notes == (f"a load with this job id made commit {first.commit_id} before; nothing was loaded now",)


def test_repeated_job_keeps_the_rejects_file(graph, tmp_path):
    path = tmp_path / "rejects.jsonl"
    records = [node("P", k="q", must="m"), {"type": "Nobody"}]
    graph.load(records, mode="merge", rejects=path, job_id="night-1")
    before = path.read_text()
    assert len(before.splitlines()) == 1
    graph.load([], mode="merge", rejects=path, job_id="night-1")
    assert path.read_text() == before


def test_concurrent_loads_of_one_job(graph, monkeypatch):
    """The key is used while the second load prepares. The second load returns the result of the first."""
    other = reopened(graph)
    rejects: list[Reject] = []
    commit = Transaction.commit

    def interfering(self):
        monkeypatch.setattr(Transaction, "commit", commit)
        other.load([node("P", k="q", must="m")], mode="append", job_id="night-1")
        return commit(self)

    monkeypatch.setattr(Transaction, "commit", interfering)
    result = graph.load(
        [node("P", k="r", must="m"), {"type": "Nobody"}], mode="append", job_id="night-1", rejects=rejects
    )
    assert (result.repeated, result.tables, rejects) == (True, (("node:P", 1),), [])
    assert set(rows_of(graph, "P")) == {"x", "y", "z", "q"}


# -- rejected records --------------------------------------------------------------------------------


def test_rejects_have_the_original_records(graph, load, tmp_path):
    records = [node("P", k="q", must="m", a=99), node("P", k="x", b=5), {"type": "Nobody", "data": {"v": [1]}}]
    rejects: list[Reject] = []
    load(graph, [*records, edge("Plain", "x", "nobody", n=3), node("P", k="z", nick="o")], rejects=rejects)
    assert [reject.record for reject in rejects] == [
        records[0],
        records[2],
        edge("Plain", "x", "nobody", n=3),
        node("P", k="z", nick="o"),
    ]


def test_rejects_can_be_repaired_and_loaded(graph, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"type": "P", "data": {"k": "q", "must": "m", "a": 99}}\n{"type": \n')
    (tmp_path / "Knows.csv").write_text("from,to,since\nx,y,2024-01-01\nx,nobody,2024-01-02\ny,z\n")
    pq.write_table(pa.table({"k": ["x", "r"], "a": [10, 1], "must": ["m", "n"]}), tmp_path / "P.parquet")
    path = tmp_path / "rejects.jsonl"
    graph.load([tmp_path / name for name in ("a.jsonl", "Knows.csv", "P.parquet")], mode="merge", rejects=path)
    rejects = [json.loads(line) for line in path.read_text().splitlines()]
    records = {(reject["source"].rpartition("/")[2], reject["line"]): reject["record"] for reject in rejects}
    assert records == {
        ("a.jsonl", 1): node("P", k="q", must="m", a=99),
        ("a.jsonl", 2): '{"type":',
        ("Knows.csv", 3): edge("Knows", "x", "nobody", since="2024-01-02"),
        ("Knows.csv", 4): ["y", "z"],
        ("P.parquet", 1): node("P", k="x", a=10, must="m"),
    }
    repaired = json.loads(json.dumps(records["P.parquet", 1]).replace("10", "9"))
    graph.load([repaired], mode="merge")
    assert rows_of(graph, "P")["x"]["a"] == 9


def test_parquet_rejects_have_the_records_as_text(graph, tmp_path):
    path = tmp_path / "rejects.parquet"
    graph.load({"P": pa.table({"k": ["q"], "must": ["m"], "a": [99]})}, mode="merge", rejects=path)
    assert json.loads(pq.read_table(path)["record"][0].as_py()) == node("P", k="q", must="m", a=99)


def test_edge_without_an_id_is_named_by_its_ends(graph, load):
    rejects: list[Reject] = []
    records = [edge("Knows", "x", "y"), edge("Knows", "x", "y", id_="e"), edge("Knows", "x", "y")]
    load(graph, records, "append", rejects=rejects)
    value = "@unique violation on Knows.(dst, src): value '(y, x)' is held by the edge 'x' → 'y' and"
    assert [(r.line, r.reason) for r in rejects] == [(2, f"{value} 'e'"), (3, f"{value} the edge 'x' → 'y'")]
    with pytest.raises(ConstraintViolation) as caught:
        load(graph, [edge("Knows", "y", "z"), edge("Knows", "y", "z")], "append")
    assert caught.value.message.endswith("is held by the edge 'y' → 'z' and the edge 'y' → 'z'")
    assert caught.value.message.partition("line 2: ")[1]
