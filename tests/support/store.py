"""A small graph for fault and race tests, processes that write it, and the invariants afterwards.

Every commit of a worker adds one `Item` and one `Link` with the same id, which is also in the commit's metadata: so a
half commit, a lost one and a doubled one each show as a difference of three plain sets.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import lance
import pyarrow as pa

import omnigraph as og
from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.operations.create import create_graph
from omnigraph.storage.failpoints import VARIABLE
from omnigraph.storage.files import layout
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.model.ids import system_clock
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.upkeep import maintenance
from omnigraph.versioning.write.recovery import Recovered, recover, recovery_log
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write

if TYPE_CHECKING:
    # Workers do not use it; without it they start in half the time.
    from omnigraph.graph import Graph

ITEM, LINK = "node:Item", "edge:Link"
COUNTER = "counter"
SCHEMA = """\
node Item {
  name: String @key
  count: I64
}

edge Link: Item -> Item {
  note: String?
}
"""

_TESTS = Path(__file__).parents[1]
_PATIENCE_S = 120.0


# -- writing -----------------------------------------------------------------------------------------


def write_elsewhere(root: str | Path, environ: Mapping[str, str] | None = None) -> None:
    """Write both tables on another branch, so that the versions of main are not the newest of their tables."""
    graph = og.open(root, environ=environ)
    graph.branch_create("elsewhere")
    add_pair(repository_of(graph), "elsewhere", branch="elsewhere")


def add_pair(repository: Repository, key: str, **options: Any) -> Commit:
    """One commit into both tables."""

    def prepare(transaction: Transaction) -> None:
        transaction.change(ITEM, TableWrite(append=pa.table({"id": [key], "name": [key], "count": pa.array([0])})))
        link = {"id": [key], "src": [key], "dst": [key], "note": pa.array([None], pa.utf8())}
        transaction.change(LINK, TableWrite(append=pa.table(link)))

    commit = write(repository, prepare, WriteOptions(metadata={"key": key}, **options))
    assert commit is not None
    return commit


def add_pair_in_group(repository: Repository, key: str, **options: Any) -> Commit:
    """One commit into both tables, which can be published together with others."""

    def prepare(transaction: Transaction) -> None:
        below = transaction.pending
        assert below is None or isinstance(below, WriteOverlay)
        overlay = WriteOverlay(transaction.snapshot, below)
        overlay.table(ITEM).put(pa.table({"id": [key], "name": [key], "count": pa.array([0])}), fresh=True)
        link = {"id": [key], "src": [key], "dst": [key], "note": pa.array([None], pa.utf8())}
        overlay.table(LINK).put(pa.table(link), fresh=True)
        transaction.record(overlay)

    commit = write(repository, prepare, WriteOptions(metadata={"key": key}, queued=True, **options))
    assert commit is not None
    return commit


def increment(repository: Repository, **options: Any) -> Commit:
    """Read the counter, add one, write it back: detects lost updates."""

    def prepare(transaction: Transaction) -> None:
        row = transaction.snapshot.entity(ITEM, COUNTER)
        count = row["count"] + 1 if row else 1
        counter = {"id": [COUNTER], "name": [COUNTER], "count": pa.array([count])}
        transaction.change(ITEM, TableWrite(upsert=pa.table(counter)))

    commit = write(repository, prepare, WriteOptions(kind="increment", **options))
    assert commit is not None
    return commit


def repository_of(graph: Graph) -> Repository:
    """The repository of a graph."""
    return graph._repository


def new_graph(
    uri: str | Path, pairs: int = 0, *, age: timedelta = timedelta(0), environ: Mapping[str, str] | None = None
) -> Graph:
    """A graph with `seed-N` commits, optionally with an age."""
    ago = int(age.total_seconds() * 1_000_000)
    repository = create_graph(uri, SCHEMA, clock=lambda: system_clock() - ago, environ=environ)
    for number in range(pairs):
        add_pair(repository, f"seed-{number}")
    if repository.location.path is not None:
        then = time.time() - age.total_seconds()
        for path in repository.location.path.rglob("*"):
            os.utime(path, (then, then))
    return og.open(uri, environ=environ)


def seeds(pairs: int) -> set[str]:
    """The keys written by `new_graph`."""
    return {f"seed-{number}" for number in range(pairs)}


# -- processes ---------------------------------------------------------------------------------------


class Worker:
    """A separate process that runs one action of `support.store_worker` on a graph.

    Leaving the block terminates it.
    """

    def __init__(
        self,
        folder: Path,
        uri: str | Path,
        do: str,
        *,
        name: str = "worker",
        failpoints: str = "",
        environ: Mapping[str, str] | None = None,
        **what: Any,
    ) -> None:
        self.name = name
        self._out = folder / f"{name}.out"
        self._err = folder / f"{name}.err"
        request = json.dumps({"do": do, "uri": str(uri), "name": name, **what})
        path = os.pathsep.join(filter(None, [str(_TESTS), os.environ.get("PYTHONPATH")]))
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "support.store_worker", request],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=err,
                cwd=_TESTS,
                env={**os.environ, **(environ or {}), "PYTHONPATH": path, VARIABLE: failpoints},
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def said(self) -> list[dict[str, Any]]:
        """Every complete line so far."""
        lines = self._out.read_bytes().split(b"\n")[:-1]
        return [json.loads(line) for line in lines]

    def wrote(self) -> list[str]:
        """The keys of the acknowledged commits."""
        return [line["key"] for line in self.said() if "key" in line]

    def errors(self) -> list[str]:
        """The codes of the errors it survived."""
        return [line["error"] for line in self.said() if "error" in line]

    def wait_for(self, condition: Callable[[Worker], bool], timeout_s: float = _PATIENCE_S) -> bool:
        """Wait until the condition holds (True) or the process has ended (False)."""
        end = time.monotonic() + timeout_s
        while time.monotonic() < end:
            if condition(self):
                return True
            if self.process.poll() is not None:
                return condition(self)
            time.sleep(0.002)
        raise AssertionError(f"{self.name} did not come so far in {timeout_s} s: {self.said()[-3:]} {self.trouble()}")

    def go(self) -> None:
        """Start a waiting worker."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"go\n")
        self.process.stdin.flush()

    def finish(self, timeout_s: float = _PATIENCE_S) -> Self:
        """Wait for its end; the exit status must be 0."""
        assert self.end(timeout_s) == 0, f"{self.name}: {self.trouble()}"
        return self

    def end(self, timeout_s: float = _PATIENCE_S) -> int:
        """Wait for its end; the exit status."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"{self.name} did not end within {timeout_s} s: {self.trouble()}") from None
        finally:
            self._close()

    def kill(self) -> None:
        """Kill it by SIGKILL if it runs, and reap it."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._close()

    def trouble(self) -> str:
        """The end of its error output."""
        return self._err.read_text(errors="replace")[-2000:]

    def _close(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()


def start_together(workers: Sequence[Worker]) -> None:
    """Start all workers at the same time."""
    for worker in workers:
        assert worker.wait_for(lambda w: bool(w.said())), worker.trouble()
    for worker in workers:
        worker.go()


# -- what must hold ----------------------------------------------------------------------------------


def check_sound(graph: Graph, acknowledged: Iterable[str], *, in_flight: int = 0, branch: str = "main") -> list[Commit]:
    """Both tables equal the history, and the history contains everything acknowledged.

    `in_flight` is the number of writers that died without a report. Returns the history, newest first.
    """
    assert graph.verify() == []
    repository = repository_of(graph)
    commits = graph.commits(branch)
    assert len({commit.id for commit in commits}) == len(commits)
    for newer, older in pairwise(commits):
        assert newer.parent_id == older.id, "history is a line"
        assert newer.manifest_version > older.manifest_version
    assert commits[-1].parent_id is None
    pins = repository.all_pins(repository.state())
    counted = 0
    for commit in reversed(commits):
        counted += commit.kind == "write"
        rows = {pin.key: pin.row_count for pin in pins[commit.id]}
        assert rows[LINK] == counted, "no commit is half"
        assert rows[ITEM] - rows[LINK] in (0, 1), "the counter is the one item without a link"
    written = [commit.metadata["key"] for commit in commits if commit.kind == "write"]
    items = [id_ for id_ in graph.to_arrow("Item", branch=branch)["id"].to_pylist() if id_ != COUNTER]
    links = graph.to_arrow("Link", branch=branch)["id"].to_pylist()
    assert sorted(items) == sorted(written)
    assert sorted(links) == sorted(written)
    assert len(set(written)) == len(written), "nothing was written twice"
    asked = list(acknowledged)
    assert set(asked) <= set(written), "an acknowledged commit is missing"
    assert len(set(written) - set(asked)) <= in_flight
    return commits


@dataclass
class Settled:
    """The results of a recovery."""

    report: list[Recovered]
    notes: list[str] = field(default_factory=list)


def settle(uri: str | Path, *, environ: Mapping[str, str] | None = None) -> Settled:
    """Recover, and check that every intent is resolved according to the manifest, permanently."""
    repository = Repository.open(uri, environ=environ)
    notes = repository.objects.list("__recovery")
    report = recover(repository)
    assert [entry.intent for entry in report] == notes, "every note is reported"
    for entry in report:
        assert entry.commit_id is not None
        landed = repository.find_commit(entry.commit_id) is not None
        assert entry.outcome == ("rolled_forward" if landed else "rolled_back")
    assert recover(repository) == []
    assert repository.objects.list("__recovery") == []
    operations = [row["operation_id"] for row in recovery_log(repository)]
    assert len(set(operations)) == len(operations), "one audit row per note"
    named = {note.rpartition("/")[2].removesuffix(".json") for note in notes}
    assert named <= set(operations)
    return Settled(report, notes)


def check_usable(uri: str | Path, *, environ: Mapping[str, str] | None = None) -> Graph:
    """Open the graph like a user and write once."""
    graph = og.open(uri, environ=environ)
    before = graph.snapshot().commit_id
    commit = add_pair(repository_of(graph), f"after-{before}")
    assert commit.parent_id == before
    assert graph.verify() == []
    return graph


def collect(graph: Graph) -> None:
    """Clean up without writers; afterwards only files of the newest commit exist."""
    repository = repository_of(graph)
    stats = maintenance.cleanup(repository, keep=1, confirm=True, grace=timedelta(0))
    assert [entry.error for entry in stats if entry.error] == []
    assert strays(graph) == set()
    assert graph.verify() == []


def strays(graph: Graph) -> set[str]:
    """Table files not referenced by a head, and other leftovers of dead processes."""
    found: set[str] = set()
    location = repository_of(graph).location
    pinned: dict[str, set[int]] = {}
    for branch in graph.branches():
        for table in graph.snapshot(branch).tables.values():
            pinned.setdefault(table.folder, set()).add(table.pin.lance_version)
    for folder, versions in pinned.items():
        dataset = lance.dataset(location.child(folder), storage_options=dict(location.options) or None)
        tracked = dataset.tracked_files().read_all().to_pylist()
        needed = {row["path"] for row in tracked if row["version"] in versions}
        for batch in dataset.all_files():
            paths = set(batch.column("path").to_pylist()) - needed
            found |= {f"{folder}/{path}" for path in paths if not path.endswith("latest_version_hint.json")}
    objects = repository_of(graph).objects
    found |= {folder for kind in layout.TABLES for folder in objects.folders(kind)} - set(pinned)
    found |= {name for name in (layout.INIT_CLAIM,) if objects.read(name) is not None}
    if location.path is not None:
        names = (".writing-*", ".tmp*", f"{layout.PROBE}*")
        half = [path.relative_to(location.path) for name in names for path in location.path.rglob(name)]
        found |= {str(path) for path in half if path.parts[0] != layout.RECOVERY_LOG}
    return found
