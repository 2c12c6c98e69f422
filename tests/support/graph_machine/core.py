"""State of the machine: handles, branches, commits, and the comparison after each step."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from random import Random
from time import time_ns
from typing import Any

from hypothesis.stateful import RuleBasedStateMachine

import omnigraph as og
from omnigraph.errors import Damaged, OmniGraphError
from omnigraph.graph import Graph
from support.graph_machine.commits import Branch, ModelCommit, Tally
from support.graph_machine.comparison import expected_records, fits, plain, rows_of, sorted_lines, tables_of, with_id
from support.graph_machine.schema import GHOST, SEEDS, START
from support.graph_model import (
    Refusal,
    Schema,
    Tables,
    bind_ids,
    derived_id,
    is_unknown,
)
from support.store import repository_of


class Core(RuleBasedStateMachine):
    """One graph and its model."""

    tally = Tally()

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="model-"))
        self.uri = str(self.folder / "graph")
        self.now = time_ns() // 1000
        self.handles = [self.ticking(og.init(self.uri, START.text(), sync=False)), self.opened()]
        self.versions = count(1)
        tables: Tables = {type_.table: {} for type_ in START.types()}
        first = ModelCommit(
            self.handles[0].snapshot().commit_id,
            None,
            "init",
            START,
            tables,
            {key: next(self.versions) for key in tables},
        )
        self.branches = {"main": Branch(first, None)}
        self.commits = [first]
        self.branch = "main"
        self.gone: set[int] = set()
        """Table versions that may have been removed."""
        self.tally.lives += 1
        self.load_seeds()

    def teardown(self) -> None:
        assert self.handles[0].verify() == []
        shutil.rmtree(self.folder)

    def clock(self) -> int:
        return self.now

    def ticking(self, graph: Graph) -> Graph:
        """The graph with the clock of the machine."""
        repository_of(graph).clock = self.clock
        return graph

    def opened(self) -> Graph:
        return self.ticking(og.open(self.uri, sync=False))

    def load_seeds(self) -> None:
        result = self.handles[0].load(SEEDS, mode="append")
        tables = tables_of(SEEDS)
        for node in START.nodes.values():
            if node.key:
                tables[node.table] = {derived_id(node, row): row for row in rows_of(SEEDS, node)}
        for type_ in START.types():
            tables[type_.table] = {id_: dict.fromkeys(type_.props) | row for id_, row in tables[type_.table].items()}
        self.landed("load", result.commit_id, tables, list(tables))

    @property
    def head(self) -> ModelCommit:
        return self.branches[self.branch].head

    @property
    def schema(self) -> Schema:
        return self.head.schema

    @property
    def tables(self) -> Tables:
        return self.head.tables

    def attempt(self, refusals: Sequence[Refusal], action: Callable[[], Any]) -> Any:
        """Run an action; it must raise one of the expected errors, if there are any, and no other."""
        try:
            result = action()
        except OmniGraphError as error:
            self.refused(error, refusals)
            return None
        assert not refusals, f"accepted what must be refused: {refusals}"
        assert result is not None
        return result

    def refused(self, error: OmniGraphError, refusals: Sequence[Refusal]) -> None:
        said = f"{error.code}: {error}"
        assert refusals, f"refused a sound step: {said}"
        assert any(fits(error, refusal) for refusal in refusals), f"{said}\nexpected one of {refusals}"
        self.tally.refused[error.code] += 1

    def landed(
        self, kind: str, commit_id: str | None, tables: Tables, touched: Sequence[str], schema: Schema | None = None
    ) -> None:
        """Record a commit on the current branch."""
        graph = self.handles[0]
        commit = graph.commit(graph.snapshot(self.branch).commit_id)
        assert commit.id == (commit_id or commit.id)
        assert (commit.parent_id, commit.kind, commit.branch) == (self.head.id, kind, self.branch)
        if any(is_unknown(id_) for rows in tables.values() for id_ in rows):
            actual = tables_of(graph.export(branch=self.branch))
            tables = {key: bind_ids(rows, actual.get(key, {})) for key, rows in tables.items()}
        old = self.head
        schema = schema or old.schema
        pins = {key: next(self.versions) if key in touched else old.pins[key] for key in tables}
        made = ModelCommit(commit.id, old, kind, schema, tables, pins)
        self.commits.append(made)
        self.branches[self.branch].head = made
        self.tally.commits += 1

    def check(self, random: Random) -> None:
        """Compare the graph with the model."""
        graph = random.choice(self.handles)
        assert graph.branches() == ["main", *sorted(set(self.branches) - {"main"})]
        for branch in dict.fromkeys([self.branch, random.choice(list(self.branches))]):
            head = self.branches[branch].head
            snapshot = graph.snapshot(branch)
            assert snapshot.commit_id == head.id
            assert {key: table.pin.row_count for key, table in snapshot.tables.items()} == {
                key: len(rows) for key, rows in head.tables.items()
            }
            assert sorted_lines(graph.export(branch=branch)) == sorted_lines(expected_records(head))
            assert [commit.id for commit in graph.commits(branch)] == [commit.id for commit in head.line()]
        self.check_history(random, graph)

    def check_history(self, random: Random, graph: Graph) -> None:
        """Compare an earlier commit, unless a cleanup may have removed it."""
        commit = random.choice(self.commits)
        key = random.choice(list(commit.tables))
        name = key.partition(":")[2]
        kept = commit.pins[key] not in self.gone
        ids = [*commit.tables[key], GHOST]
        id_ = random.choice(ids)
        # A name shared by a node type and an edge type means the node type.
        if key.startswith("edge:") and name in commit.schema.nodes:
            return
        try:
            row = graph.entity_at(name, id_, commit.id)
            assert plain(row) == plain(with_id(id_, commit.tables[key].get(id_)))
            if not self.gone.intersection(commit.pins.values()):
                assert sorted_lines(graph.export(at=commit.id)) == sorted_lines(expected_records(commit))
        except Damaged as error:
            self.refused(error, [] if kept else [Refusal("version_reclaimed")])
