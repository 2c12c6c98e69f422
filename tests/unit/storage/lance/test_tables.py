"""One table at one version: every kind of change, and what a change preserves."""

from __future__ import annotations

import errno
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from omnigraph.errors import Damaged, StorageError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.lance import staging
from omnigraph.storage.lance import table_versions as numbered_versions
from omnigraph.storage.lance.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.staging import TableWrite, stage
from omnigraph.storage.lance.table_store import TableStore
from omnigraph.storage.lance.table_versions import FRAGMENTS_MAX, compacted
from omnigraph.storage.lance.tables import _LOOKUP_BY_INDEX_MAX, sql_text
from omnigraph.storage.lance.version_diff import difference
from support.graphs import PERSON_SCHEMA, Line, files_below, new_line, people, table_store

IDENTITY = ("id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version")
STRANGE = ["o'brien", "''", "ü☃", "a b", 'say "hi"', "back\\slash", "%_", "line\nbreak", "--", "名前", ""]


@pytest.fixture
def line(tmp_path):
    return new_line(tmp_path)


def stamps(line):
    return {row["id"]: row for row in line.rows(IDENTITY)}


def names(line):
    return {row["id"]: row["name"] for row in line.rows()}


# -- creating and opening ------------------------------------------------------------------------------


def test_a_new_table_is_empty_at_version_1(line):
    assert line.version == 1
    assert line.table.row_count == 0
    assert line.table.fragment_count == 0
    assert line.rows() == []
    assert line.table.schema.names == ["id", "name"]


def test_the_id_is_marked_as_the_key(line):
    stored = line.table.dataset.schema
    assert stored.field("id").metadata == {b"lance-schema:unenforced-primary-key": b"true"}
    assert not stored.field("name").metadata


def test_an_existing_folder_is_not_created_again(line):
    with pytest.raises(StorageError, match="nodes/a"):
        line.store.create(line.folder, PERSON_SCHEMA)


def test_a_handle_of_a_version_is_reused(line):
    assert line.store.open(line.folder, 1) is line.store.open(line.folder, 1)


def test_a_forgotten_handle_is_opened_again(line):
    first = line.store.open(line.folder, 1)
    line.store.forget(line.folder)
    assert line.store.open(line.folder, 1) is not first


@pytest.mark.parametrize(("folder", "version"), [("nodes/a", 7), ("nodes/none", 1)])
def test_a_missing_version_is_reported(line, folder, version):
    with pytest.raises(Damaged) as caught:
        line.store.open(folder, version)
    assert caught.value.code == "version_reclaimed"
    assert f"version {version} of table '{folder}'" in caught.value.message


def test_every_version_stays_readable(line):
    line.write(TableWrite(append=people("a")))
    line.write(TableWrite(append=people("b")))
    line.write(TableWrite(delete=["a"]))
    seen = {version: Line(line.store, line.folder, version).rows(["id"]) for version in range(1, 5)}
    assert [[row["id"] for row in rows] for rows in seen.values()] == [[], ["a"], ["a", "b"], ["b"]]


# -- changing ------------------------------------------------------------------------------------------


def test_append(line):
    assert line.write(TableWrite(append=people("b", "a")))
    assert names(line) == {"a": "name of a", "b": "name of b"}
    assert line.table.row_count == 2


def test_append_takes_columns_in_any_order(line):
    line.write(TableWrite(append=people("a").select(["name", "id"])))
    assert names(line) == {"a": "name of a"}


def test_upsert_adds_and_replaces(line):
    line.write(TableWrite(append=people("a", "b", "c")))
    line.write(TableWrite(upsert=people("b", "d", name="new")))
    assert names(line) == {"a": "name of a", "b": "new", "c": "name of c", "d": "new"}
    assert line.table.row_count == 4


def test_upsert_keeps_row_id_and_creation_version(line):
    line.write(TableWrite(append=people("a", "b", "c")))
    created = line.version
    before = stamps(line)
    line.write(TableWrite(upsert=people("c", "b", "x", name="new")))
    after = stamps(line)
    for id_ in "abc":
        assert after[id_]["_rowid"] == before[id_]["_rowid"]
        assert after[id_]["_row_created_at_version"] == created
    assert {id_: row["_row_last_updated_at_version"] for id_, row in after.items()} == {
        "a": created,
        "b": line.version,
        "c": line.version,
        "x": line.version,
    }
    assert after["x"]["_row_created_at_version"] == line.version
    assert len({row["_rowid"] for row in after.values()}) == 4


def test_delete(line):
    line.write(TableWrite(append=people("a", "b", "c")))
    assert line.write(TableWrite(delete=["c", "a", "never"]))
    assert names(line) == {"b": "name of b"}
    assert line.table.row_count == 1


def test_a_table_accepts_rows_after_all_were_deleted(line):
    line.write(TableWrite(append=people("a", "b")))
    line.write(TableWrite(delete=["a", "b"]))
    assert line.table.row_count == 0
    line.write(TableWrite(append=people("a")))
    assert names(line) == {"a": "name of a"}


def test_overwrite(line):
    line.write(TableWrite(append=people("a", "b")))
    line.write(TableWrite(overwrite=people("b", "c", name="new")))
    assert names(line) == {"b": "new", "c": "new"}


def test_overwrite_with_no_rows(line):
    line.write(TableWrite(append=people("a", "b")))
    assert line.write(TableWrite(overwrite=people()))
    assert line.table.row_count == 0
    assert line.table.schema.names == ["id", "name"]
    assert line.table.dataset.schema.field("id").metadata == {b"lance-schema:unenforced-primary-key": b"true"}


def test_row_ids_are_stable_after_an_overwrite(line):
    line.write(TableWrite(append=people("a")))
    line.write(TableWrite(overwrite=people("a", "b")))
    before = stamps(line)
    line.write(TableWrite(upsert=people("b", name="new"), append=people("c")))
    after = stamps(line)
    assert after["b"]["_rowid"] == before["b"]["_rowid"]
    assert len({row["_rowid"] for row in after.values()}) == 3


def test_append_upsert_and_delete_in_one_change(line):
    line.write(TableWrite(append=people("a", "b", "c", "d")))
    before = stamps(line)
    version = line.version
    line.write(TableWrite(append=people("n"), upsert=people("b", "m", name="new"), delete=["a", "d", "none"]))
    assert line.version == version + 1
    assert names(line) == {"b": "new", "c": "name of c", "m": "new", "n": "name of n"}
    assert line.table.row_count == 4
    assert stamps(line)["b"]["_rowid"] == before["b"]["_rowid"]
    assert stamps(line)["c"] == before["c"]


def test_changes_over_several_fragments(line):
    for id_ in "abcdef":
        line.write(TableWrite(append=people(id_)))
    line.write(TableWrite(upsert=people("a", "c", "f", name="new"), delete=["b", "d"]))
    assert names(line) == {"a": "new", "c": "new", "e": "name of e", "f": "new"}


@pytest.mark.parametrize(
    "change",
    [
        TableWrite(),
        TableWrite(append=people()),
        TableWrite(upsert=people()),
        TableWrite(delete=[]),
        TableWrite(delete=["none", "neither"]),
        TableWrite(append=people(), upsert=people(), delete=["none"]),
    ],
)
@pytest.mark.parametrize("filled", [False, True])
def test_a_change_without_effect_writes_no_version(line, change, filled):
    if filled:
        line.write(TableWrite(append=people("a")))
    version = line.version
    before = files_below(line.store.location.path)
    assert stage(line.table, change, {}) is None
    assert line.version == version
    assert files_below(line.store.location.path) == before


def test_an_empty_overwrite_of_an_empty_table_is_no_change(line):
    assert stage(line.table, TableWrite(overwrite=people()), {}) is None


@pytest.mark.parametrize("id_", STRANGE)
def test_any_text_can_be_an_id(line, id_):
    line.write(TableWrite(append=people(id_, "other")))
    assert line.table.rows_of([id_], ["id"])["id"].to_pylist() == [id_]
    line.write(TableWrite(upsert=people(id_, name="new")))
    assert names(line) == {id_: "new", "other": "name of other"}
    line.write(TableWrite(delete=[id_]))
    assert names(line) == {"other": "name of other"}


def test_more_ids_than_an_index_lookup_takes(line):
    count = _LOOKUP_BY_INDEX_MAX + 500
    ids = [f"p{number:05}" for number in range(count)]
    line.write(TableWrite(append=people(*ids, "o'brien")))
    before = stamps(line)
    line.write(TableWrite(upsert=people(*ids, "new", name="new")))
    assert set(names(line)) == {*ids, "o'brien", "new"}
    assert names(line)["o'brien"] == "name of o'brien"
    after = stamps(line)
    assert all(after[id_]["_rowid"] == before[id_]["_rowid"] for id_ in ids)
    found = line.table.rows_of([*ids, "none"], ["name"])
    assert found.schema.names == ["name"]
    assert found.num_rows == count
    line.write(TableWrite(delete=[*ids, "none"]))
    assert set(names(line)) == {"o'brien", "new"}


def test_rows_of_a_few_ids(line):
    line.write(TableWrite(append=people("a", "b", "c")))
    assert sorted(line.table.rows_of(["c", "a", "z"])["name"].to_pylist()) == ["name of a", "name of c"]
    assert line.table.rows_of([]).schema.names == ["id", "name"]
    assert line.table.rows_of([]).num_rows == 0


def test_reading_columns_filters_and_limits(line):
    line.write(TableWrite(append=people("a", "b", "c")))
    assert line.table.read(["name"]).schema.names == ["name"]
    assert line.table.read(filter=f"id = {sql_text('b')}")["id"].to_pylist() == ["b"]
    assert line.table.read(limit=2).num_rows == 2
    assert sum(batch.num_rows for batch in line.table.batches(["id"], filter="id > 'a'")) == 2


def test_every_kind_of_column_survives_an_upsert(tmp_path):
    schema = pa.schema(
        [
            pa.field("id", pa.utf8(), nullable=False),
            pa.field("day", pa.date32()),
            pa.field("time", pa.date64()),
            pa.field("big", pa.uint64()),
            pa.field("tags", pa.list_(pa.utf8())),
            pa.field("vec", pa.list_(pa.float32(), 2)),
            pa.field("raw", pa.large_binary()),
        ]
    )
    rows = pa.table(
        {
            "id": ["a", "b"],
            "day": pa.array([1, None], pa.date32()),
            "time": pa.array([86_400_000, None], pa.date64()),
            "big": pa.array([2**64 - 1, None], pa.uint64()),
            "tags": pa.array([["x", None], None], pa.list_(pa.utf8())),
            "vec": pa.array([[1.0, 2.0], None], pa.list_(pa.float32(), 2)),
            "raw": pa.array([b"\x00", None], pa.large_binary()),
        },
        schema=schema,
    )
    line = new_line(tmp_path, schema=schema)
    line.write(TableWrite(append=rows))
    line.write(TableWrite(upsert=rows.slice(0, 1)))
    assert line.rows(schema.names) == rows.to_pylist()


# -- isolation -----------------------------------------------------------------------------------------


def test_two_changes_of_one_version_are_isolated(line):
    line.write(TableWrite(append=people("a")))
    base = line.table
    left, right = (
        stage(base, TableWrite(append=people("l")), {}),
        stage(base, TableWrite(upsert=people("a", name="r")), {}),
    )
    lefts, _ = left.promote()
    rights, _ = right.promote()
    assert lefts.version != rights.version
    assert sorted(lefts.read()["id"].to_pylist()) == ["a", "l"]
    assert rights.read().to_pylist() == [{"id": "a", "name": "r"}]
    assert base.read().to_pylist() == [{"id": "a", "name": "name of a"}]


def test_branches_of_a_table_are_independent(line):
    line.write(TableWrite(append=people("a")))
    left, right = Line(line.store, line.folder, line.version), Line(line.store, line.folder, line.version)
    for number in range(5):
        left.write(TableWrite(append=people(f"l{number}")))
        right.write(TableWrite(append=people(f"r{number}"), delete=["a"] if number == 0 else []))
    assert [row["id"] for row in left.rows(["id"])] == ["a", *(f"l{n}" for n in range(5))]
    assert [row["id"] for row in right.rows(["id"])] == [f"r{n}" for n in range(5)]


def test_a_staged_change_creates_no_version(line):
    stage(line.table, TableWrite(append=people("a")), {})
    assert len(list((line.store.location.path / line.folder / "_versions").glob("*.manifest"))) == 1


def test_a_promotion_leaves_no_detached_manifest(line):
    line.write(TableWrite(append=people("a")))
    assert not list((line.store.location.path / line.folder / "_versions").glob("d*.manifest"))


def test_a_promotion_reports_version_rows_and_transaction(line):
    staged = stage(line.table, TableWrite(append=people("a", "b")), {"who": "me"})
    table, promoted = staged.promote()
    assert (promoted.version, promoted.row_count) == (table.version, 2)
    assert promoted.transaction_uuid == staged.transaction.uuid
    assert table.dataset.read_transaction(table.version).transaction_properties == {"who": "me"}


def test_a_transaction_property_is_read_beside_other_readers_of_the_handle(line):
    table, _ = stage(line.table, TableWrite(append=people("a")), {"who": "me"}).promote()
    with ThreadPoolExecutor(1) as pool:
        beside = pool.submit(lambda: [table.property("who") for _ in range(200)])
        while not beside.done():
            assert table.fragment_count == 1
        assert beside.result() == ["me"] * 200


@pytest.mark.parametrize("place", ["table.numbered", "table.promoted"])
def test_a_change_that_stops_before_its_promotion_is_invisible(line, place):
    with pytest.raises(Exception, match="failpoint"), arm(place):
        line.write(TableWrite(append=people("lost")))
    line.write(TableWrite(append=people("a")))
    assert names(line) == {"a": "name of a"}


def test_a_change_of_an_older_version_that_stops_before_its_promotion_is_invisible(line):
    other = Line(line.store, line.folder, line.version)
    line.write(TableWrite(append=people("a")))
    with pytest.raises(Exception, match="failpoint"), arm("table.detached"):
        other.write(TableWrite(append=people("lost")))
    assert names(other) == {}
    assert names(line) == {"a": "name of a"}


OWN = {
    "append": TableWrite(append=people("own")),
    "upsert": TableWrite(upsert=people("own", "b")),
    "delete": TableWrite(delete=["b"]),
    "overwrite": TableWrite(overwrite=people("own", "a", "c")),
    "mixed": TableWrite(append=people("own"), upsert=people("c"), delete=["b"]),
}
OTHER = {
    "append": TableWrite(append=people("other")),
    "upsert": TableWrite(upsert=people("a", "other")),
    "delete": TableWrite(delete=["a"]),
    "overwrite": TableWrite(overwrite=people("other")),
    "index": None,
}


@pytest.mark.parametrize("theirs", OTHER)
@pytest.mark.parametrize("mine", OWN)
def test_a_change_that_is_overtaken_contains_no_rows_of_others(line, mine, theirs):
    """Lance rebases a commit onto the newest version, in silence. Such a version is never returned."""
    alone = Line(line.store, "nodes/alone", line.store.create("nodes/alone", PERSON_SCHEMA).version)
    for one in (line, alone):
        one.write(TableWrite(append=people("a", "b", "c")))
    alone.write(OWN[mine])
    base = line.version
    overtaken = []

    def overtake() -> None:
        if overtaken:
            return
        overtaken.append(True)
        rival = Line(TableStore(line.store.location, sync=False), line.folder, base)
        if OTHER[theirs] is not None:
            rival.write(OTHER[theirs])
        else:
            stage_indexes(rival.table, [IndexSpec("name")])[0].promote()

    with arm("table.numbered", overtake):
        table, promoted = stage(line.table, OWN[mine], {}).promote()
    assert overtaken
    assert table.version > base + 1
    assert sorted(table.read(["id"])["id"].to_pylist()) == [row["id"] for row in alone.rows(["id"])]
    assert promoted.row_count == table.row_count
    assert all(base + 1 < version < table.version for version in table.built_on), "what Lance made is not pinned"


def test_a_change_of_the_newest_version_is_committed_in_one_step(line):
    line.write(TableWrite(append=people("a")))
    before = line.version
    with arm("table.detached"):
        line.write(TableWrite(append=people("b")))
    assert line.version == before + 1


# -- compaction ----------------------------------------------------------------------------------------


def in_fragments(line, count):
    for number in range(count):
        line.write(TableWrite(append=people(f"p{number:03}")))


def test_few_fragments_are_not_compacted(line):
    in_fragments(line, 3)
    before = files_below(line.store.location.path)
    assert compacted(line.table) is line.table
    assert files_below(line.store.location.path) == before


def test_too_many_fragments_are_compacted_into_one(line):
    in_fragments(line, FRAGMENTS_MAX + 3)
    line.write(TableWrite(upsert=people("p001", name="new"), delete=["p000"]))
    before, rows = stamps(line), names(line)
    small = compacted(line.table)
    assert small.fragment_count == 1
    assert small.row_count == line.table.row_count == FRAGMENTS_MAX + 2
    after = Line(line.store, line.folder, small.version)
    assert names(after) == rows
    assert stamps(after) == before
    assert line.table.fragment_count > FRAGMENTS_MAX, "the version it came from stays as it is"


def test_changes_after_a_compaction(line):
    in_fragments(line, 4)
    line.version = compacted(line.table, always=True).version
    before = stamps(line)
    line.write(TableWrite(upsert=people("p000", "new", name="new"), delete=["p001"]))
    assert sorted(names(line)) == ["new", "p000", "p002", "p003"]
    assert stamps(line)["p000"]["_rowid"] == before["p000"]["_rowid"]


def test_nothing_to_compact_creates_no_version(line):
    in_fragments(line, 1)
    before = files_below(line.store.location.path)
    assert compacted(line.table, always=True) is line.table
    assert files_below(line.store.location.path) == before


# -- fragments -----------------------------------------------------------------------------------------


@pytest.fixture
def small_fragments(monkeypatch):
    for module in (numbered_versions, staging):
        monkeypatch.setattr(module, "FRAGMENT_ROWS", 10)


def numbered(*numbers):
    return [f"p{number:03}" for number in numbers]


def sizes(table):
    return [rows for _, rows, _ in table.fragments]


@pytest.mark.usefixtures("small_fragments")
def test_many_rows_are_written_as_several_fragments(line):
    line.write(TableWrite(append=people(*numbered(*range(35)))))
    assert sizes(line.table) == [10, 10, 10, 5]
    line.write(TableWrite(overwrite=people(*numbered(*range(25)))))
    assert sizes(line.table) == [10, 10, 5]
    assert sorted(names(line)) == numbered(*range(25))


@pytest.mark.usefixtures("small_fragments")
def test_many_replaced_rows_keep_their_row_ids(line):
    line.write(TableWrite(append=people(*numbered(*range(35)))))
    before = stamps(line)
    changed = numbered(*range(3, 29))
    line.write(
        TableWrite(
            upsert=people(*changed, *numbered(*range(50, 70)), name="new"),
            append=people(*numbered(*range(80, 95))),
            delete=numbered(1, 30),
        )
    )
    after = stamps(line)
    kept = [id_ for id_ in before if id_ in after]
    assert len(kept) == 33
    assert [after[id_]["_rowid"] for id_ in kept] == [before[id_]["_rowid"] for id_ in kept]
    assert len({row["_rowid"] for row in after.values()}) == len(after) == 33 + 20 + 15
    assert {id_ for id_, name in names(line).items() if name == "new"} == {*changed, *numbered(*range(50, 70))}
    assert max(sizes(line.table)) == 10


@pytest.mark.usefixtures("small_fragments")
def test_compaction_bounds_fragments_and_skips_full_ones(line):
    line.write(TableWrite(append=people(*numbered(*range(30)))))
    full = line.table.fragments
    for number in range(40, 47):
        line.write(TableWrite(append=people(*numbered(number))))
    line.write(TableWrite(upsert=people(*numbered(5), name="new")))
    before = stamps(line)
    small = compacted(line.table, always=True)
    assert sizes(small) == [10, 10, 10, 8]
    assert [files for files, _, _ in small.fragments[:3]] == [files for files, _, _ in full]
    assert stamps(Line(line.store, line.folder, small.version)) == before


def test_compaction_skips_fragments_that_are_large_for_their_table(line, monkeypatch):
    monkeypatch.setattr(numbered_versions, "_FRAGMENT_ROWS_MIN", 5)
    line.write(TableWrite(append=people(*numbered(*range(20)))))
    large = line.table.fragments
    for number in range(40, 47):
        line.write(TableWrite(append=people(*numbered(number))))
    small = compacted(line.table, always=True)
    assert sizes(small) == [20, 7]
    assert small.fragments[:1] == large
    line.version = small.version
    line.write(TableWrite(append=people(*numbered(*range(100, 600)))))
    assert sorted(sizes(compacted(line.table, always=True))) == [27, 500], "what was large once is small by now"


@pytest.mark.usefixtures("small_fragments")
def test_a_large_table_with_full_fragments_is_not_compacted(line):
    line.write(TableWrite(append=people(*numbered(*range(10 * (FRAGMENTS_MAX + 5))))))
    assert line.table.fragment_count > FRAGMENTS_MAX
    assert compacted(line.table) is line.table


@pytest.mark.usefixtures("small_fragments")
def test_a_difference_reads_only_fragments_that_differ(line):
    line.write(TableWrite(append=people(*numbered(*range(35)))))
    before = line.table
    line.write(TableWrite(upsert=people(*numbered(5, 60), name="new"), delete=numbered(33)))
    here, there = (rows.read() for rows in difference(line.table, before))
    assert sorted(here["id"].to_pylist()) == numbered(5, 60)
    assert sorted(there["id"].to_pylist()) == numbered(5, 33)
    assert set(here["name"].to_pylist()) == {"new"}


# -- a disk that fails ---------------------------------------------------------------------------------


def test_a_lost_data_file_is_damage_that_names_the_table(line):
    line.write(TableWrite(append=people("a")))
    shutil.rmtree(line.store.location.path / line.folder / "data")
    store = table_store(line.store.location.path)
    with pytest.raises(Damaged) as caught:
        store.open(line.folder, line.version).read()
    assert caught.value.code == "missing_file"
    assert "nodes/a" in caught.value.message
    assert "verify" in caught.value.hint


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOSPC, "disk_full"), (errno.EACCES, "no_access"), (errno.EIO, "storage_error")]
)
def test_a_disk_that_fails_to_sync_fails_the_change(tmp_path, monkeypatch, number, code):
    line = new_line(tmp_path, sync=True)
    staged = stage(line.table, TableWrite(append=people("a")), {})

    def refuse(_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(StorageError) as caught:
        staged.promote()
    assert caught.value.code == code
    assert "nodes/a" in caught.value.message
