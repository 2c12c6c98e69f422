"""An intact graph passes; every kind of damage is found and named, and the rest is still checked."""

from __future__ import annotations

import json
import os
import shutil
from contextlib import contextmanager
from contextvars import Context
from datetime import timedelta

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.checkpoints import current
from omnigraph.errors import IncompatibleFormat
from omnigraph.storage.files.layout import manifest_file
from omnigraph.storage.lance.indexes import IndexSpec
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.manifest import manifest_table as manifest_module
from omnigraph.versioning.model.manifest_objects import Pin
from omnigraph.versioning.upkeep.maintenance import cleanup, optimize
from omnigraph.versioning.upkeep.verify import EdgeEnds, Expected, verify
from omnigraph.versioning.write.branches import create_branch, delete_branch
from omnigraph.versioning.write.transaction import WriteOptions
from omnigraph.versioning.write.write import write
from support.graphs import (
    KNOWS,
    KNOWS_SCHEMA,
    PERSON,
    PERSON_SCHEMA,
    SCHEMA,
    add_people,
    change,
    files_below,
    knows,
    new_repository,
    open_repository,
    people,
    put_people,
)
from support.manifests import rewrite_rows

WANTED = {PERSON: [IndexSpec("id"), IndexSpec("name")]}
EXPECTED = Expected({PERSON: PERSON_SCHEMA, KNOWS: KNOWS_SCHEMA}, [EdgeEnds(KNOWS, PERSON, PERSON)])


@pytest.fixture
def root(tmp_path):
    return tmp_path / "g"


@pytest.fixture
def repository(root):
    repository = new_repository(root)
    change(repository, {PERSON: TableWrite(append=people("a", "b")), KNOWS: TableWrite(append=knows(("a", "b")))})
    return repository


def problems(root):
    """Return the problems that a new handle finds, as `where: what`."""
    return [f"{one.where}: {one.what}" for one in verify(open_repository(root), lambda _: EXPECTED)]


def only(root, *words):
    (found,) = problems(root)
    for word in words:
        assert word in found, found


def both(*edits):
    """Return an edit that makes several edits."""

    def edit(row):
        for one in edits:
            one(row)

    return edit


def edit_metadata(object_id, **fields):
    def edit(row):
        if row["object_id"] == object_id:
            row["metadata"] = json.dumps({**json.loads(row["metadata"]), **fields})

    return edit


def data_file(root, key_folder):
    return next(iter(sorted((root / key_folder).glob("*/data/*.lance"))))


# -- intact --------------------------------------------------------------------------------------------


def test_a_graph_after_every_operation_is_intact(repository, root):
    create_branch(repository, "side")
    change(repository, {PERSON: TableWrite(upsert=people("a", name="x"), delete=["b"])}, branch="side")
    change(repository, {KNOWS: TableWrite(overwrite=knows(("a", "a")))}, branch="side")
    create_branch(repository, "gone")
    add_people(repository, "c", branch="gone")
    delete_branch(repository, "gone")
    for number in range(70):
        put_people(repository, "x", name=str(number))
    optimize(repository, wanted=WANTED)
    optimize(repository, WriteOptions("side"), wanted=WANTED)
    cleanup(repository, keep=2, confirm=True)
    assert problems(root) == []


def test_verify_changes_nothing(repository, root):
    before = files_below(root)
    assert problems(root) == []
    assert files_below(root) == before


def test_a_read_only_graph_can_be_verified(repository, root):
    assert verify(open_repository(root, read_only=True)) == []


# -- tables --------------------------------------------------------------------------------------------


def test_a_missing_data_file(repository, root):
    data_file(root, "nodes").unlink()
    found = problems(root)
    assert f"{PERSON} at version 2" in found[0]
    assert "missing" in found[0]
    assert all(PERSON in one or KNOWS in one for one in found)


def test_a_truncated_data_file(repository, root):
    path = data_file(root, "nodes")
    path.write_bytes(path.read_bytes()[:20])
    assert any(one.startswith(f"{PERSON} at version 2") for one in problems(root))


def test_a_data_file_with_changed_bytes(repository, root):
    path = data_file(root, "edges")
    path.write_bytes(b"\x00" * path.stat().st_size)
    assert any(one.startswith(f"{KNOWS} at version 2") for one in problems(root))


def test_a_missing_version(repository, root):
    folder = root / repository.snapshot().tables[PERSON].folder
    manifest_file(folder, 2).unlink()
    found = problems(root)
    assert any(f"{PERSON} at version 2" in one and "reclaimed or lost" in one for one in found)


def test_a_missing_table(repository, root):
    shutil.rmtree(root / "edges")
    assert any(one.startswith(f"{KNOWS} at version 2") for one in problems(root))


def test_a_wrong_row_count_in_a_pin(repository, root):
    head = repository.state().get_head("main")
    pins = [
        Pin(p.table_id, p.incarnation, p.key, p.table_version, p.lance_version, p.row_count + (p.key == PERSON))
        for p in head.pins
    ]
    lists = [pin.to_list() for pin in pins]
    edits = edit_metadata("graph_head:main", pins=lists), edit_metadata(head.commit_id, pins=lists)
    rewrite_rows(root, both(*edits))
    only(root, f"{PERSON} at version 2", "has 2 rows, its pin counts 3")


def test_a_duplicate_id(repository, root):
    change(repository, {PERSON: TableWrite(append=people("a"))})
    only(root, f"{PERSON} at version 3", "an id occurs twice")


def test_a_version_made_by_another_commit(repository, root):
    """A table folder restored from another copy: the version numbers match, the rows belong to another history."""
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    put_people(repository, "a", name="mine")
    put_people(open_repository(copy), "a", name="theirs")
    shutil.rmtree(root / "nodes")
    shutil.copytree(copy / "nodes", root / "nodes")
    found = problems(root)
    assert any(f"{PERSON} at version 3" in one for one in found)
    assert all("is not the one that the commit refers to" in one for one in found), found


def test_a_version_made_by_another_commit_without_recorded_transactions(repository, root):
    """Pins of an earlier release record no transaction: the commit in the version's properties is compared."""
    copy = root.parent / "copy"
    shutil.copytree(root, copy)
    put_people(repository, "a", name="mine")
    put_people(open_repository(copy), "a", name="theirs")
    shutil.rmtree(root / "nodes")
    shutil.copytree(copy / "nodes", root / "nodes")
    rewrite_rows(root, edit_metadata("graph_head:main", transactions=None))
    only(root, f"{PERSON} at version 3", "was made by commit", "published by commit")


def test_a_dangling_edge(repository, root):
    change(repository, {KNOWS: TableWrite(append=knows(("a", "nobody"), ("nowhere", "nobody")))})
    found = problems(root)
    assert len(found) == 2
    assert f"{KNOWS}: 1 edges have a src that is not in {PERSON}" in found
    assert f"{KNOWS}: 2 edges have a dst that is not in {PERSON}" in found


def test_a_dangling_edge_on_a_branch_only(repository, root):
    create_branch(repository, "side")
    change(repository, {PERSON: TableWrite(delete=["b"])}, branch="side")
    only(root, KNOWS, "1 edges have a dst")


def test_columns_that_differ_from_the_schema(repository, root):
    wider = PERSON_SCHEMA.append(pa.field("age", pa.int32()))
    other = Expected({PERSON: wider, KNOWS: KNOWS_SCHEMA}, [])
    (found,) = verify(repository, lambda _: other)
    assert (found.where, found.what) == (PERSON, "has other columns than its type: age")


def test_tables_and_types_that_do_not_match(repository, root):
    other = Expected({PERSON: PERSON_SCHEMA, "node:Place": PERSON_SCHEMA}, [])
    assert [one.what for one in verify(repository, lambda _: other)] == [
        f"'{KNOWS}' has no type in the schema",
        "'node:Place' has no table",
    ]


# -- the manifest --------------------------------------------------------------------------------------


def test_a_head_with_a_missing_commit(repository, root):
    rewrite_rows(root, edit_metadata("graph_head:main", head_commit_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    only(root, "branch main", "01ARZ3NDEKTSV4RRFFQ69G5FAV is not a commit")


def test_a_head_whose_pins_differ_from_its_commit(repository, root):
    add_people(repository, "c")
    old = repository.find_commit(repository.commits()[1].id)
    pins = {"pins": [pin.to_list() for pin in old[1]], "transactions": [pin.transaction for pin in old[1]]}
    rewrite_rows(root, edit_metadata("graph_head:main", **pins))
    only(root, "branch main", "its pins differ")


def test_a_log_entry_that_was_damaged_since_the_graph_was_opened(repository, root):
    """The size and the times of the file are the same: only its bytes show it."""
    file = max((root / "__log").iterdir())
    before = file.stat()
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(bytes(data))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    version = repository.manifest._last
    object.__setattr__(version, "file_identity", repository.manifest._log.identity(version.entry))
    (found,) = verify(repository)
    assert found.damage
    assert f"'__log/{file.name}' is damaged" in found.what
    with pytest.raises(og.errors.Damaged, match=file.name):
        open_repository(root)


@pytest.mark.parametrize("which", ["head", "table", "commit"])
def test_a_duplicate_manifest_row(repository, root, which):
    ids = {
        "head": "graph_head:main",
        "table": "table:0000000000000001:0000000000000001",
        "commit": repository.snapshot().commit_id,
    }
    rewrite_rows(root, twice=[ids[which]])
    assert any(f"the row '{ids[which]}' occurs 2 times" in one for one in problems(root))


def test_a_commit_whose_parent_is_missing(repository, root):
    commit = repository.snapshot().commit_id
    rewrite_rows(root, edit_metadata(commit, parent_commit_id="01ARZ3NDEKTSV4RRFFQ69G5FAV"))
    only(root, f"commit {commit}", "its parent 01ARZ3NDEKTSV4RRFFQ69G5FAV is missing")


@pytest.mark.parametrize("wrong", [{"since": 1}, {"fork_commit_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}])
def test_a_commit_that_is_not_on_the_line_of_its_parent(repository, root, wrong):
    commit = repository.snapshot().commit_id
    parent = repository.get_commit(commit).parent_id
    rewrite_rows(root, edit_metadata(commit, **wrong))
    only(root, f"commit {commit}", f"is not on the line of its parent {parent}")


def test_a_commit_that_is_older_than_its_parent(repository, root):
    first = repository.snapshot().commit_id
    second = add_people(repository, "c").id

    def swap(row):
        if row["object_id"] in (first, second):
            row["table_version"] = 5 - row["table_version"]

    rewrite_rows(root, swap)
    assert any(f"commit {second}" in one and "is not newer than its parent" in one for one in problems(root))


def test_two_commits_of_one_manifest_version(repository, root):
    second = add_people(repository, "c").id

    def same(row):
        if row["object_id"] == second:
            row["table_version"] = 2

    rewrite_rows(root, same)
    assert any("shares manifest version 2" in one for one in problems(root))


@pytest.mark.parametrize("metadata", ["{", None, "[]", "{}"])
def test_a_damaged_head_does_not_hide_the_state_of_the_others(repository, root, metadata):
    create_branch(repository, "side")
    create_branch(repository, "bad")
    change(repository, {PERSON: TableWrite(append=people("a"))}, branch="side")

    def damage(row):
        if row["object_id"] == "graph_head:bad":
            row["metadata"] = metadata

    rewrite_rows(root, damage)
    found = problems(root)
    assert len(found) == 2
    assert any("branch bad" in one and "'graph_head:bad' is damaged" in one for one in found)
    assert any("an id occurs twice" in one for one in found)


def test_a_damaged_commit_does_not_hide_the_rest(repository, root):
    first = repository.snapshot().commit_id
    add_people(repository, "a")

    def damage(row):
        if row["object_id"] == first:
            row["metadata"] = "nonsense"

    rewrite_rows(root, damage)
    found = problems(root)
    assert any(f"the manifest row '{first}' is damaged" in one for one in found)
    assert any("an id occurs twice" in one for one in found)


def test_an_unknown_stamp_is_refused(repository):
    version = repository.state().manifest
    object.__setattr__(version, "stamp", "4")
    with pytest.raises(IncompatibleFormat):
        verify(repository)


# -- through the graph ---------------------------------------------------------------------------------


def test_a_graph_is_checked_against_its_schema(tmp_path):
    graph = og.init(tmp_path / "g", "node Person { name: String? }\nedge Knows: Person -> Person\n", sync=False)
    repository = graph._repository
    row = {"id": ["e"], "src": ["nobody"], "dst": ["nobody"]}
    change(repository, {KNOWS: TableWrite(append=pa.table(row, schema=KNOWS_SCHEMA))})
    assert sorted(one.what for one in graph.verify()) == [
        "1 edges have a dst that is not in node:Person",
        "1 edges have a src that is not in node:Person",
    ]
    change(repository, {PERSON: TableWrite(append=people("nobody"))})
    assert graph.verify() == []
    write(repository, lambda transaction: transaction.drop_table(KNOWS))
    assert [one.what for one in graph.verify() if "type" in one.what or "table" in one.what]


def test_a_graph_with_a_damaged_head_is_reported(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA.source, sync=False)
    graph.branch_create("bad")

    def damage(row):
        if row["object_id"] == "graph_head:bad":
            row["metadata"] = "{"

    rewrite_rows(tmp_path / "g", damage)
    again = og.open(tmp_path / "g", read_only=True)
    (found,) = again.verify()
    assert "graph_head:bad" in found.what


def test_a_manifest_with_a_missing_file_is_a_typed_error(repository, root, monkeypatch):
    monkeypatch.setattr(manifest_module, "_READ_TRIES", 2)
    shutil.rmtree(root / "__manifest" / "data")
    with pytest.raises(og.errors.Damaged, match="graph manifest"):
        open_repository(root)


# -- beside other processes ----------------------------------------------------------------------------


class Interrupted:
    """An operation of this thread that does something else once, at a checkpoint."""

    limited = True

    def __init__(self, at, do):
        self._left = at
        self._do = do
        self.is_done = False

    def check(self):
        self._left -= 1
        if self._left == 0:
            self.is_done = True
            # The other handle is not part of the operation of this one.
            Context().run(self._do)


@contextmanager
def interrupted(at, do):
    operation = Interrupted(at, do)
    token = current.set(operation)
    try:
        yield operation
    finally:
        current.reset(token)


def seed_for_removal(root):
    graph = og.init(root, "node Person { name: String @key }\nedge Knows: Person -> Person\n", sync=False)
    people = [{"type": "Person", "data": {"name": name}} for name in ("ana", "bob", "cy")]
    graph.load([*people, {"edge": "Knows", "from": "ana", "to": "bob", "data": {}}], mode="append")
    graph.branch_create("draft")
    graph.mutate('query q() { delete Person where name = "cy" }')


def purge_elsewhere(root):
    og.open(root, sync=False).purge("Person", ["ana"], edges=True, reason="a test")


def clean_elsewhere(root):
    """Remove the versions that the heads of an open handle pin."""
    graph = og.open(root, sync=False)
    graph.branch_delete("draft")
    graph.mutate('query q() { delete Person where name = "ana" }')
    graph.optimize()
    assert sum(one.old_versions_removed for one in cleanup(graph._repository, keep=0, confirm=True, grace=timedelta(0)))


def verify_beside(tmp_path, do, step):
    """Verify with another operation at every `step`-th checkpoint of the verification."""
    seed_for_removal(tmp_path / "seed")
    at, is_done = 1, True
    while is_done:
        root = tmp_path / str(at)
        shutil.copytree(tmp_path / "seed", root)
        graph = og.open(root)
        with interrupted(at, lambda root=root: do(root)) as operation:
            assert graph.verify(deep=at % 2 == 0) == []
        is_done, at = operation.is_done, at + step
        assert graph.verify(deep=True) == []
    return at


@pytest.mark.parametrize("do", [purge_elsewhere, clean_elsewhere])
def test_files_that_other_processes_remove_are_no_damage(tmp_path, do):
    assert verify_beside(tmp_path, do, 7) > 14


@pytest.mark.long
@pytest.mark.parametrize("do", [purge_elsewhere, clean_elsewhere])
def test_files_that_other_processes_remove_are_no_damage_long(tmp_path, do):
    verify_beside(tmp_path, do, 1)
