"""A program: writes to copies of a graph under limits of the size of files, and prints the outcome of each as JSON."""

from __future__ import annotations

import json
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import omnigraph as og
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph

_SCHEMA = "node Person { name: String @key  email: String? }\nedge Knows: Person -> Person\n"
_BRANCHES = ("main", "draft")
_WRITTEN_BY_LANCE = (".lance", ".arrow", ".bin")
"""The ends of the names of data and deletion files."""


def _person(name: str) -> dict[str, object]:
    return {"type": "Person", "data": {"name": name, "email": f"{name}@example.org"}}


def _load(graph: Graph) -> None:
    graph.load([_person(f"new{at}") for at in range(50)], mode="merge")


def _delete(graph: Graph) -> None:
    graph.mutate('query q() { delete Person where name = "p7" }')


def _purge(graph: Graph) -> None:
    graph.purge("Person", ["p1"], edges=True, reason="a test")


KINDS: dict[str, Callable[[Graph], object]] = {
    "load": _load,
    "delete": _delete,
    "optimize": Graph.optimize,
    "purge": _purge,
}
"""Writes; the first purge upgrades the format of the graph."""


def _seed(root: Path) -> None:
    graph = og.init(root, _SCHEMA)
    knows = [{"edge": "Knows", "from": "p0", "to": f"p{at}", "data": {}} for at in range(1, 20)]
    graph.load([*(_person(f"p{at}") for at in range(40)), *knows], mode="append")
    graph.branch_create("draft")
    graph.mutate('query q() { delete Person where name = "p3" }')
    graph.load([_person("drafted")], mode="append", branch="draft")


def _content(graph: Graph) -> dict[str, list[str]]:
    """Return the ids on each branch, after a read of every commit."""
    for commit in graph.commits():
        graph.to_arrow("Person", at=commit.id)
    return {branch: sorted(graph.to_arrow("Person", branch=branch)["id"].to_pylist()) for branch in _BRANCHES}


@contextmanager
def _limited(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def _damage(root: Path, kind: str, acknowledged: bool, before: object, after: object) -> str | None:
    """Return what is wrong after a write that may have failed, and after its repetition."""
    graph = og.open(root)
    if _content(graph) not in ([after] if acknowledged else [before, after]):
        return "the content is neither that before nor that after the write"
    if kind == "purge":
        graph.purge_resume()
    KINDS[kind](graph)
    graph.load([_person("last")], mode="merge")
    problems = [problem.what for problem in og.open(root).verify(deep=True) if problem.damage]
    return problems[0] if problems else None


def _main(folder: Path, kind: str, sizes: list[int]) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    seed, whole = folder / "seed", folder / "whole"
    _seed(seed)
    before = _content(og.open(seed))
    shutil.copytree(seed, whole)
    graph = og.open(whole)
    KINDS[kind](graph)
    after = _content(graph)
    new = [path for path in whole.rglob("*") if path.suffix in _WRITTEN_BY_LANCE and path.is_file()]
    short = {path.stat().st_size - 1 for path in new if not (seed / path.relative_to(whole)).exists()}
    for size in sizes or sorted(short):
        root = folder / str(size)
        shutil.copytree(seed, root)
        graph, acknowledged = og.open(root), False
        with _limited(size), suppress(OmniGraphError):
            KINDS[kind](graph)
            acknowledged = True
        try:
            damage = _damage(root, kind, acknowledged, before, after)
        except OmniGraphError as error:
            damage = error.message
        sys.stdout.write(json.dumps({"size": size, "acknowledged": acknowledged, "damage": damage}) + "\n")
        shutil.rmtree(root)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), sys.argv[2], list(map(int, sys.argv[3:])))
