"""Writes that are published together: each has a commit of its own, as if it had been published alone."""

from __future__ import annotations

import random
import threading
from datetime import timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.cancellation import cancelled_by
from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.errors import Cancelled, OmniGraphError, OutcomeUnknown, StorageError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.lance.version_parts import VersionPart
from omnigraph.versioning.upkeep import maintenance
from omnigraph.versioning.write import group_commit, transaction
from support.groups import grouped
from support.store import repository_of

SCHEMA = """
node Item { name: String @key n: I64? tag: String? @unique note: Blob? }
edge Link: Item -> Item { w: I64? }
"""
ADD = "query add($name: String, $n: I64) { insert Item { name: $name, n: $n } }"
BUMP = "query bump($name: String) { update Item set { n: n + 1 } where name = $name }"
COUNT = "query c() { match { $i: Item } return { count($i) as n, sum(n) as s } }"


def new_graph(path, items: int = 3) -> og.Graph:
    graph = og.init(path, SCHEMA, sync=False)
    graph.load([{"type": "Item", "data": {"name": f"i{n}", "n": n}} for n in range(items)], mode="append")
    return graph


@pytest.fixture
def graph(tmp_path) -> og.Graph:
    return new_graph(tmp_path / "g.omni")


def adds(graph: og.Graph, *names: str) -> list[Any]:
    return [partial(graph.mutate, ADD, {"name": name, "n": 1}) for name in names]


def parts_of(graph: og.Graph, commit_id: str) -> dict[str, VersionPart]:
    found = {key: table.pin.part for key, table in graph.snapshot(at=commit_id).tables.items()}
    return {key: part for key, part in found.items() if part is not None}


def items(graph: og.Graph, at: str | None = None, branch: str | None = None) -> list[str]:
    return sorted(graph.to_arrow("Item", at=at, branch=branch)["name"].to_pylist())


# -- one commit per request --------------------------------------------------------------------------


def test_every_request_has_its_own_commit(graph):
    before = graph.head()
    done = grouped(graph, adds(graph, "a", "b", "c"))
    commits = [graph.commit(one.commit_id) for one in done]
    assert [commit.parent_id for commit in commits] == [before.commit_id, commits[0].id, commits[1].id]
    versions = [commit.manifest_version for commit in commits]
    assert [second - first for first, second in pairwise(versions)] == [1, 1]
    assert [commit.changed for commit in commits] == [("node:Item",)] * 3
    assert [sorted(parts_of(graph, commit.id)) for commit in commits] == [["node:Item"], ["node:Item"], []]
    assert graph.head().commit_id == commits[2].id


def test_a_group_makes_one_version_of_each_table(graph):
    before = graph.snapshot().tables["node:Item"].pin
    grouped(graph, adds(graph, *"abcdefgh"))
    after = graph.snapshot().tables["node:Item"].pin
    assert after.lance_version == before.lance_version + 1
    assert after.table_version == before.table_version + 8
    assert len(graph.snapshot().table("node:Item").dataset.get_fragments()) == 2


def test_each_commit_shows_the_requests_up_to_it(graph):
    done = grouped(graph, adds(graph, "a", "b", "c"))
    assert [items(graph, at=one.commit_id) for one in done] == [
        ["a", "i0", "i1", "i2"],
        ["a", "b", "i0", "i1", "i2"],
        ["a", "b", "c", "i0", "i1", "i2"],
    ]
    rows = [graph.snapshot(at=one.commit_id).tables["node:Item"].pin.row_count for one in done]
    assert rows == [4, 5, 6]


def test_a_request_sees_those_before_it(graph):
    link = 'query l() { insert Link { from: "a", to: "b", w: 1 } }'
    remove = "query d() { delete Item where n = 1 }"
    count = 'query n() { insert Item { name: "z" } as $z return { $z.name } }'
    a, b, linked, removed, last = grouped(
        graph,
        [
            partial(graph.mutate, 'query a() { insert Item { name: "a", n: 7 } }'),
            partial(graph.mutate, 'query b() { insert Item { name: "b", n: 8 } }'),
            partial(graph.mutate, link),
            partial(graph.mutate, remove),
            partial(graph.mutate, count),
        ],
    )
    assert (linked.affected_edges, removed.affected_nodes) == (1, 1)
    assert last.rows.to_rows() == [{"z.name": "z"}]
    assert sorted(parts_of(graph, a.commit_id)) == ["node:Item"]
    assert graph.commit(removed.commit_id).changed == ("node:Item",)
    assert graph.to_arrow("Link", at=b.commit_id, kind="edge").num_rows == 0
    assert graph.to_arrow("Link", at=linked.commit_id, kind="edge").num_rows == 1
    assert items(graph) == ["a", "b", "i0", "i2", "z"]


def test_a_row_that_is_changed_twice_begins_the_next_group(graph):
    done = grouped(graph, [partial(graph.mutate, BUMP, {"name": "i1"}) for _ in range(3)] + adds(graph, "a", "b"))
    assert [one.affected_nodes for one in done] == [1] * 5
    assert [graph.get("Item", "i1", at=one.commit_id)["n"] for one in done] == [2, 3, 4, 4, 4]
    assert [bool(parts_of(graph, one.commit_id)) for one in done] == [False, False, True, True, False]


def test_a_request_without_effect_makes_no_commit(graph):
    none = 'query n() { update Item set { n: 1 } where name = "missing" }'
    undone = 'query u() { atomic { insert Item { name: "x" } delete Item where name = "x" } }'
    a, nothing, undone_, b = grouped(
        graph, [*adds(graph, "a"), partial(graph.mutate, none), partial(graph.mutate, undone), *adds(graph, "b")]
    )
    assert (nothing.commit_id, undone_.commit_id) == (None, None)
    assert graph.commit(b.commit_id).parent_id == a.commit_id
    assert items(graph) == ["a", "b", "i0", "i1", "i2"]


def test_message_actor_and_idempotency_key_belong_to_the_request(graph):
    calls = [
        partial(graph.mutate, ADD, {"name": name, "n": 1}, message=f"add {name}", actor=name, idempotency_key=name)
        for name in ("ann", "bob")
    ]
    ann, bob = grouped(graph, calls)
    commits = [graph.commit(one.commit_id) for one in (ann, bob)]
    assert [(commit.message, commit.actor) for commit in commits] == [("add ann", "ann"), ("add bob", "bob")]
    assert calls[1]().commit_id == bob.commit_id
    assert len(graph.commits()) == 4


def test_two_requests_with_one_key_in_a_group_are_made_once(graph):
    call = partial(graph.mutate, ADD, {"name": "a", "n": 1}, idempotency_key="k")
    first, other, second = grouped(graph, [call, *adds(graph, "b"), call])
    assert first.commit_id == second.commit_id != other.commit_id
    assert items(graph) == ["a", "b", "i0", "i1", "i2"]


# -- failures ----------------------------------------------------------------------------------------


def test_an_invalid_request_fails_alone(graph):
    missing = 'query l() { insert Link { from: "a", to: "nowhere" } }'
    a, conflict, dangling, b = grouped(
        graph, [*adds(graph, "a"), *adds(graph, "a"), partial(graph.mutate, missing), *adds(graph, "b")]
    )
    assert (conflict.code, dangling.code) == ("key_conflict", "endpoint_violation")
    assert graph.commit(b.commit_id).parent_id == a.commit_id
    assert parts_of(graph, a.commit_id)
    assert items(graph) == ["a", "b", "i0", "i1", "i2"]


def test_an_invalid_first_request_fails_alone(graph):
    conflict, a, b = grouped(graph, adds(graph, "i1", "a", "b"))
    assert conflict.code == "key_conflict"
    assert graph.commit(b.commit_id).parent_id == a.commit_id


def test_a_rule_is_checked_against_the_requests_before(graph):
    tag = 'query t($name: String) { insert Item { name: $name, tag: "red" } }'
    a, second = grouped(graph, [partial(graph.mutate, tag, {"name": name}) for name in ("a", "b")])
    assert a.commit_id is not None
    assert second.code == "unique_violation"
    free = 'query f() { update Item set { tag: null } where tag = "red" }'
    freed, taken = grouped(graph, [partial(graph.mutate, free), partial(graph.mutate, tag, {"name": "c"})])
    assert freed.affected_nodes == 1
    assert taken.commit_id == graph.head().commit_id


def test_if_commit_refers_to_the_last_request(graph):
    before = graph.head().commit_id
    a, refused, b = grouped(
        graph,
        [
            *adds(graph, "a"),
            partial(graph.mutate, ADD, {"name": "x", "n": 1}, if_commit=before),
            *adds(graph, "b"),
        ],
    )
    assert refused.code == "precondition_failed"
    assert refused.actual == a.commit_id
    assert items(graph) == ["a", "b", "i0", "i1", "i2"]
    held = grouped(graph, [partial(graph.mutate, ADD, {"name": "x", "n": 1}, if_commit=b.commit_id), *adds(graph, "c")])
    assert [graph.commit(one.commit_id).parent_id for one in held] == [b.commit_id, held[0].commit_id]


def test_a_cancelled_request_leaves_the_others(graph):
    class Flag:
        cancelled = False

    flag = Flag()

    def cancel_and_add() -> Any:
        return graph.mutate(ADD, {"name": "first", "n": 1})

    def cancelled() -> Any:
        with cancelled_by(flag):
            return graph.mutate(ADD, {"name": "x", "n": 1})

    real = group_commit.GroupTransaction.admit

    def admit(self, attempt):
        flag.cancelled = True
        return real(self, attempt)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(group_commit.GroupTransaction, "admit", admit)
        first, stopped, last = grouped(graph, [cancel_and_add, cancelled, *adds(graph, "last")])
    assert isinstance(stopped, Cancelled)
    assert graph.commit(last.commit_id).parent_id == first.commit_id
    assert "x" not in items(graph)


def test_requests_of_a_group_that_fails_run_one_by_one(graph, monkeypatch):
    def fail(_):
        raise StorageError("the group fails")

    monkeypatch.setattr(group_commit.GroupTransaction, "commit", fail)
    done = grouped(graph, adds(graph, "a", "b", "c"))
    assert [parts_of(graph, one.commit_id) for one in done] == [{}, {}, {}]
    assert items(graph) == ["a", "b", "c", "i0", "i1", "i2"]


def test_an_unknown_outcome_is_unknown_to_all(graph, monkeypatch):
    def lose(_):
        raise OutcomeUnknown("the reply was lost", commit_id="last")

    monkeypatch.setattr(group_commit.GroupTransaction, "commit", lose)
    done = grouped(graph, adds(graph, "a", "b", "c"))
    assert [type(one) for one in done] == [OutcomeUnknown] * 3
    assert len({id(one) for one in done}) == 3


def test_an_interrupt_of_the_leader_after_the_publish_repeats_nothing(tmp_path):
    graph = og.init(tmp_path / "g.omni", "node Event { n: I64 }", sync=False)
    calls = [partial(graph.mutate, "query a($n: I64) { insert Event { n: $n } }", {"n": n}) for n in range(3)]

    def interrupt() -> None:
        raise KeyboardInterrupt

    with arm("group.published", interrupt):
        first, *others = grouped(graph, calls)
    assert isinstance(first, KeyboardInterrupt)
    assert [one.affected_nodes for one in others] == [1, 1]
    assert sorted(graph.to_arrow("Event")["n"].to_pylist()) == [0, 1, 2]


def test_an_interrupt_of_the_leader_during_the_publish_leaves_the_outcome_unknown(tmp_path):
    graph = og.init(tmp_path / "g.omni", "node Event { n: I64 }", sync=False)
    calls = [partial(graph.mutate, "query a($n: I64) { insert Event { n: $n } }", {"n": n}) for n in range(3)]

    def interrupt() -> None:
        raise KeyboardInterrupt

    with arm("publish.after_commit", interrupt):
        first, *others = grouped(graph, calls)
    assert isinstance(first, KeyboardInterrupt)
    assert [type(one) for one in others] == [OutcomeUnknown] * 2
    fresh = og.open(graph.uri)
    assert sorted(fresh.to_arrow("Event")["n"].to_pylist()) == [0, 1, 2]
    assert [one.commit_id for one in others] == [commit.id for commit in fresh.commits()[1::-1]]


def test_an_interrupt_of_the_leader_before_the_publish_leaves_the_others(graph):
    interrupted: list[bool] = []

    def interrupt() -> None:
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt

    with arm("group.prepared", interrupt):
        first, *others = grouped(graph, adds(graph, "a", "b", "c"))
    assert isinstance(first, KeyboardInterrupt)
    assert [one.affected_nodes for one in others] == [1, 1]
    assert items(graph) == ["b", "c", "i0", "i1", "i2"]


def test_an_unexpected_error_of_one_request_is_its_own(graph, monkeypatch):
    real = transaction.stage

    def stage(table, change, properties):
        if any("poison" in rows["id"].to_pylist() for rows in (change.append, change.upsert) if rows is not None):
            raise ValueError("poison")
        return real(table, change, properties)

    monkeypatch.setattr(transaction, "stage", stage)
    a, b, poison, c = grouped(graph, adds(graph, "a", "b", "poison", "c"))
    assert isinstance(poison, ValueError)
    assert [one.affected_nodes for one in (a, b, c)] == [1, 1, 1]
    assert items(graph) == ["a", "b", "c", "i0", "i1", "i2"]


def test_an_exception_of_a_member_is_its_own(graph, monkeypatch):
    class Stopped(BaseException):
        pass

    real = WriteOverlay.delta

    def delta(self, **options):
        if "x" in self.table("node:Item").rows["name"].to_pylist():
            raise Stopped
        return real(self, **options)

    monkeypatch.setattr(WriteOverlay, "delta", delta)
    a, stopped, b = grouped(graph, adds(graph, "a", "x", "b"))
    assert isinstance(stopped, Stopped)
    assert [one.affected_nodes for one in (a, b)] == [1, 1]


def test_commit_ids_of_a_group_sort_in_order(graph):
    done = grouped(graph, adds(graph, *(f"n{number}" for number in range(30))))
    ids = [one.commit_id for one in done]
    assert ids == sorted(ids)


def test_a_request_without_effect_names_the_commit_before_it(graph):
    delete = 'query d() { delete Item where name = "i0" }'
    first, second, third = grouped(
        graph, [partial(graph.mutate, delete), partial(graph.mutate, delete), *adds(graph, "a")]
    )
    assert second.commit_id is None
    assert second.rows.commit_id == first.commit_id == graph.commit(third.commit_id).parent_id


def test_a_group_starts_over_if_the_branch_moves(graph, tmp_path, monkeypatch):
    other = og.open(tmp_path / "g.omni", sync=False)
    real = group_commit.GroupTransaction.commit
    moved: list[str] = []

    def commit(self):
        if not moved:
            moved.append(other.mutate(ADD, {"name": "b", "n": 5}).commit_id)
        return real(self)

    monkeypatch.setattr(group_commit.GroupTransaction, "commit", commit)
    a, conflict, c = grouped(graph, adds(graph, "a", "b", "c"))
    assert conflict.code == "key_conflict"
    assert graph.commit(a.commit_id).parent_id == moved[0]
    assert graph.commit(c.commit_id).parent_id == a.commit_id
    assert items(graph) == ["a", "b", "c", "i0", "i1", "i2"]


def test_wrong_row_counts_are_never_published(graph, monkeypatch):
    monkeypatch.setattr(WriteOverlay, "added_rows", lambda _: {"node:Item": 2})
    done = grouped(graph, adds(graph, "a", "b", "c"))
    assert [parts_of(graph, one.commit_id) for one in done] == [{}, {}, {}]
    assert graph.snapshot().tables["node:Item"].pin.row_count == 6


def test_large_writes_are_not_combined(graph, monkeypatch):
    monkeypatch.setattr(group_commit, "IDS_MAX", 2)
    every = "query e() { update Item set { n: 0 } where n >= 0 }"
    a, all_, b = grouped(graph, [*adds(graph, "a"), partial(graph.mutate, every), *adds(graph, "b")])
    assert all_.affected_nodes == 4
    assert [parts_of(graph, one.commit_id) for one in (a, all_, b)] == [{}, {}, {}]


def test_large_values_are_not_combined(graph, monkeypatch):
    monkeypatch.setattr(group_commit, "BYTES_MAX", 1_000)
    done = grouped(graph, [partial(graph.mutate, ADD, {"name": letter * 600, "n": 1}) for letter in "abc"])
    assert [parts_of(graph, one.commit_id) for one in done] == [{}, {}, {}]


# -- parts -------------------------------------------------------------------------------------------


def test_a_branch_at_an_intermediate_commit_can_be_written(graph):
    a, b, c = grouped(graph, adds(graph, "a", "b", "c"))
    graph.branch_create("side", at=a.commit_id)
    side = graph.on("side")
    assert items(side) == ["a", "i0", "i1", "i2"]
    side.mutate(ADD, {"name": "s", "n": 1})
    side.mutate(BUMP, {"name": "a"})
    assert items(side) == ["a", "i0", "i1", "i2", "s"]
    merged = graph.merge("side")
    assert merged.commit_id is not None
    assert items(graph) == ["a", "b", "c", "i0", "i1", "i2", "s"]
    assert graph.get("Item", "a")["n"] == 2
    assert graph.verify(deep=True) == []
    assert b.commit_id != c.commit_id


def test_a_branch_at_an_intermediate_commit_is_optimized_migrated_and_grouped(graph):
    done = grouped(graph, adds(graph, "a", "b", "c"))
    for number, one in enumerate(done[:2]):
        name = f"side{number}"
        graph.branch_create(name, at=one.commit_id)
        side = graph.on(name)
        if number:
            side.apply_schema(SCHEMA.replace("n: I64?", "n: I64? m: I64?"))
        else:
            side.optimize()
        grouped(side, adds(side, "x", "y"), name)
        assert items(side) == [*"ab"[: number + 1], "i0", "i1", "i2", "x", "y"]
    assert graph.verify(deep=True) == []


def test_a_tag_of_an_intermediate_commit_survives_a_cleanup(graph):
    first = graph.mutate(BUMP, {"name": "i1"}).commit_id
    graph.mutate(BUMP, {"name": "i1"})
    a, _, _ = grouped(graph, adds(graph, "a", "b", "c"))
    graph.tag_create("kept", at=a.commit_id)
    for number in range(3):
        graph.mutate(ADD, {"name": f"n{number}", "n": 1})
    repository = repository_of(graph)
    maintenance.cleanup(repository, keep=1, confirm=True, grace=timedelta(hours=-1))
    fresh = og.open(graph.uri)
    assert items(fresh, at="kept") == ["a", "i0", "i1", "i2"]
    assert fresh.verify(deep=True) == []
    with pytest.raises(OmniGraphError) as caught:
        items(fresh, at=first)
    assert caught.value.code == "version_reclaimed"


def test_commits_of_a_group_are_retained_with_their_base(graph):
    for number in range(3):
        graph.mutate(ADD, {"name": f"n{number}", "n": 1})
    done = grouped(graph, adds(graph, "a", "b", "c"))
    maintenance.cleanup(repository_of(graph), keep=2, confirm=True, grace=timedelta(hours=-1))
    fresh = og.open(graph.uri)
    assert items(fresh, at=done[1].commit_id) == ["a", "b", "i0", "i1", "i2", "n0", "n1", "n2"]
    assert [change.id for change in fresh.diff(done[1].commit_id, done[2].commit_id)] == ["c"]


def test_a_part_is_written_again_after_a_cleanup(graph):
    a, b, _ = grouped(graph, adds(graph, "a", "b", "c"))
    graph.tag_create("kept", at=a.commit_id)
    assert items(graph, at=a.commit_id) == ["a", "i0", "i1", "i2"]
    maintenance.cleanup(repository_of(graph), keep=10, confirm=True, grace=timedelta(hours=-1))
    assert items(graph, at=a.commit_id) == ["a", "i0", "i1", "i2"]
    assert items(og.open(graph.uri), at=b.commit_id) == ["a", "b", "i0", "i1", "i2"]


def test_an_open_part_is_written_again_after_the_cleanup_of_another_process(graph):
    a, _, _ = grouped(graph, adds(graph, "a", "b", "c"))
    graph.branch_create("side", at=a.commit_id)
    side = graph.on("side")
    assert items(side) == ["a", "i0", "i1", "i2"]
    other = repository_of(og.open(graph.uri))
    folder = Path(graph.uri) / side.snapshot().tables["node:Item"].folder
    assert list((folder / "_versions").glob("d*"))
    maintenance.cleanup(other, keep=10, confirm=True, grace=timedelta(hours=-1))
    assert not list((folder / "_versions").glob("d*"))
    assert items(side) == ["a", "i0", "i1", "i2"]
    maintenance.cleanup(other, keep=10, confirm=True, grace=timedelta(hours=-1))
    side.mutate(ADD, {"name": "s", "n": 1})
    assert items(side) == ["a", "i0", "i1", "i2", "s"]


def test_a_read_only_graph_keeps_few_parts_in_memory(graph):
    done = grouped(graph, adds(graph, *"abcdefgh"))
    reader = og.open(graph.uri, read_only=True)
    for one in done:
        assert len(items(reader, at=one.commit_id)) >= 4
    assert len(repository_of(reader).tables._parts) == 2
    assert reader.get("Item", "a", at=done[0].commit_id) is not None
    assert reader.get("Item", "b", at=done[0].commit_id) is None


def test_a_read_only_graph_reads_parts_and_writes_nothing(graph, tmp_path):
    graph.mutate('query n() { update Item set { note: "base64:aGVsbG8=" } where name = "i0" }')
    done = grouped(
        graph,
        [*adds(graph, "a"), partial(graph.mutate, 'query d() { delete Item where name = "i1" }'), *adds(graph, "b")],
    )
    files = sorted(path for path in (tmp_path / "g.omni").rglob("*") if path.is_file())
    reader = og.open(tmp_path / "g.omni", read_only=True)
    assert [items(reader, at=one.commit_id) for one in done] == [
        ["a", "i0", "i1", "i2"],
        ["a", "i0", "i2"],
        ["a", "b", "i0", "i2"],
    ]
    assert bytes(reader.blob("Item", "i0", "note", at=done[0].commit_id).read()) == b"hello"
    assert [change.op for change in reader.diff(done[0].commit_id, done[1].commit_id)] == ["delete"]
    assert sorted(path for path in (tmp_path / "g.omni").rglob("*") if path.is_file()) == files


def test_history_of_a_row_reads_no_part(graph, monkeypatch):
    done = grouped(graph, [*adds(graph, "a"), partial(graph.mutate, BUMP, {"name": "i1"}), *adds(graph, "b", "c")])
    grouped(graph, [*adds(graph, "d"), partial(graph.mutate, BUMP, {"name": "i1"}), *adds(graph, "e")])
    monkeypatch.setattr("omnigraph.storage.lance.table_store.open_part", None)
    history = list(og.open(graph.uri).history("Item", "i1"))
    assert [change.op for change in history] == ["update", "update", "insert"]
    assert history[1].commit.id == done[1].commit_id


# -- the same as separate commits --------------------------------------------------------------------


def random_calls(seed: int) -> list[tuple[str, dict[str, Any]]]:
    chance = random.Random(seed)
    names = [f"i{n}" for n in range(3)] + [f"x{n}" for n in range(12)]
    made: list[tuple[str, dict[str, Any]]] = []
    for _ in range(24):
        name, other, n = chance.choice(names), chance.choice(names), chance.randrange(5)
        made.append(
            chance.choice(
                [
                    (ADD, {"name": name, "n": n}),
                    (ADD, {"name": name, "n": n}),
                    (BUMP, {"name": name}),
                    ("query u($name: String, $n: I64) { upsert Item { name: $name, n: $n } }", {"name": name, "n": n}),
                    ("query w($n: I64) { update Item set { tag: null, n: 9 } where n = $n }", {"n": n}),
                    ('query t($name: String) { update Item set { tag: "t" } where name = $name }', {"name": name}),
                    ("query d($name: String) { delete Item where name = $name }", {"name": name}),
                    (
                        "query l($a: String, $b: String, $n: I64) { insert Link { from: $a, to: $b, w: $n } }",
                        {"a": name, "b": other, "n": n},
                    ),
                    (
                        'query r($n: I64) { atomic { delete Link where w = $n insert Item { name: "r", n: $n } '
                        'delete Item where name = "r" } }',
                        {"n": n},
                    ),
                ]
            )
        )
    return made


def shown(value: Any) -> Any:
    """Return a row without the generated id of an edge."""
    if isinstance(value, dict) and "src" in value:
        return tuple(sorted((key, one) for key, one in value.items() if key != "id"))
    return tuple(sorted(value.items())) if isinstance(value, dict) else value


def described(graph: og.Graph) -> list[Any]:
    """Return what each commit shows: its message, its changes, its rows and what its reversal does."""
    found: list[Any] = []
    commits = list(reversed(graph.commits()))
    for parent, commit in pairwise(commits):
        changes = sorted(
            (change.table_key, change.op, repr(shown(change.before)), repr(shown(change.after)))
            for change in graph.diff(parent.id, commit.id)
        )
        tables = graph.snapshot(at=commit.id).tables
        rows = {key: table.pin.row_count for key, table in tables.items()}
        content = [
            sorted(repr(shown(row)) for row in graph.to_arrow(name, at=commit.id, kind=kind).to_pylist())
            for name, kind in (("Item", "node"), ("Link", "edge"))
        ]
        assert [len(one) for one in content] == [rows["node:Item"], rows["edge:Link"]]
        versions = {key: table.pin.table_version for key, table in tables.items()}
        found.append((commit.message, commit.changed, changes, content, versions, reverted(graph, commit.id)))
    return found


def reverted(graph: og.Graph, commit_id: str) -> Any:
    graph.branch_create("undo")
    side = graph.on("undo")
    try:
        side.revert(commit_id)
        return sorted(
            (change.table_key, change.op, repr(shown(change.before)), repr(shown(change.after)))
            for change in graph.diff("main", "undo")
        )
    except OmniGraphError as error:
        return error.code
    finally:
        graph.branch_delete("undo", force=True)


@pytest.mark.parametrize("seed", range(6))
def test_a_group_equals_separate_commits(tmp_path, seed):
    calls = random_calls(seed)
    one, many = new_graph(tmp_path / "one.omni"), new_graph(tmp_path / "many.omni")

    def outcome(graph: og.Graph, number: int) -> Any:
        text, params = calls[number]
        done = graph.mutate(text, params, message=f"m{number}")
        return done.affected_nodes, done.affected_edges, done.commit_id is not None

    def caught(graph: og.Graph, number: int) -> Any:
        try:
            return outcome(graph, number)
        except OmniGraphError as error:
            return error.code

    separate = [caught(one, number) for number in range(len(calls))]
    together = grouped(many, [partial(caught, many, number) for number in range(len(calls))])
    assert together == separate
    assert any(parts_of(many, commit.id) for commit in many.commits())
    assert described(many) == described(one)
    assert many.verify(deep=True) == []


def test_threads_and_readers_see_only_whole_commits(graph):
    """Each write adds an item and a link; at every commit there are as many of both."""
    text = 'query q($name: String) { insert Item { name: $name, n: 0 } insert Link { from: $name, to: "i0" } }'
    stop, wrong = threading.Event(), []

    def read() -> None:
        reader = og.open(graph.uri)
        while not stop.is_set():
            commit = reader.head().commit_id
            counts = [
                reader.to_arrow(name, at=commit, kind=kind).num_rows
                for name, kind in (("Item", "node"), ("Link", "edge"))
            ]
            if counts[0] != counts[1] + 3:
                wrong.append((commit, counts))

    def add(number: int) -> None:
        for n in range(4):
            graph.mutate(text, {"name": f"{number}-{n}"})

    reader = threading.Thread(target=read)
    writers = [threading.Thread(target=add, args=(number,)) for number in range(12)]
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join(60)
    stop.set()
    reader.join(60)
    assert wrong == []
    for commit in graph.commits():
        rows = {key: table.pin.row_count for key, table in graph.snapshot(at=commit.id).tables.items()}
        assert rows["node:Item"] in (0, rows["edge:Link"] + 3)
