"""Reads through the overlay of a write."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine.expr import predicates
from omnigraph.engine.write.overlay import CommittedRows, WriteOverlay
from omnigraph.types import PropertyType
from support.writes import beside, new_graph, shelf

STRING, I32 = PropertyType("String", nullable=True), PropertyType("I32", nullable=True)
SHELF, BESIDE = "node:Shelf", "edge:Beside"


@pytest.fixture
def graph(tmp_path):
    return new_graph(
        tmp_path / "one",
        "node Shelf { code: String @key  note: String?  cap: I32? }\nedge Beside: Shelf -> Shelf\n",
        *(shelf(code, cap=cap) for code, cap in (("a", 1), ("b", 2), ("c", None))),
        *(beside(*ends, id_="".join(ends)) for ends in ("ab", "bc", "cc")),
    )


def rows(table: Any, *rows: dict[str, Any]) -> pa.Table:
    schema = pa.schema([field.with_nullable(True) for field in table.schema])
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def cap(op: str, value: Any) -> Any:
    return predicates.make_test("cap", I32, op, value)


def ids(table: pa.Table) -> list[str]:
    return sorted(table["id"].to_pylist())


def test_rows_of_the_write_hide_committed_rows(graph):
    table = WriteOverlay(graph.snapshot()).table(SHELF)
    assert ids(table.matching(cap(">", 0))) == ["a", "b"]
    table.put(rows(table, {"id": "a", "code": "a", "cap": -1}, {"id": "n", "code": "n", "cap": 9}))
    assert ids(table.matching(cap(">", 0))) == ["b", "n"]
    assert ids(table.matching(cap("<", 0))) == ["a"]
    table.put(rows(table, {"id": "a", "code": "a", "cap": 7}))
    assert [row["cap"] for row in table.matching(cap("=", 7)).to_pylist()] == [7]
    assert ids(table.matching(cap("<", 0))) == []


def test_deleted_rows_are_hidden_and_counted_once(graph):
    table = WriteOverlay(graph.snapshot()).table(SHELF)
    assert table.delete(pa.array(["a", "b"])) == 2
    assert table.delete(pa.array(["b", "c"])) == 1
    assert table.delete(pa.array([], pa.utf8())) == 0
    assert ids(table.matching(predicates.make_test("code", STRING, "!=", ""))) == []
    assert sorted(table.change().delete) == ["a", "b", "c"]


def test_only_requested_columns_are_read(graph):
    table = WriteOverlay(graph.snapshot()).table(SHELF)
    assert table.matching(cap(">", 1), ["id", "cap"]).to_pylist() == [{"id": "b", "cap": 2}]


def test_edges_of_given_nodes_are_found(graph):
    edges = WriteOverlay(graph.snapshot()).table(BESIDE)
    assert sorted(edges.ids_with(["src"], pa.array(["b", "c"])).to_pylist()) == ["bc", "cc"]
    assert sorted(edges.ids_with(["dst"], pa.array(["c"])).to_pylist()) == ["bc", "cc"]
    assert edges.ids_with(["src"], pa.array([], pa.utf8())).to_pylist() == []
    assert edges.ids_with([], pa.array(["b"])).to_pylist() == []
    assert sorted(edges.ids_with(["src", "dst"], pa.array(["b"])).to_pylist()) == ["ab", "bc"]
    edges.delete(pa.array(["cc"]))
    assert edges.ids_with(["dst"], pa.array(["c"])).to_pylist() == ["bc"]


def test_long_value_lists_give_the_same_rows(graph, tune):
    wanted = pa.array(["a", "b", "o'brien"])
    edges = WriteOverlay(graph.snapshot()).table(BESIDE)
    committed = CommittedRows(graph.snapshot())

    def look() -> list[Any]:
        return [
            sorted(edges.ids_with(["src"], wanted).to_pylist()),
            sorted(edges.ids_with(["src", "dst"], wanted).to_pylist()),
            sorted(committed.ids_among(SHELF, wanted).to_pylist()),
            sorted(committed.rows_among(BESIDE, "src", wanted, ["dst"])["dst"].to_pylist()),
            sorted(committed.rows_among(BESIDE, "src", wanted, ["src", "dst"]).to_pylist(), key=str),
        ]

    short = look()
    assert short[:4] == [["ab", "bc"], ["ab", "bc"], ["a", "b"], ["b", "c"]]
    tune(in_list_max=0)
    assert look() == short


def test_empty_value_lists_read_nothing(graph):
    committed = CommittedRows(graph.snapshot())
    nothing = committed.rows_among(SHELF, "id", pa.array([], pa.utf8()), ["id", "cap"])
    assert nothing.column_names == ["id", "cap"]
    assert nothing.num_rows == 0
    assert sorted(committed.read(SHELF, ["id"])["id"].to_pylist()) == ["a", "b", "c"]


def test_fresh_rows_are_appended_and_others_upserted(graph):
    table = WriteOverlay(graph.snapshot()).table(SHELF)
    table.put(rows(table, {"id": "fresh", "code": "x"}), fresh=True)
    table.put(rows(table, {"id": "a", "code": "a"}))
    table.put(rows(table, {"id": "fresh", "code": "y"}))
    change = table.change()
    assert change.append is not None
    assert change.upsert is not None
    assert [(row["id"], row["code"]) for row in change.append.to_pylist()] == [("fresh", "y")]
    assert ids(change.upsert) == ["a"]


def test_only_changed_tables_are_staged(graph):
    write = WriteOverlay(graph.snapshot())
    write.table(SHELF)
    edges = write.table(BESIDE)
    assert list(write.changed_tables()) == []
    assert write.delta().tables == {}
    edges.delete(pa.array(["ab"]))
    assert [table.key for table in write.changed_tables()] == [BESIDE]
    assert write.table(BESIDE) is edges
    delta = write.delta().tables[BESIDE]
    assert delta.deleted.to_pylist() == ["ab"]
    assert not delta.replaces


def test_rows_are_found_by_id_through_all_states(graph):
    table = WriteOverlay(graph.snapshot()).table(SHELF)

    def found(id_: str) -> list[Any]:
        by_test = table.matching(predicates.make_test("id", STRING, "=", id_)).to_pylist()
        assert by_test == table.by_id(id_).to_pylist()
        assert [row["id"] for row in by_test] == table.by_id(id_, ["id"])["id"].to_pylist()
        return [row["cap"] for row in by_test]

    assert (found("a"), found("n")) == ([1], [])
    table.put(rows(table, {"id": "n", "code": "n", "cap": 9}), fresh=True)
    assert (found("a"), found("n")) == ([1], [9])
    table.put(rows(table, {"id": "a", "code": "a", "cap": 5}))
    assert (found("a"), found("b")) == ([5], [2])
    table.delete(pa.array(["a", "b", "n"]))
    assert (found("a"), found("b"), found("n")) == ([], [], [])
    table.put(rows(table, {"id": "b", "code": "b", "cap": 6}), fresh=True)
    assert found("b") == [6]
    change = table.change()
    assert change.upsert is not None
    assert change.upsert["id"].to_pylist() == ["b"], "the committed table has the id"
    table.put(rows(table, *({"id": f"m{number}", "code": f"m{number}", "cap": number} for number in range(2_000))))
    assert (found("a"), found("b"), found("m7"), found("c")) == ([], [6], [7], [None])
    table.delete(pa.array(["m7", "c"]))
    assert (found("m7"), found("c"), found("m8")) == ([], [], [8])


@pytest.mark.parametrize("most", [0, 100])
def test_several_rows_are_found_by_id_through_pending_writes(graph, tune, most):
    tune(in_list_max=most)
    below = WriteOverlay(graph.snapshot())
    pending = below.table(SHELF)
    pending.put(rows(pending, {"id": "a", "code": "a", "cap": 5}, {"id": "p", "code": "p", "cap": 6}))
    pending.delete(pa.array(["c"]))
    table = WriteOverlay(graph.snapshot(), below).table(SHELF)
    wanted = pa.array(["a", "b", "c", "n", "p", "none"])

    def found() -> dict[str, int | None]:
        return {row["id"]: row["cap"] for row in table.with_ids(wanted, ["id", "cap"]).to_pylist()}

    assert found() == {"a": 5, "b": 2, "p": 6}
    table.put(rows(table, {"id": "b", "code": "b", "cap": 7}, {"id": "n", "code": "n", "cap": 8}))
    table.delete(pa.array(["p"]))
    assert found() == {"a": 5, "b": 7, "n": 8}
    assert table.with_ids(pa.array(["b"]), ["cap"]).to_pylist() == [{"cap": 7}]
