"""Small manifests: one head, one commit per version."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.files.layout import MANIFEST
from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.create_once import create_once
from omnigraph.storage.manifest.checkpoint import is_state
from omnigraph.storage.manifest.manifest_schema import Row, to_row, to_rows
from omnigraph.storage.manifest.manifest_table import ManifestTable
from omnigraph.storage.manifest.manifest_version import Change, ManifestVersion
from omnigraph.versioning.write.repository import Repository

HEAD = "graph_head:main"


def commit_id(number: int) -> str:
    """The id of a commit."""
    return f"commit-{number:05}"


def head(number: int) -> Row:
    """The head of main on a commit."""
    return to_row(HEAD, "graph_head", metadata=json.dumps({"head_commit_id": commit_id(number)}))


def commit(number: int) -> Row:
    """A history row."""
    return to_row(commit_id(number), "graph_commit", table_version=number + 1)


def first_rows() -> pa.Table:
    """The rows of version 1."""
    return to_rows([head(0), commit(0)])


def manifest_at(root: Path, *, sync: bool = False) -> ManifestTable:
    """A handle, like that of another process."""
    return ManifestTable(Location(str(root), root), sync=sync)


def new_manifest(root: Path, *, sync: bool = False) -> tuple[ManifestTable, ManifestVersion]:
    """A new manifest and its version 1."""
    manifest = manifest_at(root, sync=sync)
    return manifest, manifest.create(first_rows(), "1003")


def change(number: int) -> Change:
    """Make a commit the head."""
    return Change(put=[head(number)], add=[commit(number)])


def step(manifest: ManifestTable, version: ManifestVersion, number: int | None = None) -> ManifestVersion:
    """Publish one version; commit and head have the number of the version before it, if no other is given."""
    return manifest.publish(version, change(version.version if number is None else number))


def steps(manifest: ManifestTable, version: ManifestVersion, count: int) -> ManifestVersion:
    """Publish several versions one after the other."""
    for _ in range(count):
        version = step(manifest, version)
    return version


def all_ids(manifest: ManifestTable, version: ManifestVersion) -> list[str]:
    """The ids of all rows of a version, except the position."""
    stored = version.checkpoint.dataset.to_table(columns=["object_id", "object_type"]).to_pylist()
    history = [row["object_id"] for row in stored if row["object_type"] == "graph_commit"]
    return sorted([*history, *version.added, *version.ids_of("graph_head")])


def expected_ids(last: int) -> list[str]:
    """The ids of all rows after commits 0 to `last`."""
    return [*map(commit_id, range(last + 1)), HEAD]


def head_of(version: ManifestVersion) -> str:
    """The commit of the head."""
    row = version.row(HEAD)
    assert row is not None
    found: str = json.loads(row["metadata"])["head_commit_id"]
    return found


def log_files(root: Path) -> list[str]:
    """The names of the files of the log, without hidden ones."""
    return sorted(path.name for path in (root / "__log").iterdir() if not path.name.startswith("."))


def entry_file(root: Path, first_version: int) -> Path:
    """The file of an entry."""
    return root / "__log" / f"{first_version:020}.log"


def rewrite_rows(root: Path, edit: Callable[[Row], object] | None = None, *, twice: Iterable[str] = ()) -> None:
    """Change rows of the manifest manually: fold the log into the checkpoint and write the table again."""
    manifest = Repository.open(root, sync=False).manifest
    version = manifest.checkpoint(manifest.read())
    schema = version.checkpoint.dataset.schema
    rows: list[Row] = version.checkpoint.dataset.to_table().to_pylist()
    for row in rows:
        if edit is not None:
            edit(row)
    rows += [row for row in rows if row["object_id"] in set(twice)]
    table = to_rows(rows).cast(schema)
    chosen = is_state(table)
    shutil.rmtree(root / MANIFEST)
    create_once(str(root / MANIFEST), None, table.filter(pc.invert(chosen)), table.filter(chosen))
