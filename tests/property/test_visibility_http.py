"""Reads over HTTP under a visibility return what a graph returns that holds only what is visible."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.engine.result.result import Result
from omnigraph.graph import Graph
from omnigraph.operations.authorization.access import Access
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.server.deployment.graphs import ServedGraph
from property.test_visibility import GENERATORS, NOW, SEED, differs, outcome
from support.random_reads.graphs import ManualClock, Subject, change, new_subject
from support.server import serving
from support.visible import SHAPES, Rules, move_rows, projected, projected_copy, telling_rules


@contextmanager
def served(graph: Graph, rules: Rules) -> Iterator[RemoteGraph]:
    """Serve a graph under rules and connect to it."""

    def handle(self: ServedGraph, access: Access, request_id: str | None = None) -> Graph:
        assert self.graph is not None
        return Graph(self.graph.with_access(access)._context.with_visibility(rules.visibility))

    with pytest.MonkeyPatch.context() as patch, serving(graph.uri) as server:
        patch.setattr(ServedGraph, "handle", handle)
        found = server.holder.current.find_graph(None).graph
        assert found is not None
        found._repository.clock = ManualClock(NOW)
        with og.connect(server.url) as remote:
            yield remote


def rows_of(table: Any) -> list[Any]:
    """Return the rows of an Arrow table in the order of their ids."""
    return sorted(table.to_pylist(), key=lambda row: row["id"])


def check_tables(remote: RemoteGraph, copy: Graph) -> None:
    """Compare everything that is read without a query."""
    catalog, expected = remote.catalog(), copy.catalog()
    for kind in ("interfaces", "nodes", "edges"):
        types, copied = getattr(catalog, kind), getattr(expected, kind)
        assert types.keys() == copied.keys()
        for name, type_ in types.items():
            shown = {each.name: each.type for each in type_.properties.values()}
            assert shown == {each.name: each.type for each in copied[name].properties.values()}
    assert list(remote.export()) == list(copy.export())
    counts = {key: table.pin.row_count for key, table in remote.snapshot().tables.items()}
    assert counts == {key: table.pin.row_count for key, table in copy.snapshot().tables.items()}
    assert sorted(remote.to_networkx().edges) == sorted(copy.to_networkx().edges)
    for type_ in expected.tables():
        copied_rows = rows_of(copy.to_arrow(type_.name, kind=type_.kind))
        assert rows_of(remote.to_arrow(type_.name, kind=type_.kind)) == copied_rows
        for row in copied_rows[:2]:
            found = remote.get(type_.name, row["id"], kind=type_.kind)
            assert found == copy.get(type_.name, row["id"], kind=type_.kind)


def check_over_http(root: Path, seed: int, shape: str, questions: int) -> None:
    """Run the same reads over HTTP under rules and on second graphs that physically hold what is visible.

    Half of the reads follow updates that move rows in and out of sight of a server that has read the rows before.
    """
    random = Random(seed)
    subject = new_subject(root / "graph", random)
    rules = telling_rules(random, subject.heads["main"], shape)
    with served(subject.graph, rules) as remote:
        check_state(root / "before", random, subject, rules, remote, questions // 2)
        for _ in range(2):
            move_rows(subject, "main", rules)
        change(subject, "main")
        check_state(root / "after", random, subject, rules, remote, questions - questions // 2)


def check_state(
    root: Path, random: Random, subject: Subject, rules: Rules, remote: RemoteGraph, questions: int
) -> None:
    """Compare tables and a number of reads with a copy of the current state."""
    left = projected(subject.heads["main"], rules).catalog
    if not left.nodes:
        return
    copy = projected_copy(root, subject, rules)
    copy._repository.clock = ManualClock(NOW)
    check_tables(remote, copy)
    asked = 0
    for tried in range(10 * questions if left.edges else 0):
        try:
            read = GENERATORS[tried % 2](Random(random.random()), left, subject.values).query()
        except IndexError:
            continue
        found, expected = outcome(remote, read), outcome(copy, read)
        wrong = None if found == expected else f"{found}, the copy {expected}"
        if isinstance(found, Result) and isinstance(expected, Result):
            body = parse_queries(read.text).queries[0].body
            cut = body.limit is not None or body.skip is not None
            wrong = differs(found, expected, ordered=bool(body.order), cut=cut)
            asked += 1
        assert wrong is None, f"{wrong}\n{read.text}\n{read.params}\n{rules.visibility}"
        if asked == questions:
            break


@pytest.mark.parametrize("shape", SHAPES)
def test_http_shows_the_projected_copy(tmp_path: Path, shape: str) -> None:
    check_over_http(tmp_path, SEED + 40_000 + SHAPES.index(shape), shape, 4)


@pytest.mark.long
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("number", range(20))
def test_http_shows_the_projected_copy_long(tmp_path: Path, shape: str, number: int) -> None:
    check_over_http(tmp_path, SEED + 41_000 + 100 * number + SHAPES.index(shape), shape, 30)
