"""`Graph`: signatures, handles, writes, and rows in schema order."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from threading import Thread
from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import (
    BranchNotFound,
    Cancelled,
    CommitNotFound,
    GraphExists,
    GraphNotFound,
    InputError,
    NotFound,
    ParseError,
    QueryTimeout,
    TypeNotFound,
)
from omnigraph.graph import Graph
from support.writes import SHELVES, beside, edge, everything, ids_of, new_graph, node, rows_of, shelf


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SHELVES, shelf("b", cap=1), shelf("a"), beside("a", "b", id_="e"))


POSITIONAL = {
    "load": ["data"],
    "ingest": ["data"],
    "query": ["source", "name", "params"],
    "mutate": ["source", "name", "params"],
    "explain": ["source", "name", "params"],
    "lint": ["source"],
    "branch_create": ["name", "from_branch", "at"],
    "branch_delete": ["name"],
    "branches": [],
    "on": ["branch"],
    "commits": ["branch", "limit"],
    "commit": ["id"],
    "snapshot": ["branch", "at"],
    "entity_at": ["type_name", "id", "at"],
    "plan_schema": ["text"],
    "apply_schema": ["text"],
    "export": ["out"],
    "to_arrow": ["type_name"],
}
BY_NAME = {
    "load": {"mode", "branch", "actor", "message", "rejects"},
    "ingest": {"branch", "from_branch", "mode", "actor", "message", "rejects"},
    "query": {"branch", "at"},
    "mutate": {"branch", "actor", "message", "if_commit", "idempotency_key"},
    "apply_schema": {"allow_data_loss", "if_commit", "idempotency_key"},
    "branch_create": {"actor", "message", "idempotency_key"},
    "branch_delete": {"force", "actor", "message", "if_commit", "idempotency_key"},
    "export": {"types", "branch", "at"},
    "cleanup": {"keep", "older_than", "confirm"},
}


@pytest.mark.parametrize("name", [*POSITIONAL, "cleanup", "ensure_indices", "optimize", "recover", "verify"])
def test_signatures(name):
    parameters = inspect.signature(getattr(Graph, name)).parameters
    kinds: dict[Any, list[str]] = {}
    for parameter in list(parameters.values())[1:]:
        kinds.setdefault(parameter.kind, []).append(parameter.name)
    if name in POSITIONAL:
        assert kinds.get(inspect.Parameter.POSITIONAL_OR_KEYWORD, []) == POSITIONAL[name]
    assert BY_NAME.get(name, set()) <= set(kinds.get(inspect.Parameter.KEYWORD_ONLY, []))


def test_every_public_method_has_docstring_and_annotations():
    for name, method in inspect.getmembers(Graph, inspect.isfunction):
        if not name.startswith("_"):
            assert method.__doc__, name
            signature = inspect.signature(method)
            assert signature.return_annotation is not inspect.Signature.empty, name
            for parameter in list(signature.parameters.values())[1:]:
                assert parameter.annotation is not inspect.Parameter.empty, (name, parameter.name)


# -- opening -----------------------------------------------------------------------------------------


def test_init_from_text_or_file(tmp_path):
    path = tmp_path / "shelves.pg"
    path.write_text(SHELVES)
    graph = og.init(tmp_path / "one", path, sync=False, environ={})
    assert graph.schema == SHELVES
    assert repr(graph) == f"Graph({str(tmp_path / 'one')!r}, branch='main')"
    with pytest.raises(GraphExists):
        og.init(tmp_path / "one", SHELVES, sync=False, environ={})
    with pytest.raises(ParseError):
        og.init(tmp_path / "two", "node", sync=False, environ={})
    assert not (tmp_path / "two").exists()


def test_open_binds_branch_and_actor(graph):
    graph.branch_create("side")
    with og.open(graph.uri, branch="side", actor="act-ana", sync=False, environ={}) as other:
        other.load([shelf("z")], mode="append")
        assert other.branch == "side"
    assert graph.commits("side")[0].actor == "act-ana"
    assert ids_of(graph, "Shelf") == ["a", "b"]
    with pytest.raises(BranchNotFound):
        og.open(graph.uri, branch="gone", sync=False, environ={})
    with pytest.raises(GraphNotFound):
        og.open(graph.uri + "x", sync=False, environ={})


def test_read_only_handle_rejects_writes(graph):
    reader = og.open(graph.uri, read_only=True, sync=False, environ={})
    before = everything(graph)
    for act in (
        lambda: reader.load([shelf("z")], mode="append"),
        lambda: reader.mutate('query q() { insert Shelf { code: "z" } }'),
        lambda: reader.mutate('query q() { delete Shelf where code = "nobody" }'),
        lambda: reader.apply_schema(SHELVES + "node New {}"),
        lambda: reader.branch_create("x"),
        lambda: reader.ingest([shelf("z")], branch="x"),
        lambda: reader.ensure_indices(),
    ):
        with pytest.raises(InputError, match="the graph was opened read-only"):
            act()
    assert everything(graph) == before
    assert ids_of(reader, "Shelf") == ["a", "b"]


def test_on_returns_a_handle_of_another_branch(tmp_path):
    graph = new_graph(tmp_path, SHELVES, shelf("a"), actor="act-ana")
    graph.branch_create("side")
    side = graph.on("side")
    side.mutate('query q() { insert Shelf { code: "z" } }')
    side.apply_schema(SHELVES + "node New { v: I32? }\n")
    side.branch_create("further")
    assert (side.branch, side.actor) == ("side", "act-ana")
    assert ids_of(side, "Shelf") == ["a", "z"]
    assert graph.on("further").schema == side.schema != graph.schema
    assert "New" in side.catalog().nodes
    assert "New" not in graph.catalog().nodes
    assert [commit.kind for commit in side.commits(limit=2)] == ["schema_apply", "mutation"]
    with pytest.raises(BranchNotFound, match="'gone'"):
        graph.on("gone")


def test_handle_can_be_shared_between_threads(tmp_path):
    graph = new_graph(tmp_path)
    failures: list[Exception] = []

    def work(name: str) -> None:
        try:
            for number in range(5):
                graph.mutate("query q($c: String) { insert Shelf { code: $c } }", params={"c": f"{name}{number}"})
        except Exception as error:
            failures.append(error)

    threads = [Thread(target=work, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert ids_of(graph, "Shelf") == sorted(f"{name}{number}" for name in "abc" for number in range(5))


# -- rows --------------------------------------------------------------------------------------------

TYPED = """
node T { z: String @key  m: I32?  a: DateTime?  days: [Date]?  times: [DateTime]?  b: Blob? }
edge L: T -> T { w: I32? }
"""


def test_arrow_columns_have_schema_order(tmp_path):
    graph = new_graph(tmp_path, TYPED, node("T", z="1", m=1), edge("L", "1", "1"))
    assert graph.to_arrow("T").column_names == ["id", "a", "b", "days", "m", "times", "z"]
    assert graph.to_arrow("L").column_names == ["id", "src", "dst", "w"]
    old = graph.commits()[0].id
    graph.apply_schema(
        TYPED.replace("m: I32?", 'zz: I32? @rename_from("m")  aa: I32?').replace("w: I32?", "w: I32?  c: I32?")
    )
    assert graph.to_arrow("T").column_names == ["id", "a", "aa", "b", "days", "times", "z", "zz"]
    assert graph.to_arrow("L").column_names == ["id", "src", "dst", "c", "w"]
    assert list(rows_of(graph, "T")["1"]) == ["a", "aa", "b", "days", "times", "z", "zz"]
    assert list(graph.entity_at("T", "1", None)) == ["id", "a", "aa", "b", "days", "times", "z", "zz"]
    assert graph.to_arrow("T", at=old).column_names == ["id", "a", "b", "days", "m", "times", "z"]
    assert graph.to_arrow("T", columns=["zz", "id"]).to_pylist() == [{"zz": 1, "id": "1"}]
    with pytest.raises(InputError, match="type 'T' has no column 'zzz'") as caught:
        graph.to_arrow("T", columns=["zzz"])
    assert caught.value.hint == "did you mean 'zz'?"
    with pytest.raises(TypeNotFound, match="type 'Tt' does not exist"):
        graph.to_arrow("Tt")


def test_batches_have_the_rows_and_columns_of_the_arrow_table(tmp_path):
    rows = [node("T", z=str(at), m=at, b="base64:AAEC") for at in range(50)]
    graph = new_graph(tmp_path, TYPED, *rows, edge("L", "1", "2", w=3))
    assert graph.to_batches("T").read_all().equals(graph.to_arrow("T"))
    assert graph.to_batches("L").read_all().equals(graph.to_arrow("L"))
    reader = graph.to_batches("T", columns=["m", "id"], batch_rows=7)
    assert reader.schema.names == ["m", "id"]
    batches = list(reader)
    assert max(batch.num_rows for batch in batches) == 7
    assert sorted(value for batch in batches for value in batch["m"].to_pylist()) == list(range(50))
    old = graph.commits()[0].id
    graph.mutate("delete T where m >= 0")
    assert graph.to_batches("T").read_all().num_rows == 0
    assert graph.to_batches("T", at=old).read_all().num_rows == 50
    with pytest.raises(InputError, match="has no column 'zzz'"):
        graph.to_batches("T", columns=["zzz"])
    with pytest.raises(InputError, match="batch_rows must be a positive integer"):
        graph.to_batches("T", batch_rows=0)


def test_reader_of_batches_stops(tmp_path):
    graph = new_graph(tmp_path, TYPED, *(node("T", z=str(at)) for at in range(50)))
    cancel = og.Cancellation()
    reader = graph.to_batches("T", batch_rows=10, cancel=cancel)
    assert reader.read_next_batch().num_rows == 10
    cancel.cancel()
    with pytest.raises(Cancelled):
        reader.read_next_batch()
    with pytest.raises(QueryTimeout):
        graph.to_batches("T", timeout=0)


def test_kind_selects_one_of_two_types_with_a_name(tmp_path):
    schema = "node Tie { v: I32?  b: Blob? }\nedge Tie: Tie -> Tie { b: Blob? }\nnode Other { v: I32? }\n"
    rows = [node("Tie", id_="n", b="base64:AA=="), edge("Tie", "n", "n", id_="e", b="base64:AAE=")]
    graph = new_graph(tmp_path, schema, *rows)
    assert graph.get("Tie", "n")["id"] == graph.get("Tie", "n", kind="node")["id"] == "n"
    assert graph.get("Tie", "e", kind="edge")["src"] == "n"
    assert graph.get("Tie", "e") is None
    assert (graph.blob("Tie", "n", "b").size, graph.blob("Tie", "e", "b", kind="edge").size) == (1, 2)
    assert graph.to_arrow("Tie", kind="edge")["id"].to_pylist() == ["e"]
    assert graph.to_batches("Tie", kind="edge").read_all()["id"].to_pylist() == ["e"]
    with pytest.raises(TypeNotFound, match="edge type 'Other' does not exist"):
        graph.get("Other", "n", kind="edge")
    with pytest.raises(InputError, match="there is no kind 'both'"):
        graph.get("Tie", "n", kind="both")


def test_name_of_node_and_edge_type_means_the_node_type(tmp_path):
    graph = new_graph(
        tmp_path, "node Tie { v: I32? }\nedge Tie: Tie -> Tie\n", node("Tie", id_="n"), edge("Tie", "n", "n", id_="e")
    )
    assert graph.to_arrow("Tie")["id"].to_pylist() == ["n"]


def test_entity_at_returns_past_states(tmp_path):
    graph = new_graph(
        tmp_path, TYPED, node("T", z="1", a="2024-01-02T03:04:05.678Z", days=[1], times=[7], b="base64:AA==")
    )
    first = graph.commits()[0]
    graph.mutate('query q() { update T set { m: 2 } where z = "1" }')
    second = graph.commits()[0]
    graph.mutate('query q() { delete T where z = "1" }')
    moment = datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    was = {
        "id": "1", "a": moment, "b": b"\x00", "days": [date(1970, 1, 2)], "m": None,
        "times": [datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=7)], "z": "1",
    }  # fmt: skip
    assert graph.entity_at("T", "1", first.id) == was
    assert graph.entity_at("T", "1", second.manifest_version) == {**was, "m": 2}
    assert graph.entity_at("T", "1", None) is None
    assert graph.entity_at("T", "2", first.id) is None
    with pytest.raises(CommitNotFound):
        graph.entity_at("T", "1", "nothing")


POINTS: dict[str, Callable[[Graph, Any], Any]] = {
    "query": lambda graph, at: graph.query("query q() { match { $s: Shelf } return { $s.code } }", at=at),
    "snapshot": lambda graph, at: graph.snapshot(at=at),
    "diff from": lambda graph, at: list(graph.diff(at)),
    "diff to": lambda graph, at: list(graph.diff("main", at)),
    "export": lambda graph, at: list(graph.export(at=at)),
    "entity_at": lambda graph, at: graph.entity_at("Shelf", "a", at),
    "history": lambda graph, at: list(graph.history("Shelf", "a", at=at)),
    "blame": lambda graph, at: graph.blame("Shelf", "a", at=at),
    "branch_create": lambda graph, at: graph.branch_create("new", at=at),
    "tag_create": lambda graph, at: graph.tag_create("t", at),
    "to_arrow": lambda graph, at: graph.to_arrow("Shelf", at=at),
    "catalog": lambda graph, at: graph.catalog(at=at),
}


@pytest.mark.parametrize("read", POINTS.values(), ids=POINTS)
def test_unknown_point_is_not_found(graph, read):
    newest = graph.snapshot().version
    for at, message in (
        (newest + 92, f"branch 'main' has no version {newest + 92}; its versions are 1 to {newest}"),
        (0, f"branch 'main' has no version 0; its versions are 1 to {newest}"),
        (
            datetime(1999, 1, 1, tzinfo=UTC),
            "branch 'main' has no commit as old as 1999-01-01T00:00:00+00:00; its first",
        ),
    ):
        with pytest.raises(NotFound) as caught:
            read(graph, at)
        assert caught.value.code == "not_found"
        assert caught.value.message.startswith(message)
    with pytest.raises(CommitNotFound, match="no branch, tag or commit '01ARZ3NDEKTSV4RRFFQ69G5FAV'") as unknown:
        read(graph, "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    assert str(unknown.value.hint).startswith("a point is a branch, a tag, a commit id")


def test_time_after_the_head_means_the_head(graph):
    assert graph.snapshot(at=datetime.now(UTC) + timedelta(days=900)).commit_id == graph.snapshot().commit_id


def test_commits_list_all_writes(graph):
    graph.load([shelf("c")], mode="append", message="one")
    graph.mutate('query q() { insert Shelf { code: "d" } }', message="two")
    graph.apply_schema(SHELVES + "node New {}\n", message="three")
    commits = graph.commits()
    assert [(commit.kind, commit.message) for commit in commits] == [
        ("schema_apply", "three"),
        ("mutation", "two"),
        ("load", "one"),
        ("load", None),
        ("init", None),
    ]
    assert [commit.parent_id for commit in commits] == [*(commit.id for commit in commits[1:]), None]
    assert graph.commit(commits[1].id) == commits[1]
    assert graph.commits(limit=2) == commits[:2]
    for commit in commits:
        assert graph.snapshot(at=commit.id).commit_id == commit.id
    sizes = [graph.snapshot(at=commit.id).tables["node:Shelf"].pin.row_count for commit in commits]
    assert sizes == [4, 4, 3, 2, 0]
    with pytest.raises(CommitNotFound):
        graph.commit("nothing")


def test_commits_of_deleted_branches_stay_readable(graph):
    graph.ingest([shelf("z")], branch="side")
    commit = graph.commits("side")[0]
    graph.branch_delete("side", force=True)
    assert graph.branches() == ["main"]
    assert ids_of(graph, "Shelf", at=commit.id) == ["a", "b", "z"]
    with pytest.raises(BranchNotFound):
        graph.load([shelf("y")], mode="append", branch="side")


def test_history_omits_a_value_that_a_merge_replaced(tmp_path):
    graph = og.init(tmp_path / "g", "node P { k: String @key  v: I32 }", sync=False)
    graph.mutate('insert P { k: "a", v: 1 }')
    graph.branch_create("side")
    graph.on("side").mutate('update P set { v: 2 } where k = "a"')
    graph.mutate('update P set { v: 3 } where k = "a"')
    merge = graph.merge("side", resolve="theirs")
    assert [change.after["v"] for change in graph.history("P", "a")] == [2, 1]
    (change,) = graph.commit_changes(merge.commit_id)
    assert (change.before["v"], change.after["v"]) == (3, 2)


def test_id_is_str_or_int(tmp_path):
    graph = og.init(tmp_path / "typed", "node P { k: I64 @key }", environ={}, sync=False)
    with pytest.raises(og.errors.InputError, match="an id is a str or an int") as caught:
        graph.entity_at("P", 5.0, None)
    assert caught.value.hint == "write '5.0'"
