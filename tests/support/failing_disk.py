"""A disk that fails at a write of a file, every kind of write to a graph, and the outcome of the two together.

A write is either refused, and everything is as before, or acknowledged, and everything is there. Anything else is
damage: a graph that cannot be read, other rows, an error without a type, or a graph that cannot be written again.
"""

from __future__ import annotations

import json
import random
import resource
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.errors import OmniGraphError, OutcomeUnknown
from omnigraph.graph import Graph
from omnigraph.version import STORAGE_FORMAT, STORAGE_FORMAT_OLDEST
from omnigraph.versioning.upkeep import maintenance
from support.groups import grouped
from support.store import repository_of

INPUT = "input.jsonl"
Outcome = Literal["refused", "complete", "unknown"]
"""The outcome is unknown after `OutcomeUnknown`: the write is complete, or everything is as before."""

SCHEMA = """
node Doc { key: String @key  text: String?  rank: F64?  raw: Blob? }
edge Cites: Doc -> Doc { note: String? }
"""
WIDER = SCHEMA.replace("rank: F64?", "rank: F64?  year: I32?").replace("edge", "node Tag { key: String @key }\nedge")
ADD = "query add($key: String) { insert Doc { key: $key } }"
BLOB_BYTES = 100_000
ROWS = 2_000
"""Rows, most of which one write deletes: its deletion file is larger than an entry of the log after a checkpoint."""
TEXT = random.Random(1).randbytes(6_000).hex()
"""A text that makes a data file larger than other files."""


def doc(key: str, **data: Any) -> dict[str, Any]:
    """A record of a node."""
    return {"type": "Doc", "data": {"key": key, **data}}


def cites(source: str, target: str) -> dict[str, Any]:
    """A record of an edge."""
    return {"edge": "Cites", "from": source, "to": target}


def new_graph(root: Path) -> None:
    """A graph on which every write of `WRITES` changes something: two branches, indexes, deletions, several commits."""
    graph = og.init(root, SCHEMA, sync=False, environ={})
    docs = [doc(f"d{number:03}", text=f"about {number}", rank=number / 7) for number in range(60)]
    docs += [doc(f"x{number:04}", rank=-1.0 if number % 7 else 0.5) for number in range(ROWS)]
    graph.load([*docs, *(cites(f"d{number:03}", "d000") for number in range(1, 40))], mode="append")
    graph.load([doc("old", raw=b"o" * BLOB_BYTES)], mode="append")
    graph.mutate('delete Doc where key = "d059"')
    graph.branch_create("side")
    graph.mutate(f'insert Doc {{ key: "s", text: "{TEXT}" }}', branch="side")
    graph.mutate('update Doc set { text: "on the side" } where key = "d003"', branch="side")
    graph.optimize("side")
    _group(graph, "p")
    graph.mutate('update Doc set { text: "changed" } where key = "d001"', message="to revert")
    repository_of(graph).checkpoint()
    records = [doc("d007", text=TEXT), *(doc(f"k{number}") for number in range(9)), cites("k0", "d000")]
    (root.parent / INPUT).write_text("".join(json.dumps(record) + "\n" for record in records))


def open_graph(root: Path, *, sync: bool = False) -> Graph:
    """A handle with its own caches."""
    return og.open(root, sync=sync, environ={})


def state_of(graph: Graph) -> list[Any]:
    """The rows of every branch at each of its commits, without generated ids and blobs."""
    return [[branch, *(_rows_at(graph, commit.id) for commit in graph.commits(branch))] for branch in graph.branches()]


def _rows_at(graph: Graph, commit: str) -> tuple[pa.Table, pa.Table]:
    node, edge = ("Doc", "Cites") if "node Doc" in graph.schema else ("Person", "Knows")
    docs, edges = graph.to_arrow(node, at=commit), graph.to_arrow(edge, at=commit)
    return docs.sort_by("id"), edges.drop_columns("id").sort_by([("src", "ascending"), ("dst", "ascending")])


def _checkpoint(graph: Graph) -> None:
    graph.tag_create(f"t{graph.newest_version}")
    repository_of(graph).checkpoint()


class PartlyRefused(OmniGraphError):
    """Requests of a group are tried one by one after the group was refused, and some were acknowledged then."""

    def __init__(self, acknowledged: int) -> None:
        super().__init__("requests were refused")
        self.acknowledged = acknowledged


def _group(graph: Graph, prefix: str = "g") -> None:
    """Publish three commits together: the first two pin parts of the version that the third one pins."""
    keys = [f"{prefix}{number}" for number in range(3)]
    results = grouped(graph, [partial(graph.mutate, f'insert Doc {{ key: "{key}" }}') for key in keys])
    errors = [result for result in results if isinstance(result, BaseException)]
    if errors:
        raise PartlyRefused(len(keys) - len(errors)) from errors[0]


def _read_parts(graph: Graph) -> None:
    for commit in graph.commits():
        graph.to_arrow("Doc", at=commit.id)


def _load_as_job(graph: Graph) -> None:
    with tuning.replaced(memory_load_bytes_max=0):
        graph.load(str(Path(graph.uri).parent / INPUT), mode="merge")


def _clean(graph: Graph, keep: int) -> None:
    stats = maintenance.cleanup(repository_of(graph), keep=keep, confirm=True, grace=timedelta(0))
    for table in stats:
        if table.error:
            raise OmniGraphError(table.error)


def _upgrade(graph: Graph) -> None:
    graph.mutate(f'insert Person {{ name: "new", bio: "{TEXT}" }}')


EARLIER = {f"upgrade of {number}": number for number in range(STORAGE_FORMAT_OLDEST, STORAGE_FORMAT)}
"""Writes to a graph of an earlier format, with its number."""
FORMATS = Path(__file__).parents[1] / "cases" / "formats"

WRITES: dict[str, Callable[[Graph], object]] = {
    "insert": lambda graph: graph.mutate(f'insert Doc {{ key: "new", text: "{TEXT}" }}'),
    "insert edge": lambda graph: graph.mutate('insert Doc { key: "n" } insert Cites { from: "n", to: "d001" }'),
    "update": lambda graph: graph.mutate(f'update Doc set {{ text: "{TEXT}" }} where key = "d002"'),
    "delete": lambda graph: graph.mutate("delete Doc where rank < 0.0"),
    "upsert": lambda graph: graph.mutate(f'upsert Doc {{ key: "d005", text: "{TEXT}" }}'),
    "group": _group,
    "read of parts": _read_parts,
    "load append": lambda graph: graph.load(
        [doc(f"n{n}", text=TEXT) for n in range(9)] + [cites("n0", "n1")], mode="append"
    ),
    "load merge": lambda graph: graph.load([doc("d006", text=TEXT), doc("m1")], mode="merge"),
    "load overwrite": lambda graph: graph.load(
        [doc("d000", text=TEXT), doc("only"), cites("only", "d000")], mode="overwrite"
    ),
    "load blob": lambda graph: graph.load([doc("b", raw=b"b" * BLOB_BYTES)], mode="append"),
    "load as job": _load_as_job,
    "merge": lambda graph: graph.merge("side"),
    "revert": lambda graph: graph.revert("main"),
    "schema apply": lambda graph: graph.apply_schema(WIDER),
    "optimize": lambda graph: graph.optimize(),
    "index build": lambda graph: graph.ensure_indices(),
    "cleanup": partial(_clean, keep=100),
    "checkpoint": _checkpoint,
    "branch create": lambda graph: graph.branch_create("another"),
    "store query": lambda graph: graph.store_query(ADD),
    "purge": lambda graph: graph.purge("Doc", ["d008"], edges=True, reason="r"),
    **dict.fromkeys(EARLIER, _upgrade),
}
"""Every kind of write, by name."""


@dataclass(frozen=True)
class Case:
    """A kind of write, and what it changes."""

    name: str
    before: Sequence[Any]
    after: Sequence[Any]
    sizes: tuple[int, ...]
    """The sizes of the files that it makes, ascending."""

    @classmethod
    def of(cls, name: str, seed: Path, folder: Path, recording: AbstractContextManager[object]) -> Case:
        """Run the write once on a disk that works."""
        root = copy_of(name, seed, folder)
        before, files = state_of(open_graph(root)), sizes_below(root)
        graph = open_graph(root, sync=True)
        with recording:
            WRITES[name](graph)
        made = {size for path, size in sizes_below(root).items() if path not in files}
        return cls(name, before, state_of(open_graph(root)), tuple(sorted(made)))

    def run(self, seed: Path, folder: Path, failing: AbstractContextManager[object]) -> Outcome:
        """Write while the disk fails, and judge what is there afterwards."""
        root = copy_of(self.name, seed, folder)
        graph = open_graph(root, sync=True)
        outcome: Outcome = "complete"
        acknowledged = 0
        with failing:
            try:
                WRITES[self.name](graph)
            except OmniGraphError as error:
                unknown = isinstance(error, OutcomeUnknown) or isinstance(error.__cause__, OutcomeUnknown)
                outcome = "unknown" if unknown else "refused"
                acknowledged = error.acknowledged if isinstance(error, PartlyRefused) else 0
        self._check(root)
        [main, *others] = state_of(open_graph(root))
        present = [[main[0], *main[1 + acknowledged :]], *others]
        # A purge is resumed after the step that replaces the history.
        refused = (self.before, self.after) if self.name == "purge" else (self.before,)
        possible = {"refused": refused, "complete": (self.after,), "unknown": (self.before, self.after)}[outcome]
        assert present in possible
        if outcome == "refused" and not acknowledged:
            # The handle that failed writes again.
            WRITES[self.name](graph)
            assert state_of(open_graph(root)) == self.after
        last = 'insert Doc { key: "last" } insert Cites { from: "last", to: "d000" }'
        open_graph(root).mutate('insert Person { name: "last" }' if self.name in EARLIER else last)
        _clean(open_graph(root), keep=1)
        self._check(root)
        return outcome

    def _check(self, root: Path) -> None:
        problems = open_graph(root).verify(deep=True)
        # Files of a graph of an earlier format have no digests, which is no damage.
        assert [problem for problem in problems if problem.damage or self.name not in EARLIER] == []


def copy_of(name: str, seed: Path, folder: Path) -> Path:
    """The graph that a write begins with, in a new folder with the input file."""
    if name in EARLIER:
        with zipfile.ZipFile(FORMATS / f"{EARLIER[name]}.zip") as file:
            file.extractall(folder)
        return (folder / "team.omni").rename(folder / "graph")
    return Path(shutil.copytree(seed, folder)) / "graph"


def sizes_below(root: Path) -> dict[str, int]:
    """The size of every file."""
    return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Within the block, writes beyond this size of a file fail with `EFBIG`; Python ignores the signal."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
