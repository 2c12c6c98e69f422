"""The versioned store compared with its bare parts, with a short history, and with a single writer.

Every ratio compares two measurements that alternate in one run on one machine:

- a commit of one row into each of two tables against the minimum: two bare Lance appends and one bare append to a
  table shaped like the manifest, synced in the same way (target 3);
- a commit, an opened snapshot and a new branch in a graph with a long history against the same in a graph with
  a short one (target 1.5);
- a commit with many branches against a commit with none (target 1.3);
- eight processes on eight branches against one process on one (target 3, as far as two cores allow).

`python -m bench.storage --full` uses the sizes of the targets: 5,000 commits, 10,000 listed, 500 branches. The default
sizes are smaller.
"""

from __future__ import annotations

import multiprocessing
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median

import lance
import pyarrow as pa

from omnigraph.storage.files.fsync import sync_files
from omnigraph.storage.files.layout import manifest_file
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.manifest.manifest_schema import SCHEMA as MANIFEST_SCHEMA
from omnigraph.versioning.model.manifest_objects import GraphSpec, SchemaRecord, TableSpec
from omnigraph.versioning.write.branches import create_branch
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write

NODE = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("name", pa.utf8())])
EDGE = pa.schema([pa.field(name, pa.utf8(), nullable=False) for name in ("id", "src", "dst")])
SPECS = (TableSpec("node", "Person", 1, 1, NODE), TableSpec("edge", "Knows", 2, 2, EDGE))


@dataclass(frozen=True)
class Sizes:
    """Sizes of the run."""

    rounds: int = 60
    short: int = 50
    long: int = 400
    listed: int = 800
    branches: int = 60
    seconds: float = 2.0
    processes: int = 8


FULL = Sizes(rounds=100, long=5_000, listed=10_000, branches=500, seconds=6.0)


# -- the parts -----------------------------------------------------------------------------------------


def new_graph(root: Path, *, sync: bool) -> Repository:
    return Repository.create(root, GraphSpec(SchemaRecord("h", "", "{}"), SPECS), sync=sync, environ={})


def commit_pair(repository: Repository, number: int, branch: str = "main") -> None:
    """One row into each of two tables."""
    node = pa.table({"id": [f"p{number}"], "name": ["somebody"]}, schema=NODE)
    edge = pa.table({"id": [f"e{number}"], "src": [f"p{number}"], "dst": [f"p{number}"]}, schema=EDGE)

    def prepare(transaction: Transaction) -> None:
        transaction.change("node:Person", TableWrite(append=node))
        transaction.change("edge:Knows", TableWrite(append=edge))

    write(repository, prepare, WriteOptions(branch=branch))


class Bare:
    """Two appends and a manifest row without atomicity, history or checks."""

    def __init__(self, root: Path, *, sync: bool) -> None:
        self.sync = sync
        schemas = {"nodes": NODE, "edges": EDGE, "manifest": MANIFEST_SCHEMA}
        self.tables = {
            name: lance.write_dataset(schema.empty_table(), str(root / name), schema=schema, enable_stable_row_ids=True)
            for name, schema in schemas.items()
        }
        self.row = pa.Table.from_pylist(
            [{"object_id": "graph_head:main", "object_type": "graph_head", "table_key": "", "metadata": "x" * 300}],
            schema=MANIFEST_SCHEMA,
        )

    def commit(self, number: int) -> None:
        self._append("nodes", pa.table({"id": [f"p{number}"], "name": ["somebody"]}, schema=NODE))
        self._append("edges", pa.table({"id": [f"e{number}"], "src": ["p"], "dst": ["p"]}, schema=EDGE))
        self._append("manifest", self.row)

    def _append(self, name: str, rows: pa.Table) -> None:
        dataset = lance.write_dataset(rows, self.tables[name], mode="append")
        self.tables[name] = dataset
        if self.sync:
            folder = Path(dataset.uri)
            newest = max(dataset.get_fragments(), key=lambda fragment: fragment.fragment_id)
            files = [folder / "data" / file.path for file in newest.metadata.files]
            sync_files([*files, manifest_file(folder, dataset.version)])


# -- measuring -----------------------------------------------------------------------------------------


def medians_ms(functions: Mapping[str, Callable[[int], object]], rounds: int) -> dict[str, float]:
    """Milliseconds per call of each function, called with the number of the round; they alternate."""
    taken: dict[str, list[float]] = {name: [] for name in functions}
    for number in range(rounds):
        for name, function in functions.items():
            start = time.perf_counter()
            function(number)
            taken[name].append(time.perf_counter() - start)
    return {name: median(times) * 1e3 for name, times in taken.items()}


@contextmanager
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def against_bare_parts(sizes: Sizes) -> dict[str, float]:
    found: dict[str, float] = {}
    for sync in (True, False):
        with folder() as root:
            graph, bare = new_graph(root / "graph", sync=sync), Bare(root / "bare", sync=sync)
            times = medians_ms(
                {"commit": lambda number, graph=graph: commit_pair(graph, number), "bare": bare.commit}, sizes.rounds
            )
        how = "synced" if sync else "unsynced"
        found[f"commit_{how}_ms"] = times["commit"]
        found[f"bare_parts_{how}_ms"] = times["bare"]
        found[f"commit_to_bare_{how}_ratio"] = times["commit"] / times["bare"]
    return found


def against_ones_youth(sizes: Sizes) -> dict[str, float]:
    with folder() as root:
        for name, commits in (("short", sizes.short), ("long", sizes.long)):
            build = new_graph(root / name, sync=False)
            for number in range(commits):
                commit_pair(build, number)
        graphs = {name: Repository.open(root / name, environ={}) for name in ("short", "long")}
        numbers = count(10_000_000)

        def commit(name: str) -> Callable[[int], object]:
            return lambda _: commit_pair(graphs[name], next(numbers))

        def open_snapshot(name: str) -> Callable[[int], object]:
            return lambda _: Repository.open(root / name, read_only=True, environ={}).snapshot().table("node:Person")

        def branch(name: str) -> Callable[[int], object]:
            return lambda number: create_branch(graphs[name], f"b{number}")

        found: dict[str, float] = {}
        for what, function in (("commit", commit), ("snapshot", open_snapshot), ("branch", branch)):
            times = medians_ms({name: function(name) for name in graphs}, sizes.rounds)
            found[f"{what}_at_{sizes.short}_commits_ms"] = times["short"]
            found[f"{what}_at_{sizes.long}_commits_ms"] = times["long"]
            found[f"{what}_long_to_short_ratio"] = times["long"] / times["short"]
        build = Repository.open(root / "long", sync=False, environ={})
        while len(build.commits()) < sizes.listed:
            for _ in range(min(500, sizes.listed - len(build.commits()))):
                commit_pair(build, next(numbers))
        listed = len(build.commits())
        lists = {
            "opened anew": lambda _: Repository.open(root / "long", read_only=True, environ={}).commits(),
            "again": lambda _: build.commits(),
        }
        times = medians_ms(lists, 9)
        found[f"list_{listed}_commits_ms"] = times["opened anew"]
        found[f"list_{listed}_commits_again_ms"] = times["again"]
        past = build.commits()[listed // 2]
        found["snapshot_of_past_commit_ms"] = medians_ms({"past": lambda _: build.snapshot(at=past.id)}, 9)["past"]
        found["snapshot_of_past_version_ms"] = medians_ms(
            {"past": lambda _: build.snapshot(at=past.manifest_version)}, 9
        )["past"]
        moment = past.created_at
        found["snapshot_of_past_time_ms"] = medians_ms({"past": lambda _: build.snapshot(at=moment)}, 9)["past"]
    return found


def among_branches(sizes: Sizes) -> dict[str, float]:
    with folder() as root:
        for name, branches in (("alone", 0), ("crowded", sizes.branches)):
            build = new_graph(root / name, sync=False)
            commit_pair(build, -1)
            for number in range(branches):
                create_branch(build, f"b{number}")
        graphs = {name: Repository.open(root / name, environ={}) for name in ("alone", "crowded")}
        times = medians_ms(
            {name: lambda number, graph=graph: commit_pair(graph, number) for name, graph in graphs.items()},
            sizes.rounds,
        )
    return {
        "commit_among_0_branches_ms": times["alone"],
        f"commit_among_{sizes.branches}_branches_ms": times["crowded"],
        "crowded_to_alone_ratio": times["crowded"] / times["alone"],
    }


# -- many processes ------------------------------------------------------------------------------------


def publisher(root: str, branch: str, start: float, seconds: float, done: object) -> None:
    """Commit from `start` for a number of seconds, and report the count."""
    repository = Repository.open(root, environ={})
    commit_pair(repository, time.time_ns(), branch)
    time.sleep(max(0.0, start - time.time()))
    made = 0
    while time.time() < start + seconds:
        commit_pair(repository, time.time_ns(), branch)
        made += 1
    done.put(made)  # type: ignore[attr-defined]


def commits_per_second(branches: list[str], sizes: Sizes) -> float:
    context = multiprocessing.get_context("spawn")
    with folder() as root:
        build = new_graph(root / "graph", sync=True)
        for branch in sorted(set(branches) - {"main"}):
            create_branch(build, branch)
        done = context.Queue()
        start = time.time() + 2.0 + 0.8 * len(branches)
        workers = [
            context.Process(target=publisher, args=(str(root / "graph"), branch, start, sizes.seconds, done))
            for branch in branches
        ]
        for worker in workers:
            worker.start()
        made = sum(done.get() for _ in workers)
        for worker in workers:
            worker.join()
    return made / sizes.seconds


def together(sizes: Sizes) -> dict[str, float]:
    """Three alternating runs of each, because other load affects this measurement most."""
    apart = [f"b{number}" for number in range(sizes.processes)]
    ways = {"alone": ["main"], "apart": apart, "crowded": ["main"] * sizes.processes}
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(3):
        for way, branches in ways.items():
            taken[way].append(commits_per_second(branches, sizes))
    rates = {way: median(found) for way, found in taken.items()}
    return {
        "one_publisher_per_s": rates["alone"],
        f"{sizes.processes}_on_own_branches_per_s": rates["apart"],
        "own_branches_to_one_ratio": rates["apart"] / rates["alone"],
        f"{sizes.processes}_on_one_branch_per_s": rates["crowded"],
    }


def figures(sizes: Sizes | None = None) -> dict[str, float]:
    sizes = sizes or Sizes()
    return {
        **against_bare_parts(sizes),
        **against_ones_youth(sizes),
        **among_branches(sizes),
        **together(sizes),
    }


if __name__ == "__main__":
    for name, value in figures(FULL if "--full" in sys.argv[1:] else Sizes()).items():
        print(f"{name:<36} {value:10.2f}")
