"""Workers build the adjacency of a bulk load; its arrays are those of the build in one process."""

from __future__ import annotations

import errno
import fcntl
import json
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.adjacency import adjacency as adjacency_module
from omnigraph.engine.adjacency import parallel_build
from omnigraph.engine.adjacency.csr import pack
from omnigraph.engine.adjacency.parallel_build import divide_pairs
from omnigraph.engine.cache import disk_cache, entry_checks
from omnigraph.engine.cache.build_turn import LOCK
from omnigraph.engine.cache.shared_arrays import SharedArray
from omnigraph.engine.exec.cancellation import Cancellation, OperationWatch
from omnigraph.errors import Cancelled, StorageError
from omnigraph.graph_handle import context_of
from omnigraph.operations.derived import build_after_load, build_derived, reason_of
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.pipeline import adjacency_task
from omnigraph.pipeline.adjacency_task import build_adjacency
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write
from support.writes import edge, new_graph, node, reopened, write_jsonl

SCHEMA = """
node A { name: String @key }
node B { name: String @key }
edge Loop: A -> A { weight: I32? }
edge To: A -> B
edge None: B -> A
"""
Entries = dict[tuple[str, ...], dict[str, Any]]


class Workers(InlineRunner):
    """Reports several workers and runs the tasks in this process. Counts the tasks of each step."""

    def __init__(self, parallelism: int = 4) -> None:
        super().__init__()
        self.parallelism = parallelism
        self.tasks: dict[str, int] = {}

    def run(self, step, task, job, work, **more):
        self.tasks[task.__name__] = self.tasks.get(task.__name__, 0) + len(work)
        return super().run(step, task, job, work, **more)


class Failing(Workers):
    """Fails in one of the tasks."""

    def __init__(self, task: str, error: Exception) -> None:
        super().__init__()
        self._task, self._error = task, error

    def run(self, step, task, job, work, **more):
        done = super().run(step, task, job, work, **more)
        if task.__name__ != self._task:
            yield from done
            return
        yield next(done)
        raise self._error


@pytest.fixture(autouse=True)
def small(tune, monkeypatch):
    """Divide small tables, into blocks of 16 numbers."""
    tune(
        segment_rows_min=1,
        segment_part_rows_min=10,
        adjacency_disk_edges_min=1,
        adjacency_divided_edges_min=1,
        adjacency_sorted_edges=60,
        adjacency_sample_pairs=7,
        batch_values=50,
    )
    monkeypatch.setattr(entry_checks, "BLOCK_BYTES", 64)


@pytest.fixture
def numbered(monkeypatch) -> list[str]:
    """The columns of the ends that this process looked up, without workers."""
    seen: list[str] = []
    number = adjacency_module.number_ends

    def counting(edges: Any, names: tuple[str, ...], *more: Any) -> None:
        seen.extend(names)
        number(edges, names, *more)

    monkeypatch.setattr(adjacency_module, "number_ends", counting)
    return seen


def bulk(graph: Any, root: Path, records: list[dict[str, Any]], files: int = 5) -> LoadResult:
    """Load records from several files, so that they are in several fragments."""
    root.mkdir()
    paths = [str(write_jsonl(root / f"{at}.jsonl", records[at::files])) for at in range(files)]
    source = FileSource(plan_input(paths, {}, 1))
    request = LoadRequest("append", WriteOptions("main"), environ={})
    return load_source(context_of(graph).repository, InlineRunner(), source, request)


def some_records(random: Random, nodes: int, edges: int, start: int = 0) -> list[dict[str, Any]]:
    """Nodes, and edges between them with loops, parallel edges and a node with a fifth of all edges."""
    records = [node(kind, name=f"{start + at}") for kind in ("A", "B") for at in range(nodes)]
    ends = [str(start + random.randrange(nodes)) for _ in range(2 * edges)]
    for at in range(edges):
        src, dst = (str(start) if at % 5 == 0 else ends[2 * at]), ends[2 * at + 1]
        dst = src if at % 7 == 0 else dst
        records.append(edge("Loop", src, dst, id=f"l{start}-{at}", weight=at % 9))
        records.append(edge("To", *(("1", "0") if at % 3 == 0 and not start else (src, dst)), id=f"t{start}-{at}"))
    random.shuffle(records)
    return records


def entries(graph: Any) -> Entries:
    """The arrays of the adjacency on disk, by edge table and kind; every entry matches its checksums."""
    folder = folder_of(graph)
    assert disk_cache.find_damaged(folder) == []
    found: Entries = {}
    for path in folder.glob("*/about.json"):
        entry = json.loads(path.read_text())["entry"]
        if entry["what"][0] == "adjacency":
            files = {name: (path.parent / name).read_bytes() for name in entry["arrays"]}
            facts = {name: (one["type"], one["shape"], one["checksum"]) for name, one in entry["arrays"].items()}
            layouts = {name: entry[name] for name in ("edges", "sources", "targets")}
            found[tuple(entry["what"])] = {"files": files, "facts": facts, **layouts}
    return found


def folder_of(graph: Any) -> Path:
    return Path(graph.uri.removeprefix("file://")) / disk_cache.FOLDER


def built_by_one(graph: Any) -> Entries:
    """The entries that one process builds in place of the present ones."""
    folder = folder_of(graph)
    for what in entries(graph):
        disk_cache.remove(folder, what)
    other = reopened(graph)
    assert build_derived(context_of(other), other.snapshot()) == []
    return entries(other)


def left_behind(graph: Any) -> list[Path]:
    return [path for path in folder_of(graph).iterdir() if path.name.startswith(".making")]


@pytest.mark.parametrize("seed", range(6))
def test_arrays_equal_those_of_one_process(tmp_path, numbered, seed):
    random = Random(seed)
    graph = new_graph(tmp_path / "g", SCHEMA)
    result = bulk(graph, tmp_path / "in", some_records(random, random.randint(3, 200), random.randint(60, 400)))
    workers = Workers(random.randint(2, 7))
    assert build_adjacency(context_of(graph), workers, result).notes == ()
    assert build_after_load(context_of(graph), result).notes == ()
    assert numbered == []
    assert workers.tasks["number_edges"] >= 4
    found = entries(graph)
    assert len(found) == 6
    assert left_behind(graph) == []
    assert found == built_by_one(graph)


def test_rows_of_fragments_with_deleted_rows(tmp_path, numbered):
    random = Random(1)
    graph = new_graph(tmp_path / "g", SCHEMA)
    bulk(graph, tmp_path / "in", some_records(random, 80, 300))
    graph.mutate("query q() { delete Loop where weight = 1 }")
    graph.mutate('query q() { delete A where name = "0" }')
    graph.mutate('query q() { delete A where name = "7" }')
    result = bulk(graph, tmp_path / "more", some_records(random, 100, 400, start=1000))
    assert build_adjacency(context_of(graph), Workers(3), result).notes == ()
    assert build_after_load(context_of(graph), result).notes == ()
    assert numbered == []
    assert entries(graph) == built_by_one(graph)


class Small:
    """A budget for builds below the least that a graph can have."""

    total = cache_bytes = query_bytes = 10**9

    def __init__(self, build_bytes: int) -> None:
        self.build_bytes = build_bytes


def test_ids_beyond_the_memory_of_a_task(tmp_path, numbered, monkeypatch):
    graph = new_graph(tmp_path / "g", SCHEMA)
    result = bulk(graph, tmp_path / "in", some_records(Random(2), 200, 400))
    monkeypatch.setattr("omnigraph.pipeline.adjacency_task.task_memory", lambda *_: Small(2_000))
    workers = Workers(3)
    assert build_adjacency(context_of(graph), workers, result).notes == ()
    assert workers.tasks["write_task_ids"] == 3 + 6, "one table at both ends of the loops, two of the other edges"
    assert numbered == []
    assert entries(graph) == built_by_one(graph)


def test_tasks_hold_a_share_of_the_memory(tmp_path, monkeypatch):
    graph = new_graph(tmp_path / "g", SCHEMA)
    result = bulk(graph, tmp_path / "in", some_records(Random(3), 100, 400))
    monkeypatch.setattr("omnigraph.pipeline.adjacency_task.task_memory", lambda *_: Small(800))
    sizes: dict[str, list[int]] = {"numbered": [], "sorted": []}
    number, sort = parallel_build.number_ends, parallel_build.distinct

    def numbering(edges: Any, names: tuple[str, ...], ids: Any, numbers: Any, *more: Any) -> None:
        sizes["numbered"].append(len(numbers) // len(names))
        number(edges, names, ids, numbers, *more)

    def sorting(pairs: Any) -> Any:
        sizes["sorted"].append(len(pairs))
        return sort(pairs)

    monkeypatch.setattr(parallel_build, "number_ends", numbering)
    monkeypatch.setattr(parallel_build, "distinct", sorting)
    assert build_adjacency(context_of(graph), Workers(2), result).notes == ()
    assert max(sizes["numbered"]) == 800 // 16 // 16 * 16
    runs = 400 // 48 + 1
    assert max(sizes["sorted"]) <= 800 // 40 + 3 * runs * 7, (
        "each run contributes up to a sampled distance at the bounds"
    )
    assert entries(graph) == built_by_one(graph)


def test_ranges_of_many_short_runs_have_about_equal_sizes(tmp_path, tune, monkeypatch):
    tune(adjacency_sorted_edges=128, adjacency_sample_pairs=32)
    chooser, nodes, edges = Random(3), 500, 6_144
    graph = new_graph(tmp_path / "g", SCHEMA)
    ends = [(str(chooser.randrange(nodes)), str(chooser.randrange(nodes))) for _ in range(edges)]
    records = [node("A", name=f"{at}") for at in range(nodes)] + [edge("Loop", *one) for one in ends]
    result = bulk(graph, tmp_path / "in", records)
    sizes: list[int] = []
    sort = parallel_build._distinct_of

    def sorting(parts: Any) -> Any:
        sizes.append(sum(map(len, parts)))
        return sort(parts)

    monkeypatch.setattr(parallel_build, "_distinct_of", sorting)
    assert build_adjacency(context_of(graph), Workers(2), result).notes == ()
    assert len(sizes) > edges / 128
    assert max(sizes) <= 3 * 128


@pytest.mark.parametrize("task", ["number_edges", "merge_pairs", "place_values"])
@pytest.mark.parametrize("error", [StorageError("the workers are gone"), Cancelled("stop")])
def test_driver_builds_what_failing_workers_do_not(tmp_path, numbered, task, error):
    graph = new_graph(tmp_path / "g", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", some_records(Random(4), 50, 200))
    result = build_adjacency(context_of(graph), Failing(task, error), loaded)
    reason = "cancelled" if isinstance(error, Cancelled) else "the workers are gone"
    assert result.notes == tuple(
        f"the workers did not build the neighbours of '{key}' ({reason})" for key in ("edge:Loop", "edge:To")
    )
    assert entries(graph) == {}
    assert left_behind(graph) == []
    assert build_after_load(context_of(graph), result).notes == result.notes
    assert sorted(numbered) == ["dst", "dst", "src", "src"]
    assert entries(graph) == built_by_one(graph)


@pytest.mark.parametrize("name", ["write", "allocate"])
def test_full_disk_publishes_nothing(tmp_path, monkeypatch, name):
    graph = new_graph(tmp_path / "g", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", some_records(Random(5), 50, 200))

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(SharedArray, name, full)
    result = build_adjacency(context_of(graph), Workers(), loaded)
    assert [note.partition("(")[2] for note in result.notes] == ["No space left on device)"] * 2
    assert entries(graph) == {}
    assert left_behind(graph) == []


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_failed_rename_leaves_entries_that_the_driver_completes(tmp_path, monkeypatch, failing):
    graph = new_graph(tmp_path / "g", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", some_records(Random(5), 50, 200))
    place, calls = disk_cache._place, count(1)

    def placed(*given: Any) -> Any:
        if next(calls) == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        return place(*given)

    monkeypatch.setattr(disk_cache, "_place", placed)
    result = build_adjacency(context_of(graph), Workers(), loaded)
    assert result.notes == ("the workers did not build the neighbours of 'edge:Loop' (No space left on device)",)
    assert left_behind(graph) == []
    build_after_load(context_of(graph), result)
    assert entries(graph) == built_by_one(graph)


@pytest.mark.parametrize(
    "error", [MemoryError("2 GiB"), pa.ArrowInvalid("x"), StorageError("the table cannot be opened")]
)
@pytest.mark.parametrize("step", ["missing_adjacency", "divide_pairs"])
def test_error_of_the_driver_is_a_note(tmp_path, monkeypatch, step, error):
    graph = new_graph(tmp_path / "g", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", some_records(Random(5), 50, 200))

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(adjacency_task, step, fail)
    result = build_adjacency(context_of(graph), Workers(), loaded)
    assert result.notes == tuple(
        f"the workers did not build the neighbours of '{key}' ({reason_of(error)})" for key in ("edge:Loop", "edge:To")
    )
    assert build_after_load(context_of(graph), result).notes == result.notes
    assert entries(graph) == built_by_one(graph)


def test_cancellation_while_another_process_builds_is_a_note(tmp_path):
    graph = new_graph(tmp_path / "g", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", some_records(Random(4), 50, 200))
    context, cancellation = context_of(graph), Cancellation()
    context.cache.takes_turns = True
    cancellation.cancel()
    folder_of(graph).mkdir(exist_ok=True)
    with (folder_of(graph) / LOCK).open("ab") as other, OperationWatch("load", None, cancellation).applied():
        fcntl.flock(other, fcntl.LOCK_EX)
        result = build_adjacency(context, Workers(), loaded)
    assert result.notes == tuple(
        f"the workers did not build the neighbours of '{key}' (cancelled)" for key in ("edge:Loop", "edge:To")
    )


def test_interrupt_leaves_nothing_behind(tmp_path):
    graph = new_graph(tmp_path / "g", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", some_records(Random(6), 50, 200))
    with pytest.raises(KeyboardInterrupt):
        build_adjacency(context_of(graph), Failing("merge_pairs", KeyboardInterrupt()), loaded)
    assert entries(graph) == {}
    assert left_behind(graph) == []


class Twice(Workers):
    """Runs each task twice, as after the loss of a worker."""

    def run(self, step, task, job, work, **more):
        def again(job: Any, unit: Any) -> Any:
            task(job, unit)
            return task(job, unit)

        return super().run(step, again, job, work, **more)


def test_tasks_that_run_again_change_nothing(tmp_path, monkeypatch):
    graph = new_graph(tmp_path / "g", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", some_records(Random(7), 150, 300))
    monkeypatch.setattr("omnigraph.pipeline.adjacency_task.task_memory", lambda *_: Small(3_000))
    assert build_adjacency(context_of(graph), Twice(), loaded).notes == ()
    assert entries(graph) == built_by_one(graph)


def test_dangling_edge_is_a_note(tmp_path):
    graph = new_graph(tmp_path / "g", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", some_records(Random(8), 50, 200))

    def remove(transaction: Transaction) -> None:
        transaction.change("node:A", TableWrite(delete=pa.array(["0"])))

    write(context_of(graph).repository, remove, WriteOptions())
    commit = graph.snapshot().commit_id
    result = build_adjacency(context_of(graph), Workers(), replace(loaded, commit_id=commit))
    assert len(result.notes) == 2
    assert all("end at nodes that do not exist" in note for note in result.notes)


def test_structures_of_an_earlier_version_in_memory_are_replaced(tmp_path, numbered):
    graph = new_graph(tmp_path / "g", SCHEMA)
    query = 'query q() { match { $a: A { name: "0" }  $a loop $b } return { $b.name } order { $b.name } }'
    for part in range(2):
        records = some_records(Random(part), 60, 300, start=part * 1000)
        result = bulk(graph, tmp_path / f"in{part}", records)
        build_after_load(context_of(graph), build_adjacency(context_of(graph), Workers(), result))
        graph.query(query)
    assert numbered == []
    plain = new_graph(
        tmp_path / "plain", SCHEMA, *some_records(Random(0), 60, 300), *some_records(Random(1), 60, 300, 1000)
    )
    assert graph.query(query).to_rows() == plain.query(query).to_rows()


def test_few_added_edges_are_left_to_the_driver(tmp_path):
    graph = new_graph(tmp_path / "g", SCHEMA)
    result = bulk(graph, tmp_path / "in", some_records(Random(9), 50, 200))
    assert build_adjacency(context_of(graph), InlineRunner(), result) is result
    build_adjacency(context_of(graph), Workers(), result)
    again = Workers()
    assert build_adjacency(context_of(graph), again, result).notes == ()
    assert again.tasks == {}


@pytest.mark.parametrize("seed", range(20))
def test_ranges_of_pairs_have_all_pairs_and_nodes_once(seed):
    random = np.random.default_rng(seed)
    nodes, runs = int(random.integers(1, 40)), int(random.integers(1, 5))
    near = [np.sort(random.integers(0, nodes, random.integers(0, 60)) ** 2 // nodes) for _ in range(runs)]
    pairs = [np.unique(pack(some, random.integers(0, nodes, len(some)))) for some in near]
    ranges = divide_pairs([some[::3] for some in pairs], int(random.integers(1, 9)), nodes)
    assert [node for one in ranges for node in one.nodes] == list(range(nodes + 1))
    assert [one.stop for one in ranges[:-1]] == [one.first for one in ranges[1:]]
    every = np.concatenate(pairs).tolist()
    assert sum(one.first <= pair < one.stop for pair in every for one in ranges) == len(every)
    starts = {node: sum(pair >> 32 < node for pair in every) for node in range(nodes + 1)}
    for one in ranges:
        assert all(sum(pair < one.first for pair in every) <= starts[node] for node in one.nodes)
        assert all(starts[node] <= sum(pair < one.stop for pair in every) for node in one.nodes)
