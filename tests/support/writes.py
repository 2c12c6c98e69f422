"""Graphs for write tests: one-line records, stored rows as dictionaries, and complete states for comparison."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.versioning.write.repository import Repository

SHELVES = "node Shelf { code: String @key  note: String?  cap: I32? }\nedge Beside: Shelf -> Shelf\n"
"""The schema of the worked examples in the specification of loads."""


def new_graph(root: Path, schema: str = SHELVES, *records: Mapping[str, Any], **settings: Any) -> Graph:
    """A graph below `root`, with these records in it."""
    graph = og.init(root / "g", schema, **{"sync": False, "environ": {}, **settings})
    if records:
        graph.load(records, mode="append")
    return graph


def node(type_name: str, **data: Any) -> dict[str, Any]:
    """A node record; `id_` is the explicit id."""
    return {"type": type_name, "data": _data(data)}


def edge(type_name: str, src: str, dst: str, **data: Any) -> dict[str, Any]:
    """An edge record; `id_` is the explicit id."""
    return {"edge": type_name, "from": src, "to": dst, "data": _data(data)}


def _data(data: Mapping[str, Any]) -> dict[str, Any]:
    return {"id" if name == "id_" else name: value for name, value in data.items()}


def shelf(code: str, **data: Any) -> dict[str, Any]:
    return node("Shelf", code=code, **data)


def beside(src: str, dst: str, **data: Any) -> dict[str, Any]:
    return edge("Beside", src, dst, **data)


def rows_of(graph: Graph, type_name: str, **where: Any) -> dict[str, dict[str, Any]]:
    """Id → the properties of every row of a type, as an export writes them; edges have `from` and `to` as well."""
    found: dict[str, dict[str, Any]] = {}
    for record in graph.export(types=[type_name], **where):
        data = dict(record["data"])
        id_ = data.pop("id")
        assert id_ not in found, "an id is there twice"
        found[id_] = {**{end: record[end] for end in ("from", "to") if end in record}, **data}
    return found


def ends_of(graph: Graph, type_name: str, **where: Any) -> list[tuple[str, str]]:
    """(source, target) of every edge of a type, sorted."""
    return sorted((row["from"], row["to"]) for row in rows_of(graph, type_name, **where).values())


def ids_of(graph: Graph, type_name: str, **where: Any) -> list[str]:
    """The ids of a type, sorted."""
    return sorted(rows_of(graph, type_name, **where))


def everything(graph: Graph) -> tuple[Any, ...]:
    """Everything a write can change: every branch with its head, records and schema."""
    return tuple(
        (
            branch,
            graph.snapshot(branch).to_json(),
            graph.snapshot(branch).schema.source,
            json.dumps(list(graph.export(branch=branch))),
        )
        for branch in graph.branches()
    )


def manifest_files(graph: Graph) -> dict[str, int]:
    """The files of the manifest and their sizes; a publish adds to them."""
    root = Path(graph.uri.removeprefix("file://")) / "__manifest"
    assert root.is_dir()
    return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any] | str]) -> Path:
    """Write records, or lines verbatim, to a file."""
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    path.write_text("".join(line + "\n" for line in lines))
    return path


def named(items: Sequence[tuple[Any, ...]]) -> dict[str, tuple[Any, ...]]:
    """The rows of a table of cases, by their first cell."""
    found = {str(item[0]): item[1:] for item in items}
    assert len(found) == len(items), "two cases have one name"
    return found


class FakeEmbedder:
    """An embedder whose vector encodes the length of the text, or that fails. It records its inputs."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.asked: list[str] = []

    def embed_documents(self, texts: Sequence[str], dim: int) -> Sequence[Sequence[float]]:
        self.asked += texts
        if self.error is not None:
            raise self.error
        return [[float(len(text))] * dim for text in texts]

    def check_model(self, *_: str | None) -> None:
        return None

    def identity(self) -> tuple[str, str]:
        return "fake", "length"

    allows_mixed = False


def interfere(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Run an action once between the snapshot of a write and its publish."""
    publish = Repository.publish
    left = [act]

    def late(self: Repository, decide: Any, **rest: Any) -> Any:
        if left:
            left.pop()()
        return publish(self, decide, **rest)

    monkeypatch.setattr(Repository, "publish", late)


def reopened(graph: Graph) -> Graph:
    """Another handle on the same graph, as in another process."""
    return og.open(graph.uri, sync=False, environ={})


def called(name: str) -> Callable[[int], pa.Array]:
    """Replace generated ids by a constant."""
    return lambda count: pa.array([name] * count, pa.utf8())
