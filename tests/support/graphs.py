"""A small graph without a schema language: two tables, a clock that ticks, and one-line writes.

`Person` has `id` and `name`, `Knows` has `id`, `src` and `dst`. Files are not synced unless a test asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.staging import TableWrite, stage
from omnigraph.storage.lance.table_store import TableStore
from omnigraph.versioning.model.manifest_objects import Commit, GraphSpec, SchemaRecord, TableSpec
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.branches import create_branch
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write

PERSON = "node:Person"
KNOWS = "edge:Knows"
PERSON_SCHEMA = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("name", pa.utf8())])
KNOWS_SCHEMA = pa.schema([pa.field(name, pa.utf8(), nullable=False) for name in ("id", "src", "dst")])
SPECS = (TableSpec("node", "Person", 1, 1, PERSON_SCHEMA), TableSpec("edge", "Knows", 2, 2, KNOWS_SCHEMA))
SCHEMA = SchemaRecord("hash-1", "node Person { name: String? }\nedge Knows: Person -> Person\n", "{}")


class Ticks:
    """A clock that starts at real time and advances by one millisecond per reading, or explicitly.

    Real time, because ages of files come from the file system.
    """

    def __init__(self) -> None:
        self.now = int(datetime.now(UTC).timestamp() * 1_000_000)

    def __call__(self) -> int:
        self.now += 1_000
        return self.now

    def sleep(self, span: timedelta) -> None:
        self.now += int(span.total_seconds() * 1_000_000)

    def at(self) -> datetime:
        return datetime.fromtimestamp(self.now / 1_000_000, UTC)


def new_repository(root: Path, *, clock: Callable[[], int] | None = None, sync: bool = False) -> Repository:
    return Repository.create(root, GraphSpec(SCHEMA, SPECS), clock=clock or Ticks(), sync=sync, environ={})


def open_repository(root: Path, **settings: Any) -> Repository:
    return Repository.open(root, **{"clock": Ticks(), "sync": False, "environ": {}, **settings})


def people(*ids: str, name: str | None = None) -> pa.Table:
    """Rows of `Person`; the name defaults to the id."""
    return pa.table({"id": list(ids), "name": [name or f"name of {i}" for i in ids]}, schema=PERSON_SCHEMA)


def knows(*ends: tuple[str, str]) -> pa.Table:
    """Rows of `Knows`, each named `src-dst`."""
    rows = [{"id": f"{src}-{dst}", "src": src, "dst": dst} for src, dst in ends]
    return pa.Table.from_pylist(rows, schema=KNOWS_SCHEMA)


def change(repository: Repository, changes: Mapping[str, TableWrite], **options: Any) -> Commit | None:
    """Apply these changes in one commit."""

    def prepare(transaction: Transaction) -> None:
        for key, one in changes.items():
            transaction.change(key, one)

    return write(repository, prepare, WriteOptions(**options))


def add_people(repository: Repository, *ids: str, **options: Any) -> Commit:
    """Append persons in one commit."""
    commit = change(repository, {PERSON: TableWrite(append=people(*ids))}, **options)
    assert commit is not None
    return commit


def write_elsewhere(repository: Repository) -> None:
    """Write all tables on another branch, so that the versions of main are not the newest of their tables."""
    create_branch(repository, "elsewhere")
    written = {PERSON: TableWrite(append=people("x", "y")), KNOWS: TableWrite(append=knows(("x", "y")))}
    assert change(repository, written, branch="elsewhere") is not None


def put_people(repository: Repository, *ids: str, name: str | None = None, **options: Any) -> Commit:
    """Add or replace persons in one commit."""
    commit = change(repository, {PERSON: TableWrite(upsert=people(*ids, name=name))}, **options)
    assert commit is not None
    return commit


def ids_of(snapshot: Snapshot, key: str = PERSON) -> list[str]:
    """The ids of a table, sorted."""
    return sorted(snapshot.table(key).read(["id"])["id"].to_pylist())


def names_of(snapshot: Snapshot) -> dict[str, str]:
    """Id → name of every person."""
    rows = snapshot.table(PERSON).read(["id", "name"]).to_pylist()
    found = {row["id"]: row["name"] for row in rows}
    assert len(found) == len(rows), "an id is there twice"
    return found


def files_below(root: Path) -> dict[str, int]:
    """Every file and its size, by path relative to `root`."""
    return {str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()}


def table_store(root: Path, *, sync: bool = False) -> TableStore:
    return TableStore(Location(str(root), root), sync=sync)


@dataclass
class Line:
    """A table written only at its newest version, like a single branch."""

    store: TableStore
    folder: str
    version: int

    @property
    def table(self) -> Any:
        return self.store.open(self.folder, self.version)

    def write(self, one: TableWrite) -> bool:
        """Stage and promote; return False if there is nothing to do."""
        staged = stage(self.table, one, {})
        if staged is None:
            return False
        table, _ = staged.promote()
        self.version = table.version
        return True

    def rows(self, columns: Sequence[str] = ("id", "name")) -> list[dict[str, Any]]:
        return sorted(self.table.read(columns).to_pylist(), key=lambda row: row["id"])


def new_line(root: Path, *, schema: pa.Schema = PERSON_SCHEMA, folder: str = "nodes/a", sync: bool = False) -> Line:
    store = table_store(root, sync=sync)
    return Line(store, folder, store.create(folder, schema).version)


def branch_names(count: int) -> Iterable[str]:
    return (f"b{number:03}" for number in range(count))
