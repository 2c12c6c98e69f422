"""Indexes affect speed, never results: building, pending indexes, and the effects of compaction."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from lance.query import MatchQuery

from omnigraph.storage.lance import indexes as indexes_module
from omnigraph.storage.lance.indexes import IndexSpec, index_names, stage_indexes, uncovered_rows
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.lance.table_versions import compacted
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
ID, RANK, BODY, VEC = (
    IndexSpec("id", "btree"),
    IndexSpec("rank", "btree"),
    IndexSpec("body", "text"),
    IndexSpec("vec", "vector"),
)


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
def line(tmp_path, monkeypatch):
    monkeypatch.setattr(indexes_module, "VECTOR_ROWS_MIN", 20)
    return new_line(tmp_path, schema=SCHEMA)


def build(line, *specs, rebuild=False):
    staged, pending = stage_indexes(line.table, specs, rebuild=rebuild)
    if staged is not None:
        table, _ = staged.promote()
        line.version = table.version
    return staged is not None, pending


def text_hits(line, words, limit=100):
    found = line.table.dataset.to_table(
        full_text_query=MatchQuery(words, "body"), columns=["id", "_score"], limit=limit
    )
    return sorted(found["id"].to_pylist())


def nearest(line, number, count):
    query = documents([number])["vec"].to_pylist()[0]
    found = line.table.dataset.to_table(
        nearest={"column": "vec", "q": query, "k": count, "metric": "cosine"}, columns=["id", "_distance"]
    )
    return found["id"].to_pylist()


# -- building ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", [ID, RANK, BODY, VEC], ids=lambda spec: spec.name)
def test_each_kind_is_built_and_used(line, spec):
    line.write(TableWrite(append=documents(range(50))))
    version = line.version
    built, pending = build(line, spec)
    assert built
    assert pending == []
    assert line.version == version + 1
    assert index_names(line.table) == {spec.name}
    assert not uncovered_rows(line.table)
    assert line.table.row_count == 50
    dataset = line.table.dataset
    if spec.kind == "btree":
        value = "'d7'" if spec is ID else "7"
        assert "ScalarIndexQuery" in dataset.scanner(filter=f"{spec.column} = {value}").explain_plan()
        assert line.table.read(["id"], filter=f"{spec.column} = {value}")["id"].to_pylist() == ["d7"]
    elif spec.kind == "text":
        assert text_hits(line, "word7") == ["d7"]
        assert len(text_hits(line, "common")) == 50
    else:
        assert nearest(line, 7, 3)[0] == "d7"
        assert dataset.describe_indices()[0].index_type.startswith("IVF")


def test_all_missing_indexes_are_built_in_one_version(line):
    line.write(TableWrite(append=documents(range(30))))
    version = line.version
    build(line, ID, RANK, BODY, VEC)
    assert line.version == version + 1
    assert index_names(line.table) == {"id_btree", "rank_btree", "body_text", "vec_vector"}


def test_a_second_build_does_nothing(line):
    line.write(TableWrite(append=documents(range(30))))
    build(line, ID, BODY, VEC)
    before = files_below(line.store.location.path)
    assert build(line, ID, BODY, VEC) == (False, [])
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
    build(line, ID, BODY, VEC)
    line.write(TableWrite(append=documents(range(30, 40))))
    assert uncovered_rows(line.table)
    build(line, ID, BODY, VEC, rebuild=True)
    assert sorted(index.name for index in line.table.dataset.describe_indices()) == [
        "body_text",
        "id_btree",
        "vec_vector",
    ]
    assert not uncovered_rows(line.table)
    assert text_hits(line, "word35") == ["d35"]


def test_words_are_stemmed_folded_and_stripped_of_stop_words(line):
    rows = documents([1]).set_column(1, SCHEMA.field("body"), pa.array(["The Cafés were RUNNING"]))
    line.write(TableWrite(append=rows))
    build(line, BODY)
    assert text_hits(line, "run") == ["d1"]
    assert text_hits(line, "cafe") == ["d1"]
    assert text_hits(line, "the") == []


# -- pending -------------------------------------------------------------------------------------------


def test_indexes_of_an_empty_table_are_pending(line):
    built, pending = build(line, ID, BODY)
    assert not built
    assert [(one.column, one.reason) for one in pending] == [
        ("id", "the table is empty"),
        ("body", "the table is empty"),
    ]


def test_a_vector_index_on_few_rows_is_pending_and_others_are_built(line):
    line.write(TableWrite(append=documents(range(19))))
    built, pending = build(line, ID, VEC)
    assert built
    assert [one.column for one in pending] == ["vec"]
    assert "fewer than 20 rows" in pending[0].reason
    line.write(TableWrite(append=documents(range(19, 20))))
    assert build(line, ID, VEC) == (True, [])
    assert index_names(line.table) == {"id_btree", "vec_vector"}


def test_a_vector_index_without_vectors_is_pending(line):
    line.write(TableWrite(append=documents(range(25), vectors=False)))
    built, pending = build(line, VEC)
    assert not built
    assert [one.reason for one in pending] == ["no row has a vector yet"]


# -- rows that change under an index -------------------------------------------------------------------


def test_rows_written_after_the_index_are_found(line):
    line.write(TableWrite(append=documents(range(30))))
    build(line, ID, RANK, BODY, VEC)
    line.write(
        TableWrite(append=documents([31]), upsert=documents([3]).set_column(2, "rank", pa.array([99], pa.int32())))
    )
    assert uncovered_rows(line.table)
    assert line.table.read(["id"], filter="rank = 99")["id"].to_pylist() == ["d3"]
    assert line.table.read(["id"], filter="rank = 3")["id"].to_pylist() == []
    assert line.table.read(["id"], filter="id = 'd31'")["id"].to_pylist() == ["d31"]
    assert text_hits(line, "word31") == ["d31"]
    assert nearest(line, 31, 1) == ["d31"]


def with_deleted_rows(line, fragments):
    """Index sixty documents, then delete most of the first fifty; return the remaining numbers."""
    size = 60 // fragments
    for start in range(0, 60, size):
        line.write(TableWrite(append=documents(range(start, start + size))))
    build(line, ID, RANK, BODY, VEC)
    gone = [number for number in range(50) if fragments == 1 or number % 3 != 2]
    line.write(TableWrite(delete=[f"d{number}" for number in gone]))
    return [number for number in range(60) if number not in gone]


@pytest.mark.parametrize("fragments", [1, 20])
def test_optimize_after_delete_and_compaction_misses_no_result(line, fragments):
    """Compaction drops the record of deleted rows, so a search for ten finds fewer until the index is rebuilt."""
    left = with_deleted_rows(line, fragments)
    work = _Work({"node:Doc": [ID, RANK, BODY, VEC]}, at_once=1, compact=True)
    table, _ = _maintain_table("node:Doc", line.table, work)
    line.version = table.version
    assert line.table.fragment_count == 1
    assert text_hits(line, "common") == sorted(f"d{number}" for number in left)
    for limit in (5, 10):
        assert len(text_hits(line, "common", limit=limit)) == limit
        assert sorted(nearest(line, 0, limit)) == sorted(f"d{number}" for number in left[:limit])
    assert line.table.read(["id"], filter="rank = 55")["id"].to_pylist() == ["d55"]
    assert line.table.read(["id"], filter="rank = 0")["id"].to_pylist() == []


def test_a_stale_index_that_cannot_be_rebuilt_is_dropped(line):
    """With too few rows for a vector index, or an index that is no longer wanted, the stale index would only miss
    results.
    """
    left = with_deleted_rows(line, 1)
    assert len(left) < indexes_module.VECTOR_ROWS_MIN
    line.version = compacted(line.table, always=True).version
    built, pending = build(line, VEC, rebuild=True)
    assert built
    assert [one.column for one in pending] == ["vec"]
    assert index_names(line.table) == {"id_btree", "rank_btree"}
    assert len(nearest(line, 0, 5)) == 5
    assert len(text_hits(line, "common")) == len(left)
    assert build(line, VEC) == (False, pending)


@pytest.mark.parametrize("fragments", [1, 20])
def test_a_search_restricted_to_live_rows_misses_none_before_optimize(line, fragments):
    """A write may compact without rebuilding indexes; searches therefore filter by `_rowid >= 0`."""
    left = with_deleted_rows(line, fragments)
    line.version = compacted(line.table, always=True).version
    alive = {"filter": "_rowid >= 0", "prefilter": True}
    dataset = line.table.dataset
    words = dataset.to_table(full_text_query=MatchQuery("common", "body"), columns=["id", "_score"], limit=5, **alive)
    assert words.num_rows == 5
    query = {"column": "vec", "q": documents([0])["vec"].to_pylist()[0], "k": 5}
    near = dataset.to_table(nearest=query, columns=["id", "_distance"], **alive)
    assert sorted(near["id"].to_pylist()) == sorted(f"d{number}" for number in left[:5])


def test_indexes_of_two_branches_of_a_table_are_independent(line):
    line.write(TableWrite(append=documents(range(30))))
    base = line.version
    build(line, ID, BODY)
    mine = line.version
    line.version = base
    assert index_names(line.table) == set()
    line.write(TableWrite(delete=["d1"]))
    build(line, BODY)
    assert text_hits(line, "word1") == []
    line.version = mine
    assert text_hits(line, "word1") == ["d1"]
    assert index_names(line.table) == {"id_btree", "body_text"}
