"""Indexes affect speed, never results: building, pending indexes, and the effects of compaction."""

from __future__ import annotations

import lance
import numpy as np
import pyarrow as pa
import pytest

from omnigraph.storage.lance import indexes
from omnigraph.storage.lance.indexes import IndexSpec, count_uncovered, index_names, stage_indexes, uncovered_rows
from omnigraph.storage.lance.staging import StagedWrite, TableWrite
from omnigraph.versioning.upkeep.maintenance import _maintain_table, _Work
from support.graphs import files_below, new_line

WIDTH = 8
SCHEMA = pa.schema(
    [
        pa.field("id", pa.utf8(), nullable=False),
        pa.field("body", pa.utf8()),
        pa.field("rank", pa.int32()),
        pa.field("vec", pa.list_(pa.float32(), WIDTH)),
    ]
)
ID, RANK = IndexSpec("id"), IndexSpec("rank")


def documents(numbers, *, vectors=True):
    """Return documents whose words and vectors encode their number."""
    numbers = list(numbers)
    angles = np.array(numbers, np.float32)[:, None] * 0.01 + np.arange(WIDTH, dtype=np.float32)
    return pa.table(
        {
            "id": [f"d{number}" for number in numbers],
            "body": [f"common word{number}" for number in numbers],
            "rank": pa.array(numbers, pa.int32()),
            "vec": pa.array(list(np.cos(angles)) if vectors else [None] * len(numbers), pa.list_(pa.float32(), WIDTH)),
        },
        schema=SCHEMA,
    )


@pytest.fixture
def line(tmp_path):
    return new_line(tmp_path, schema=SCHEMA)


def build(line, *specs, rebuild=False):
    staged, pending = stage_indexes(line.table, specs, rebuild=rebuild)
    if staged is not None:
        table, _ = staged.promote()
        line.version = table.version
    return staged is not None, pending


def add_retired_indexes(line):
    """Build the text and vector index of an earlier release."""
    dataset = line.table.private()
    fragments = list(dataset.fragment_ids())
    text = dataset.create_index_uncommitted("body", "INVERTED", name="body_text", fragment_ids=fragments)
    options = {"metric": "cosine", "num_partitions": 2}
    near = dataset.create_index_uncommitted("vec", "IVF_FLAT", name="vec_vector", fragment_ids=fragments, **options)
    operation = lance.LanceOperation.CreateIndex([dataset.merge_existing_index_segments([text]), near], [])
    line.version = StagedWrite(line.table, lance.Transaction(line.version, operation)).promote()[0].version


# -- building ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [ID, RANK], ids=lambda spec: spec.name)
def test_an_index_is_built_and_used(line, spec):
    line.write(TableWrite(append=documents(range(50))))
    version = line.version
    built, pending = build(line, spec)
    assert built
    assert pending == []
    assert line.version == version + 1
    assert index_names(line.table) == {spec.name}
    assert not uncovered_rows(line.table)
    assert line.table.row_count == 50
    value = "'d7'" if spec is ID else "7"
    assert "ScalarIndexQuery" in line.table.dataset.scanner(filter=f"{spec.column} = {value}").explain_plan()
    assert line.table.read(["id"], filter=f"{spec.column} = {value}")["id"].to_pylist() == ["d7"]


def test_all_missing_indexes_are_built_in_one_version(line):
    line.write(TableWrite(append=documents(range(30))))
    version = line.version
    build(line, ID, RANK)
    assert line.version == version + 1
    assert index_names(line.table) == {"id_btree", "rank_btree"}


def test_a_second_build_does_nothing(line):
    line.write(TableWrite(append=documents(range(30))))
    build(line, ID, RANK)
    before = files_below(line.store.location.path)
    assert build(line, ID, RANK) == (False, [])
    assert files_below(line.store.location.path) == before


def test_only_missing_indexes_are_built(line):
    line.write(TableWrite(append=documents(range(30))))
    build(line, ID)
    first = {index.name: index.segments[0].uuid for index in line.table.dataset.describe_indices()}
    build(line, ID, RANK)
    second = {index.name: index.segments[0].uuid for index in line.table.dataset.describe_indices()}
    assert second["id_btree"] == first["id_btree"]
    assert set(second) == {"id_btree", "rank_btree"}


def test_a_rebuild_replaces_each_index_under_its_name(line):
    line.write(TableWrite(append=documents(range(30))))
    build(line, ID, RANK)
    line.write(TableWrite(append=documents(range(30, 40))))
    assert uncovered_rows(line.table)
    build(line, ID, RANK, rebuild=True)
    assert sorted(index.name for index in line.table.dataset.describe_indices()) == ["id_btree", "rank_btree"]
    assert not uncovered_rows(line.table)
    assert line.table.read(["id"], filter="rank = 35")["id"].to_pylist() == ["d35"]


def test_an_index_of_a_large_table_has_several_segments(line, monkeypatch):
    monkeypatch.setattr(indexes, "SEGMENT_ROWS", 25)
    for start in (0, 10, 20, 50):
        line.write(TableWrite(append=documents(range(start, start + (30 if start == 20 else 10)))))
    build(line, ID, RANK)

    def segments() -> dict[str, list[int]]:
        return {index.name: [len(one.fragment_ids) for one in index.segments] for index in described()}

    def described():
        return line.table.dataset.describe_indices()

    # Fragments of 10, 10, 30 and 10 rows.
    assert {name: sorted(sizes) for name, sizes in segments().items()} == {
        "id_btree": [1, 1, 2],
        "rank_btree": [1, 1, 2],
    }
    assert not uncovered_rows(line.table)
    for number in (3, 19, 20, 49, 55):
        assert "ScalarIndexQuery" in line.table.dataset.scanner(filter=f"rank = {number}").explain_plan()
        assert line.table.read(["id"], filter=f"rank = {number}")["id"].to_pylist() == [f"d{number}"]
        assert line.table.read(["rank"], filter=f"id = 'd{number}'")["rank"].to_pylist() == [number]
    assert line.table.read(["rank"], filter="rank >= 18 AND rank < 22")["rank"].to_pylist() == [18, 19, 20, 21]
    line.write(TableWrite(delete=["d19"], append=documents(range(60, 64))))
    assert line.table.read(["rank"], filter="rank > 17 AND rank < 21")["rank"].to_pylist() == [18, 20]
    monkeypatch.setattr(indexes, "SEGMENT_ROWS", 1_000)
    build(line, ID, RANK, rebuild=True)
    assert {name: len(sizes) for name, sizes in segments().items()} == {"id_btree": 1, "rank_btree": 1}
    assert line.table.read(["id"], filter="rank = 62")["id"].to_pylist() == ["d62"]


def test_indexes_of_an_empty_table_are_pending(line):
    built, pending = build(line, ID, RANK)
    assert not built
    assert [(one.column, one.reason) for one in pending] == [
        ("id", "the table is empty"),
        ("rank", "the table is empty"),
    ]


# -- indexes of earlier releases -----------------------------------------------------------------------


@pytest.mark.parametrize("rebuild", [False, True])
def test_text_and_vector_indexes_of_earlier_releases_are_dropped(line, rebuild):
    line.write(TableWrite(append=documents(range(30))))
    add_retired_indexes(line)
    build(line, ID)
    add_retired_indexes(line)
    line.write(TableWrite(append=documents(range(30, 40))))
    assert index_names(line.table) == {"id_btree", "body_text", "vec_vector"}
    assert count_uncovered(line.table, [ID]) == 10
    assert build(line, ID, rebuild=rebuild) == (True, [])
    assert index_names(line.table) == {"id_btree"}
    assert line.table.row_count == 40
    assert build(line, ID) == (False, [])


def test_a_table_with_indexes_of_earlier_releases_is_compacted_and_written(line):
    for start in range(0, 60, 3):
        line.write(TableWrite(append=documents(range(start, start + 3))))
    add_retired_indexes(line)
    line.write(TableWrite(delete=[f"d{number}" for number in range(0, 50, 2)], upsert=documents([51])))
    assert not uncovered_rows(line.table), "indexes that no query uses need no rows"
    table, stats = _maintain_table("node:Doc", line.table, _Work({"node:Doc": [ID]}, at_once=1, compact=True))
    line.version = table.version
    assert stats.committed
    assert line.table.fragment_count < 20
    assert index_names(line.table) == {"id_btree"}
    assert line.table.row_count == 35


# -- rows that change under an index -------------------------------------------------------------------


def test_rows_written_after_the_index_are_found(line):
    line.write(TableWrite(append=documents(range(30))))
    build(line, ID, RANK)
    line.write(
        TableWrite(append=documents([31]), upsert=documents([3]).set_column(2, "rank", pa.array([99], pa.int32())))
    )
    assert uncovered_rows(line.table)
    assert line.table.read(["id"], filter="rank = 99")["id"].to_pylist() == ["d3"]
    assert line.table.read(["id"], filter="rank = 3")["id"].to_pylist() == []
    assert line.table.read(["id"], filter="id = 'd31'")["id"].to_pylist() == ["d31"]


@pytest.mark.parametrize("fragments", [1, 20])
def test_optimize_after_delete_and_compaction_misses_no_result(line, fragments):
    size = 60 // fragments
    for start in range(0, 60, size):
        line.write(TableWrite(append=documents(range(start, start + size))))
    build(line, ID, RANK)
    line.write(TableWrite(delete=[f"d{number}" for number in range(50) if fragments == 1 or number % 3 != 2]))
    work = _Work({"node:Doc": [ID, RANK]}, at_once=1, compact=True)
    table, _ = _maintain_table("node:Doc", line.table, work)
    line.version = table.version
    assert line.table.fragment_count == 1
    assert not uncovered_rows(line.table)
    assert line.table.read(["id"], filter="rank = 55")["id"].to_pylist() == ["d55"]
    assert line.table.read(["id"], filter="rank = 0")["id"].to_pylist() == []


def test_indexes_of_two_branches_of_a_table_are_independent(line):
    line.write(TableWrite(append=documents(range(30))))
    base = line.version
    build(line, ID, RANK)
    mine = line.version
    line.version = base
    assert index_names(line.table) == set()
    line.write(TableWrite(delete=["d1"]))
    build(line, RANK)
    assert line.table.read(["id"], filter="rank = 1")["id"].to_pylist() == []
    line.version = mine
    assert line.table.read(["id"], filter="rank = 1")["id"].to_pylist() == ["d1"]
    assert index_names(line.table) == {"id_btree", "rank_btree"}
