"""Everything that a commit makes visible is on disk before it becomes visible.

`os.fsync` is observed, not replaced: the flushed files are compared with the files that a commit leaves.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.errors import OutcomeUnknown, StorageError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.files import fsync as fsync_module
from omnigraph.storage.files.fsync import sync_files, sync_tree
from omnigraph.storage.files.layout import manifest_file
from omnigraph.storage.lance.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.lance.table_versions import compacted
from omnigraph.storage.manifest.commit_log import CommitLog
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.purge import sweep
from support.graphs import KNOWS, PERSON, change, files_below, knows, new_line, new_repository, open_repository, people


@pytest.fixture
def flushed(monkeypatch):
    """The flushed paths, in order."""
    paths: list[Path] = []
    real = os.fsync

    def fsync(handle):
        paths.append(Path(f"/proc/self/fd/{handle}").readlink())
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(fsync_module, "_synced", fsync_module._SyncedFolders())
    return paths


def needed(root, before):
    """Return the new files below `root` that a reader needs; transaction files and hints are for writers only."""
    new = [root / name for name in files_below(root) if name not in before]
    return {path for path in new if "_transactions" not in path.parts and path.suffix != ".json"}


def log_entries(root, flushed):
    """Return the flushed entries of the log, under the names they have until they are complete."""
    return [path for path in flushed if path.parent == root / "__log" and path.name.startswith(".writing-")]


def folders_of(files):
    return {path.parent for path in files}


# -- the two functions ---------------------------------------------------------------------------------


def test_many_files_are_all_flushed(tmp_path, flushed):
    files = [tmp_path / str(number) for number in range(100)]
    for file in files:
        file.touch()
    sync_files(files)
    assert sorted(flushed) == sorted([*files, tmp_path, tmp_path.parent])


def test_files_are_flushed_with_their_folders(tmp_path, flushed):
    files = [tmp_path / "a" / "x", tmp_path / "a" / "y", tmp_path / "b" / "z"]
    for file in files:
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"")
    sync_files(files)
    assert sorted(flushed) == sorted([*files, tmp_path / "a", tmp_path / "b", tmp_path])


def test_the_parent_of_a_folder_is_flushed_once(tmp_path, flushed):
    folder = tmp_path / "a"
    folder.mkdir()
    (folder / "x").write_bytes(b"")
    sync_files([folder / "x"])
    assert tmp_path in flushed
    flushed.clear()
    sync_files([folder / "x"])
    assert sorted(flushed) == [folder, folder / "x"]
    (folder / "x").unlink()
    folder.rename(tmp_path / "old")
    folder.mkdir()
    (folder / "x").write_bytes(b"")
    flushed.clear()
    sync_files([folder / "x"])
    assert tmp_path in flushed, "another folder of that name"


def test_a_missing_file_is_skipped(tmp_path, flushed):
    sync_files([tmp_path / "never"])
    assert set(flushed) <= {tmp_path, tmp_path.parent}


def test_a_tree_is_flushed_before_the_folders_above(tmp_path, flushed):
    deep = tmp_path / "t" / "a" / "b"
    deep.mkdir(parents=True)
    for file in (deep / "x", tmp_path / "t" / "y"):
        file.write_bytes(b"")
    sync_tree(tmp_path / "t")
    inside = {tmp_path / "t", tmp_path / "t" / "a", deep, deep / "x", tmp_path / "t" / "y"}
    assert set(flushed[: len(inside)]) == inside
    assert flushed[len(inside) :] == [tmp_path, tmp_path.parent]


def test_a_failing_disk_raises(tmp_path, monkeypatch):
    (tmp_path / "x").write_bytes(b"")

    def refuse(_):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(OSError, match="Input/output error"):
        sync_files([tmp_path / "x"])


# -- tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one",
    [
        TableWrite(append=people("n")),
        TableWrite(upsert=people("a", "n")),
        TableWrite(delete=["a"]),
        TableWrite(overwrite=people("o")),
        TableWrite(append=people("n"), upsert=people("b"), delete=["a"]),
    ],
    ids=["append", "upsert", "delete", "overwrite", "mixed"],
)
def test_a_promoted_change_is_flushed(tmp_path, flushed, one):
    line = new_line(tmp_path, sync=True)
    line.write(TableWrite(append=people("a", "b", "c")))
    before = files_below(tmp_path)
    flushed.clear()
    line.write(one)
    files = needed(tmp_path, before)
    assert files <= set(flushed)
    assert folders_of(files) <= set(flushed)


def test_the_folder_of_the_first_rows_is_flushed(tmp_path, flushed):
    line = new_line(tmp_path, sync=True)
    flushed.clear()
    line.write(TableWrite(append=people("a")))
    assert tmp_path / line.folder in flushed


def test_a_new_table_is_flushed(tmp_path, flushed):
    line = new_line(tmp_path, sync=True)
    assert needed(tmp_path, ()) <= set(flushed)
    assert {tmp_path / line.folder, tmp_path / "nodes", tmp_path} <= set(flushed)


@pytest.mark.parametrize("indexed", [False, True])
def test_only_the_new_files_of_a_compacted_table_are_flushed(tmp_path, flushed, indexed):
    line = new_line(tmp_path, sync=True)
    for id_ in "abcd":
        line.write(TableWrite(append=people(id_)))
    if indexed:
        staged, _ = stage_indexes(line.table, [IndexSpec("name")])
        line.version = staged.promote()[0].version
    line.write(TableWrite(delete=["b"]))
    before = files_below(tmp_path)
    flushed.clear()
    table = compacted(line.table, always=True)
    files = needed(tmp_path, before)
    assert table.fragment_count == 1
    assert files <= set(flushed)
    assert folders_of(files) <= set(flushed)
    assert {path for path in flushed if path.is_file()} == files


def test_an_index_is_flushed(tmp_path, flushed):
    line = new_line(tmp_path, sync=True)
    line.write(TableWrite(append=people("a", "b")))
    before = files_below(tmp_path)
    staged, _ = stage_indexes(line.table, [IndexSpec("name")])
    flushed.clear()
    staged.promote()
    files = needed(tmp_path, before)
    assert any("_indices" in path.parts for path in files)
    assert files <= set(flushed)
    assert folders_of(files) <= set(flushed)


# -- a graph -------------------------------------------------------------------------------------------


def test_a_new_graph_is_flushed_with_its_parent_folder(tmp_path, flushed):
    new_repository(tmp_path / "graphs" / "g", sync=True)
    files = needed(tmp_path / "graphs" / "g", ())
    assert {file for file in files if file.suffix in (".manifest", ".lance")} <= set(flushed)
    assert {tmp_path / "graphs" / "g", tmp_path / "graphs"} <= set(flushed)


def test_a_commit_flushes_tables_before_the_publish(tmp_path, flushed):
    root = tmp_path / "g"
    repository = new_repository(root, sync=True)
    before = files_below(root)
    flushed.clear()
    change(repository, {PERSON: TableWrite(append=people("a")), KNOWS: TableWrite(append=knows(("a", "a")))})
    files = {path for path in needed(root, before) if path.name != "__publish_lock" and path.suffix != ".log"}
    assert files <= set(flushed)
    (entry,) = log_entries(root, flushed)
    tables = [path for path in files if path.is_relative_to(root / "nodes") or path.is_relative_to(root / "edges")]
    assert max(flushed.index(path) for path in tables) < flushed.index(entry)
    assert root / "__log" in flushed[flushed.index(entry) :]


def test_a_checkpoint_is_flushed_before_entries_are_removed(tmp_path, flushed, monkeypatch):
    root = tmp_path / "g"
    repository = new_repository(root, sync=True)
    change(repository, {PERSON: TableWrite(append=people("a"))})
    before = files_below(root)
    flushed.clear()
    trimmed: list[list[Path]] = []
    monkeypatch.setattr(CommitLog, "trim", lambda *_: trimmed.append([*flushed]))
    manifest = repository.manifest
    manifest.checkpoint(repository.state().manifest)
    files = {path for path in needed(root, before) if path.is_relative_to(root / "__manifest")}
    version = manifest_file(root / "__manifest", 2)
    assert version in files
    assert files <= set(trimmed[0])
    data = [path for path in files if path.parent.name == "data"]
    assert max(flushed.index(path) for path in data) < flushed.index(version)
    assert root / "__manifest" / "_versions" in trimmed[0]


def test_the_folder_of_a_missing_log_is_flushed(tmp_path, flushed):
    """A copy without the log, or a process that died while it created the graph."""
    root = tmp_path / "g"
    new_repository(root, sync=True)
    (root / "__log").rmdir()
    repository = open_repository(root, sync=True)
    flushed.clear()
    change(repository, {PERSON: TableWrite(append=people("a"))})
    (entry,) = log_entries(root, flushed)
    assert root in flushed[: flushed.index(entry)]


def test_sync_can_be_turned_off(tmp_path, flushed):
    repository = new_repository(tmp_path / "g", sync=False)
    change(repository, {PERSON: TableWrite(append=people("a"))})
    assert flushed == []


def test_a_disk_that_fails_to_flush_the_publish_is_a_storage_error(tmp_path, monkeypatch):
    root = tmp_path / "g"
    repository = new_repository(root, sync=True)
    real = os.fsync

    def fsync(handle):
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.parent == root / "__log":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    manifest = repository.manifest
    state = repository.state().manifest
    with pytest.raises(StorageError, match="Input/output error"):
        manifest.publish(state, Change())


def test_a_commit_whose_entry_cannot_be_flushed_is_not_acknowledged(tmp_path, monkeypatch):
    """The folder of the log and the removal of the temporary name fail: neither failure hides the other."""
    root = tmp_path / "g"
    graph = og.init(root, "node Person { name: String @key }", environ={})
    before = graph.commits()
    real, remove = os.fsync, Path.unlink

    def fsync(handle):
        if Path(f"/proc/self/fd/{handle}").readlink() == root / "__log":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    def unlink(path, missing_ok=False):
        if path.parent == root / "__log":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        remove(path, missing_ok)

    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", fsync)
        failing.setattr(Path, "unlink", unlink)
        with pytest.raises(OutcomeUnknown, match="Input/output error") as unknown:
            graph.mutate('insert Person { name: "a" }')
    assert [commit.id for commit in graph.commits()] == [unknown.value.commit_id, *(commit.id for commit in before)]
    graph.mutate('insert Person { name: "b" }')
    assert graph.verify(deep=True) == []


def test_a_write_whose_upgrade_cannot_be_flushed_is_refused(tmp_path, monkeypatch):
    root = tmp_path / "g"
    graph = og.init(root, "node Person { name: String @key }", environ={})
    text, before, real = "query people() { match { $p: Person } return { $p.name } }", graph.commits(), os.fsync
    failed = []

    def fsync(handle):
        if Path(f"/proc/self/fd/{handle}").readlink() == root / "__manifest" / "_versions" and not failed:
            failed.append(handle)
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError, match="Input/output error"):
            graph.store_query(text)
    assert failed
    assert graph.commits() == before
    graph.store_query(text)
    assert graph.verify(deep=True) == []


def test_a_purge_whose_claim_cannot_be_flushed_leaves_no_claim(tmp_path, monkeypatch):
    root = tmp_path / "g"
    graph = og.init(root, "node Person { name: String @key }", environ={})
    graph.mutate('insert Person { name: "a" }')
    real = os.fsync

    def fsync(handle):
        if Path(f"/proc/self/fd/{handle}").readlink() == root:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    with monkeypatch.context() as failing:
        failing.setattr(os, "fsync", fsync)
        with pytest.raises(StorageError, match="Input/output error"):
            graph.purge("Person", ["a"], reason="test")
    assert graph.purge("Person", ["a"], reason="test").rows == {"node:Person": 1}


def test_a_purge_whose_removals_cannot_be_flushed_is_resumed(tmp_path, monkeypatch):
    root = tmp_path / "g"
    graph = og.init(root, "node Person { name: String @key }", environ={})
    graph.mutate('insert Person { name: "a" }')

    def refuse(_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as failing:
        failing.setattr(sweep, "sync_folders_below", refuse)
        with pytest.raises(StorageError, match="cannot be flushed to disk"):
            graph.purge("Person", ["a"], reason="test")
    assert len(graph.purge_resume()) == 1
    assert graph.verify(deep=True) == []


def test_a_temporary_name_that_remains_does_not_skip_the_flush(tmp_path, monkeypatch, flushed):
    root = tmp_path / "g"
    graph = og.init(root, "node Person { name: String @key }", environ={})
    flushed.clear()
    remove = Path.unlink

    def unlink(path, missing_ok=False):
        if path.parent == root / "__log":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        remove(path, missing_ok)

    with monkeypatch.context() as failing:
        failing.setattr(Path, "unlink", unlink)
        graph.mutate('insert Person { name: "a" }')
    assert flushed[-1] == root / "__log"


def test_files_of_large_values_are_flushed(tmp_path, flushed):
    schema = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("raw", pa.large_binary())])
    line = new_line(tmp_path, schema=schema, sync=True)
    before = files_below(tmp_path)
    flushed.clear()
    line.write(TableWrite(append=pa.table({"id": ["a"], "raw": [b"x" * 100_000]}, schema=schema)))
    assert needed(tmp_path, before) <= set(flushed)


def test_what_a_purge_removed_is_flushed_before_it_ends(tmp_path, flushed):
    graph = og.init(tmp_path / "g", "node Person { name: String @key }\n")
    graph.load([{"type": "Person", "data": {"name": name}} for name in ("ana", "bob")], mode="append")
    graph.mutate('query q() { delete Person where name = "ana" }')
    last = []
    with arm("purge.swept", flushed.clear), arm("purge.before_end", lambda: last.extend(flushed)):
        graph.purge("Person", ["ana"], reason="a test")
    folders = {path for path in (tmp_path / "g").rglob("*") if path.is_dir()}
    assert {"data", "_versions", "__log"} <= {path.name for path in folders}
    # The folder of the plan is removed after the purge has ended.
    assert folders - set(last) <= {tmp_path / "g" / "__cache"}
