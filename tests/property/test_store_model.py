"""The versioned store compared with a plain dictionary.

Random writes on two tables, branches, reads of the past, compaction, cleanup and reopening. After each step the store
must equal the model: the same rows on every branch and at every point of history that the cleanups had to keep, and
`verify` finds nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from omnigraph.errors import BranchExists, BranchNotFound, Damaged
from omnigraph.storage.lance.indexes import IndexSpec
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.model.manifest_objects import GraphSpec, SchemaRecord, TableSpec
from omnigraph.versioning.upkeep.maintenance import cleanup, optimize
from omnigraph.versioning.upkeep.verify import verify
from omnigraph.versioning.write.branches import create_branch, delete_branch
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import WriteOptions
from support.graphs import PERSON_SCHEMA, Ticks, change, open_repository

KEYS = ("node:A", "node:B")
SPECS = [TableSpec("node", key.partition(":")[2], place, place, PERSON_SCHEMA) for place, key in enumerate(KEYS, 1)]
WANTED = {key: [IndexSpec("id"), IndexSpec("name")] for key in KEYS}
POOL = ["a", "b", "c", "d", "e", "o'f", "ü", "名"]
NOW = timedelta(seconds=-3600)

Rows = dict[str, str]
Contents = dict[str, Rows]

ids = st.lists(st.sampled_from(POOL), unique=True, max_size=5)
places = st.integers(0, 10_000)
changes = st.fixed_dictionaries(
    {
        "kind": st.sampled_from(["append", "upsert", "delete", "overwrite", "mixed"]),
        "put": ids,
        "gone": ids,
        "name": st.text("xyz", max_size=2),
    }
)


@dataclass
class Point:
    """A commit of the model."""

    id: str
    parent: Point | None
    version: int
    created_us: int
    contents: Contents
    kept: bool = True
    """True if no cleanup was allowed to remove it."""


@dataclass
class Line:
    """A branch: its head and its fork point."""

    head: Point
    fork: Point | None

    def points(self) -> list[Point]:
        """The first-parent chain, newest first."""
        found, point = [], self.head
        while point is not None:
            found.append(point)
            point = point.parent
        return found


def table(rows: Rows) -> pa.Table:
    return pa.table({"id": list(rows), "name": list(rows.values())}, schema=PERSON_SCHEMA)


def rows_of(snapshot, key: str) -> Rows:
    found = snapshot.table(key).read(["id", "name"]).to_pylist()
    rows = {row["id"]: row["name"] for row in found}
    assert len(rows) == len(found), "an id is there twice"
    return rows


class Store(RuleBasedStateMachine):
    """The store and its model."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="store-model-"))
        self.clock = Ticks()
        self.count = 0

    @initialize()
    def create(self) -> None:
        root = self.folder / "g"
        record = SchemaRecord("h", "", "{}")
        self.repository = Repository.create(
            root, GraphSpec(record, tuple(SPECS)), sync=False, clock=self.clock, environ={}
        )
        (commit,) = self.repository.commits()
        empty: Contents = {key: {} for key in KEYS}
        genesis = Point(commit.id, None, 1, commit.created_us, empty)
        self.points = [genesis]
        self.lines = {"main": Line(genesis, None)}

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def pick(self, place: int) -> str:
        """A random branch."""
        return sorted(self.lines)[place % len(self.lines)]

    # -- writing -------------------------------------------------------------------------------------

    @rule(place=places, asked=st.dictionaries(st.sampled_from(KEYS), changes, min_size=1))
    def write(self, place: int, asked: dict[str, dict]) -> None:
        branch = self.pick(place)
        line = self.lines[branch]
        after = {key: dict(rows) for key, rows in line.head.contents.items()}
        touched = False
        wanted = {}
        for key, one in asked.items():
            wanted[key], effect = self._change(after[key], one)
            touched |= effect
        commit = change(self.repository, wanted, branch=branch, message=f"step {self.count}")
        assert (commit is not None) == touched
        if commit is None:
            return
        assert commit.parent_id == line.head.id
        line.head = Point(commit.id, line.head, commit.manifest_version, commit.created_us, after)
        self.points.append(line.head)

    def _change(self, rows: Rows, one: dict) -> tuple[TableWrite, bool]:
        """Choose a change, apply it to `rows`, and return it with whether it has an effect."""
        self.count += 1
        name = f"{one['name']}{self.count}"
        put = dict.fromkeys(one["put"], name)
        if one["kind"] == "overwrite":
            effect = bool(put or rows)
            rows.clear()
            rows.update(put)
            return TableWrite(overwrite=table(put)), effect
        gone = [id_ for id_ in one["gone"] if id_ not in put] if one["kind"] in ("delete", "mixed") else []
        effect = any(id_ in rows for id_ in gone)
        fresh = {id_: name for id_ in put if id_ not in rows}
        for id_ in gone:
            rows.pop(id_, None)
        if one["kind"] == "append":
            rows.update(fresh)
            return TableWrite(append=table(fresh)), bool(fresh)
        if one["kind"] == "delete":
            return TableWrite(delete=gone), effect
        rows.update(put)
        if one["kind"] == "upsert":
            return TableWrite(upsert=table(put)), bool(put)
        known = {id_: name for id_ in put if id_ not in fresh}
        return TableWrite(append=table(fresh), upsert=table(known), delete=gone), effect or bool(put)

    # -- branches ------------------------------------------------------------------------------------

    @rule(name=st.sampled_from(["x", "y", "x/y", "Z"]), place=places, past=st.none() | places)
    def create_branch(self, name: str, place: int, past: int | None) -> None:
        source = self.pick(place)
        kept = [point for point in self.points if point.kept]
        start = self.lines[source].head if past is None else kept[past % len(kept)]
        at = None if past is None else start.id
        if name in self.lines:
            with pytest.raises(BranchExists):
                create_branch(self.repository, name, from_branch=source, at=at)
            return
        head = create_branch(self.repository, name, from_branch=source, at=at)
        assert head.commit_id == start.id
        self.lines[name] = Line(start, start)

    @rule(name=st.sampled_from(["x", "y", "x/y", "Z"]))
    def delete_branch(self, name: str) -> None:
        if name in self.lines:
            delete_branch(self.repository, name)
            del self.lines[name]
        else:
            with pytest.raises(BranchNotFound):
                delete_branch(self.repository, name)

    # -- reading the past ----------------------------------------------------------------------------

    @rule(place=places)
    def read_commit(self, place: int) -> None:
        point = self.points[place % len(self.points)]
        self._expect(point, at=point.id)

    @rule(place=places, step=places, way=st.sampled_from(["version", "name", "time"]))
    def read_along_a_branch(self, place: int, step: int, way: str) -> None:
        branch = self.pick(place)
        line = self.lines[branch].points()
        point = line[step % len(line)]
        at = {
            "version": point.version,
            "name": f"manifest:{branch}:v{point.version}",
            "time": datetime.fromtimestamp(point.created_us / 1_000_000, UTC),
        }[way]
        self._expect(point, branch=branch, at=at)

    def _expect(self, point: Point, **where) -> None:
        snapshot = self.repository.snapshot(**where)
        assert (snapshot.commit_id, snapshot.version) == (point.id, point.version)
        try:
            assert {key: rows_of(snapshot, key) for key in KEYS} == point.contents
        except Damaged as error:
            if point.kept or error.code != "version_reclaimed":
                raise

    # -- maintenance ---------------------------------------------------------------------------------

    @rule(place=places, indexed=st.booleans())
    def optimize(self, place: int, indexed: bool) -> None:
        branch = self.pick(place)
        line = self.lines[branch]
        optimize(self.repository, WriteOptions(branch), wanted=WANTED if indexed else None)
        commit = self.repository.commits(branch)[0]
        if commit.id != line.head.id:
            line.head = Point(commit.id, line.head, commit.manifest_version, commit.created_us, line.head.contents)
            self.points.append(line.head)

    @rule(keep=st.integers(0, 4))
    def cleanup(self, keep: int) -> None:
        stats = cleanup(self.repository, keep=keep, confirm=True, grace=NOW)
        assert [one.error for one in stats] == [None] * len(KEYS)
        retained = set()
        for line in self.lines.values():
            retained |= {point.id for point in line.points()[: max(keep, 1)]}
            retained |= {line.fork.id} if line.fork is not None else set()
        for point in self.points:
            point.kept &= point.id in retained
            if point.kept:
                self._expect(point, at=point.id)

    @rule()
    def reopen(self) -> None:
        self.repository = open_repository(self.folder / "g", clock=self.clock)

    @precondition(lambda self: hasattr(self, "repository"))
    @invariant()
    def heads_are_right(self) -> None:
        assert self.repository.branches() == sorted(self.lines, key=lambda name: (name != "main", name))
        for branch, line in self.lines.items():
            snapshot = self.repository.snapshot(branch)
            assert snapshot.commit_id == line.head.id
            for key in KEYS:
                assert rows_of(snapshot, key) == line.head.contents[key]
                assert snapshot.tables[key].pin.row_count == len(line.head.contents[key])

    @rule()
    def nothing_is_amiss(self) -> None:
        assert verify(self.repository) == []
        for branch, line in self.lines.items():
            assert [commit.id for commit in self.repository.commits(branch)] == [point.id for point in line.points()]


QUIET = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def test_store_equals_the_model():
    run_state_machine_as_test(Store, settings=settings(max_examples=35, stateful_step_count=30, **QUIET))


@pytest.mark.long
def test_store_equals_the_model_long():
    run_state_machine_as_test(Store, settings=settings(max_examples=400, stateful_step_count=80, **QUIET))
