"""Random histories in which the folder of a graph is replaced by an older copy while a handle is open.

As a program (`python -m support.restoring`) it is the other process: for each line of its input it commits to a graph
and prints what a fresh handle reads.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import omnigraph as og
from omnigraph.graph import Graph

SCHEMA = """\
node Item {
  name: String @key
  count: I64
  note: String @index
}

edge Link: Item -> Item {}
"""

READS = (
    "query q() { match { $i: Item } return { $i.name as name, $i.count as count, $i.note as note } order { $i.name } }",
    "query q() { match { $a: Item  $a link $b } return { $a.name as a, $b.name as b } order { $a.name, $b.name } }",
    'query q() { match { $i: Item  search($i.note, "red") } return { $i.name as name } order { $i.name } }',
    'query q() { match { $i: Item { name: "i1" } } return { $i.count as count, $i.note as note } }',
    "query q() { match { $i: Item } return { sum($i.count) as total, count($i) as n } }",
)
NOTES = ["red", "green", "red green", "blue"]
NAMES = [f"i{number}" for number in range(8)]
DELETE = "query q($name: String) { delete Item where name = $name }"


def new_graph(path: Path) -> Graph:
    """A graph with a few items."""
    graph = og.init(path, SCHEMA)
    records = [{"type": "Item", "data": {"name": name, "count": 0, "note": "red"}} for name in NAMES[:4]]
    graph.load(records, mode="append")
    return graph


def commit(graph: Graph, chance: random.Random) -> None:
    """One random commit."""
    present = [row["name"] for row in graph.query(READS[0])]
    kind = chance.choice(["merge", "merge", "delete", "link"])
    if kind == "delete" and len(present) > 2:
        graph.mutate(DELETE, params={"name": chance.choice(present)})
    elif kind == "link":
        ends = {"from": chance.choice(present), "to": chance.choice(present)}
        graph.load([{"edge": "Link", **ends}], mode="append")
    else:
        data = {"name": chance.choice(NAMES), "count": chance.randrange(1_000_000), "note": chance.choice(NOTES)}
        graph.load([{"type": "Item", "data": data}], mode="merge")


def observe(graph: Graph) -> list[list[dict[str, Any]]]:
    """The rows of all reads, and the commits."""
    found = [list(graph.query(query)) for query in READS]
    return [*found, [{"commit": one.id} for one in graph.commits()]]


def replace_folder(path: Path, copy: Path, chance: random.Random) -> None:
    """Replace a graph by a copy, like a restore."""
    old = path.with_name(f"{path.name}.old")
    if chance.random() < 0.5:
        path.rename(old)
        copy.rename(path)
        shutil.rmtree(old)
    else:
        shutil.rmtree(path)
        shutil.copytree(copy, path)
        shutil.rmtree(copy)


Other = Callable[[Path, int, int], Any]
"""Commit a number of times with a seed and return the reads of a new handle."""


def in_process(path: Path, seed: int, commits: int) -> Any:
    """The other writer as a second handle of this process."""
    graph = og.open(path)
    chance = random.Random(seed)
    for _ in range(commits):
        commit(graph, chance)
    return json.loads(json.dumps(observe(og.open(path))))


class OtherProcess:
    """The other writer as a separate process; every call opens the graph again."""

    def __enter__(self) -> Self:
        command = [sys.executable, "-m", "support.restoring"]
        tests = Path(__file__).parents[1]
        self._process = subprocess.Popen(command, cwd=tests, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.communicate()

    def __call__(self, path: Path, seed: int, commits: int) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([str(path), seed, commits]) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())


def round_of(path: Path, seed: int, other: Other) -> None:
    """Restore one backup: every read of the open handle must equal that of a new handle."""
    chance = random.Random(seed)
    graph = new_graph(path)
    copy = path.with_name(f"{path.name}.copy")
    for _ in range(chance.randrange(3)):
        commit(graph, chance)
    observe(graph)
    for _ in range(chance.randint(1, 2)):
        shutil.copytree(path, copy)
        lost = chance.randint(0, 4)
        for _ in range(lost):
            commit(graph, chance)
            if chance.random() < 0.7:
                observe(graph)
        replace_folder(path, copy, chance)
        # Usually as many commits as were lost, so that all version numbers coincide.
        commits = lost if chance.random() < 0.8 else chance.randint(0, 5)
        expected = other(path, chance.randrange(2**32), commits)
        if chance.random() < 0.7:
            assert observe(graph) == expected
        commit(graph, chance)
        fresh = other(path, 0, 0)
        assert observe(graph) == fresh
        assert not og.open(path).verify()
    shutil.rmtree(path)


if __name__ == "__main__":
    for line in sys.stdin:
        place, with_seed, count = json.loads(line)
        sys.stdout.write(json.dumps(in_process(Path(place), with_seed, count)) + "\n")
        sys.stdout.flush()
