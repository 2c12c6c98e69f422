"""Idempotency keys of every write: repetitions, races, lost answers, and preconditions."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from omnigraph.errors import InputError, KeyReused, OmniGraphError, PreconditionFailed, StorageError
from omnigraph.graph import Graph
from omnigraph.storage.failpoints import arm
from omnigraph.storage.manifest.manifest_table import ManifestTable
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.model.manifest_rows import idempotency_to_row
from omnigraph.versioning.write.idempotency import hash_request
from support.keyed_writes import ON_BRANCH, WIDER, WRITES, new_graph, open_graph, outcome, state_of
from support.store import repository_of


@pytest.fixture(scope="module")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(new_graph(tmp_path_factory.mktemp("seeded") / "g").uri)


@pytest.fixture
def graph(seeded: Path, tmp_path: Path) -> Graph:
    return open_graph(shutil.copytree(seeded, tmp_path / "g"))


@pytest.mark.parametrize("name", WRITES)
def test_a_repeated_write_returns_the_first_result_and_changes_nothing(graph, name):
    write = WRITES[name]
    first = write(graph, "k")
    after = state_of(graph)
    assert outcome(write(graph, "k")) == outcome(first)
    assert outcome(write(open_graph(graph.uri), "k")) == outcome(first)
    assert state_of(graph) == after
    assert graph.verify() == []


@pytest.mark.parametrize("name", WRITES)
def test_a_key_belongs_to_one_request(graph, name):
    WRITES[name](graph, "k")
    after = state_of(graph)
    with pytest.raises(KeyReused):
        graph.branch_create("other", idempotency_key="k")
    with pytest.raises(KeyReused):
        graph.mutate('insert Doc { key: "other" }', idempotency_key="k")
    assert state_of(graph) == after


@pytest.mark.parametrize("name", WRITES)
def test_a_write_that_was_overtaken_returns_the_result_of_the_winner(graph, name):
    write, results = WRITES[name], []

    def overtake() -> None:
        if not results:
            results.append(None)
            results[0] = write(open_graph(graph.uri), "k")

    with arm("publish.before_commit", overtake):
        late = write(graph, "k")
    assert outcome(late) == outcome(results[0])
    after = state_of(graph)
    assert outcome(write(graph, "k")) == outcome(late)
    assert state_of(graph) == after
    assert len(graph.branches()) <= 4, "the write took place once"


# Maintenance yields to a concurrent writer of a table and then makes no commit.
@pytest.mark.parametrize("name", [name for name in WRITES if name not in ("ensure_indices", "optimize")])
def test_threads_with_one_key_make_one_change(graph, name):
    write, barrier = WRITES[name], Barrier(3, timeout=60)

    def run(_: int) -> Any:
        mine = open_graph(graph.uri)
        barrier.wait()
        return outcome(write(mine, "k"))

    with ThreadPoolExecutor(3) as threads:
        first, *others = threads.map(run, range(3))
    assert others == [first, first]
    once = state_of(graph)
    assert outcome(write(graph, "k")) == first
    assert state_of(graph) == once


@pytest.fixture
def lost_answer(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[bool]]:
    """The store stops answering after the next publish, until the list is emptied."""
    lost: list[bool] = []
    publish, refresh, read = ManifestTable.publish, ManifestTable.refresh, ManifestTable.read

    def publish_and_lose(*arguments: Any) -> Any:
        publish(*arguments)
        lost.append(True)
        raise StorageError("connection reset")

    def answer(call: Any) -> Any:
        def checked(*arguments: Any) -> Any:
            if lost:
                raise StorageError("connection refused")
            return call(*arguments)

        return checked

    monkeypatch.setattr(ManifestTable, "refresh", answer(refresh))
    monkeypatch.setattr(ManifestTable, "read", answer(read))
    with monkeypatch.context() as patch:
        patch.setattr(ManifestTable, "publish", publish_and_lose)
        yield lost


@pytest.mark.parametrize("name", [name for name in WRITES if name != "ingest"])
def test_a_write_whose_answer_was_lost_is_settled_by_its_key(graph, name, lost_answer, monkeypatch):
    write = WRITES[name]
    before = graph.newest_version
    with pytest.raises(OmniGraphError, match="connection"):
        write(graph, "k")
    monkeypatch.undo()
    lost_answer.clear()
    again = open_graph(graph.uri)
    settled = write(again, "k")
    after = state_of(again)
    assert again.newest_version == before + (2 if name == "merge and delete" else 1)
    assert outcome(write(again, "k")) == outcome(settled)
    assert state_of(again) == after


def test_the_key_of_a_load_covers_its_branch_and_mode(graph):
    doc = [{"type": "Doc", "data": {"key": "new"}}]
    graph.load(doc, mode="append", job_id="night")
    for other in ({"mode": "append", "branch": "side"}, {"mode": "merge"}):
        with pytest.raises(KeyReused):
            graph.load(doc, job_id="night", **other)
    assert graph.load([], mode="append", job_id="night").repeated


def test_a_load_of_an_earlier_release_is_repeated(graph):
    commit = graph.load([{"type": "Doc", "data": {"key": "new"}}], mode="append").commit_id
    row = idempotency_to_row("night", None, commit, None)
    repository_of(graph).publish(lambda _: Change(add=(row,)))
    again = graph.load([{"type": "Doc", "data": {"key": "other"}}], mode="append", job_id="night")
    assert (again.commit_id, again.repeated) == (commit, True)
    with pytest.raises(KeyReused):
        graph.merge("side", idempotency_key="night")


def test_keys_of_actors_are_independent(graph):
    ana, bo = (graph.branch_create(name, actor=name, idempotency_key="k") for name in ("ana", "bo"))
    assert (ana.owner, bo.owner) == ("ana", "bo")
    assert graph.branch_create("ana", actor="ana", idempotency_key="k") == ana


@pytest.mark.parametrize("key", ["", 7, "x" * 1025])
def test_an_invalid_key_is_refused(graph, key):
    before = state_of(graph)
    for write in WRITES.values():
        with pytest.raises(InputError) as caught:
            write(graph, key)
        assert caught.value.code == "bad_idempotency_key"
    assert state_of(graph) == before


def test_a_repeated_deletion_spares_a_new_branch_or_tag_of_that_name(graph):
    graph.branch_delete("side", force=True, idempotency_key="k1")
    graph.tag_delete("old", idempotency_key="k2")
    side, old = graph.branch_create("side"), graph.tag_create("old")
    graph.branch_delete("side", force=True, idempotency_key="k1")
    graph.tag_delete("old", idempotency_key="k2")
    assert graph.snapshot("side").commit_id == side.commit_id
    assert graph.tags() == [old]


def test_a_repeated_merge_deletes_the_branch_that_the_first_call_left(graph):
    with arm("publish.before_commit", _fail_at_second()), pytest.raises(_Crash):
        graph.merge("side", delete_branch=True, idempotency_key="k")
    assert "side" in graph.branches()
    again = graph.merge("side", delete_branch=True, idempotency_key="k")
    assert (again.outcome, again.branch_deleted) == ("merged", True)
    assert again.commit_id == graph.commits()[0].id
    assert "side" not in graph.branches()


class _Crash(BaseException):
    """The end of the process."""


def _fail_at_second() -> Any:
    passes: list[bool] = []

    def fail() -> None:
        passes.append(True)
        if len(passes) == 2:
            raise _Crash

    return fail


def test_a_merge_that_is_up_to_date_deletes_its_branch_once(graph):
    first = graph.merge("idle", delete_branch=True, idempotency_key="k")
    assert (first.outcome, first.commit_id, first.branch_deleted) == ("already_up_to_date", None, True)
    graph.branch_create("idle")
    assert graph.merge("idle", delete_branch=True, idempotency_key="k") == first
    assert "idle" in graph.branches()


def test_a_write_that_changes_nothing_is_evaluated_again(graph):
    assert graph.merge("idle", idempotency_key="k").commit_id is None
    graph.mutate('insert Doc { key: "i" }', branch="idle")
    assert graph.merge("idle", idempotency_key="k").outcome == "merged"
    graph.apply_schema(graph.schema, idempotency_key="k2")
    assert graph.apply_schema(graph.schema, idempotency_key="k2").applied is False


def test_the_hash_of_a_request_ignores_the_order_of_mappings():
    one, other = {"a": 1, "b": [{"c": 2, "d": None}]}, {"b": [{"d": None, "c": 2}], "a": 1}
    assert hash_request("merge", one) == hash_request("merge", other)
    assert hash_request("merge", one) != hash_request("revert", one)
    assert hash_request("merge", {"a": 1}) != hash_request("merge", {"a": 2})


@pytest.mark.parametrize("name", ON_BRANCH)
def test_a_write_on_another_head_is_refused(graph, name):
    old = graph.commits()[1].id
    before = state_of(graph)
    with pytest.raises(PreconditionFailed) as caught:
        WRITES[name](graph, None, if_commit=old)
    assert caught.value.expected == old
    assert state_of(graph) == before


@pytest.mark.parametrize("name", ON_BRANCH)
def test_a_write_on_the_expected_head_is_repeatable(graph, name):
    head = graph.snapshot("side" if name in ("branch_delete", "branch_update") else "main").commit_id
    first = WRITES[name](graph, "k", if_commit=head)
    assert outcome(WRITES[name](open_graph(graph.uri), "k", if_commit=head)) == outcome(first)


def test_a_merge_that_is_up_to_date_checks_the_head(graph):
    with pytest.raises(PreconditionFailed):
        graph.merge("idle", if_commit=graph.commits()[1].id)


def test_results_of_schema_changes_survive_their_cleanup(graph):
    first = WRITES["drop"](graph, "k")
    graph.mutate('insert Doc { key: "later" }')
    graph.cleanup(keep=1, confirm=True)
    assert WRITES["drop"](open_graph(graph.uri), "k") == first
    assert first.losses == ()
    with pytest.raises(KeyReused):
        graph.apply_schema(WIDER, idempotency_key="k")
