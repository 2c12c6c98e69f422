"""Lookup of rows by value: equal to a filtered scan, for every version, and bounded."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.storage.lance import tables, value_lookup
from omnigraph.storage.lance.tables import Table
from omnigraph.storage.lance.value_lookup import LookupCache, _first_row_id, find_rows
from support.writes import SHELVES as SCHEMA
from support.writes import beside, new_graph, shelf

SHELF, BESIDE = "node:Shelf", "edge:Beside"
DICTS = {"dict_rows_max": 1_000}
HASHES = {"dict_rows_max": 0}
COLUMNS = (["id"], ["id", "_rowaddr"], ["id", "_rowid", "_rowaddr"], ["note", "cap"])


@pytest.fixture
def graph(tmp_path):
    records = [shelf(f"s{number}", note=f"n{number % 3}", cap=number) for number in range(20)]
    edges = [beside(f"s{number}", f"s{number % 4}", id_=f"e{number}") for number in range(20)]
    return new_graph(tmp_path, SCHEMA, *records, *edges)


def lookups(graph: Graph, **sizes: Any) -> LookupCache:
    """Replace the indexes of a graph by empty ones."""
    graph._repository.tables.lookups = LookupCache(**sizes)
    return graph._repository.tables.lookups


def check(table: Table, by: str | list[str], values: list[str], columns: list[str]) -> None:
    by = [by] if isinstance(by, str) else by
    found = find_rows(table, by, values, columns)
    scanned = table.read_with(by, values, columns)
    assert found.schema.equals(pa.schema([field.remove_metadata() for field in scanned.schema]))
    assert ordered(found) == ordered(scanned)


def ordered(rows: pa.Table) -> list[dict[str, Any]]:
    return sorted(rows.to_pylist(), key=repr)


@contextmanager
def no_scans(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(Table, "read", None)
        yield


@pytest.mark.parametrize("sizes", [DICTS, HASHES])
@pytest.mark.parametrize("same_hash", [False, True])
def test_lookup_equals_a_scan_in_every_version(graph, sizes, same_hash, monkeypatch):
    if same_hash:
        monkeypatch.setattr(value_lookup, "hash_texts", lambda texts: np.zeros(len(texts), np.uint64))
        monkeypatch.setattr(value_lookup, "hash_text", lambda _: 0)
    lookups(graph, **sizes)
    choice = random.Random(7)
    for step in range(25):
        name = f"s{choice.randrange(30)}"
        branch = choice.choice(["main", "other"]) if step > 5 else "main"
        if step == 5:
            graph.branch_create("other")
        graph.mutate(
            choice.choice(
                [
                    "query q($n: String) { upsert Shelf { code: $n, cap: 1 } }",
                    "query q($n: String) { delete Shelf where code = $n }",
                    "query q($n: String) { update Shelf set { note: $n } where code = $n }",
                    "query q($n: String) { delete Beside where from = $n }",
                ]
            ),
            params={"n": name},
            branch=branch,
        )
        if step == 15:
            graph.optimize()
        snapshot = graph.snapshot(branch)
        for columns in COLUMNS:
            check(snapshot.table(SHELF), "id", [f"s{number}" for number in range(0, 30, 4)], columns)
        check(snapshot.table(SHELF), "id", [name], ["id"])
        check(snapshot.table(SHELF), "id", ["absent"], ["id", "_rowid"])
        check(snapshot.table(SHELF), "note", ["n1", name], ["id", "note"])
        check(snapshot.table(BESIDE), "src", [name, "s1"], ["id", "src"])
        check(snapshot.table(BESIDE), "dst", ["s1"], ["id"])
        check(snapshot.table(BESIDE), ["src", "dst"], [name, "s3"], ["id", "_rowid"])


@pytest.mark.parametrize("small", [0, 3])
def test_fragments_without_an_index_are_scanned(graph, small):
    graph.ensure_indices()
    for number in range(4):
        graph.mutate("query q($n: String) { insert Shelf { code: $n, cap: 1 } }", params={"n": f"new{number}"})
        graph.mutate("query q($n: String) { update Shelf set { cap: 2 } where code = $n }", params={"n": f"s{number}"})
        graph.mutate("query q($n: String) { delete Shelf where code = $n }", params={"n": f"s{10 + number}"})
    lookups(graph, small_rows_max=small)
    for key, column in ((SHELF, "id"), (BESIDE, "src"), (BESIDE, "dst")):
        table = graph.snapshot().table(key)
        columns = list(dict.fromkeys(["id", column, "_rowaddr"]))
        every = table.read(columns).to_pylist()
        for value in ("s1", "s9", "s11", "new2", "absent"):
            found = find_rows(table, [column], [value], columns)
            assert ordered(found) == sorted((row for row in every if row[column] == value), key=repr)


def test_row_ids_are_derived_only_if_they_are_consecutive():
    choice = random.Random(3)
    derived = 0
    for _ in range(1_000):
        start = choice.choice([0, 1, 127, 128, 16_384, 2**32, 2**62]) + choice.randrange(3)
        ids = list(range(start, start + choice.choice([1, 2, 3, 127, 300])))
        match choice.randrange(4):
            case 1:
                choice.shuffle(ids)
            case 2:
                ids = ids[: len(ids) // 2] + ids[len(ids) // 2 + 1 :] or ids
            case 3:
                ids = sorted(choice.sample(range(start, start + 10 * len(ids)), len(ids)))
        meta = lance.fragment.RowIdSequence(ids).to_inline_metadata()
        first = _first_row_id(lance.fragment.FragmentMetadata(0, [], len(ids), row_id_meta=meta))
        assert first in ((None, ids[0]) if ids == list(range(ids[0], ids[0] + len(ids))) else (None,))
        derived += first is not None
        assert _first_row_id(lance.fragment.FragmentMetadata(0, [], len(ids) + 1, row_id_meta=meta)) is None
    assert derived > 200
    assert _first_row_id(lance.fragment.FragmentMetadata(0, [], 1)) is None


def test_a_commit_reads_no_fragment(graph, monkeypatch):
    """A new fragment is indexed from the rows that are written to it."""
    lookups(graph)
    insert = "query q($n: String) { insert Shelf { code: $n } }"
    graph.mutate(insert, params={"n": "first"})
    read: list[int] = []
    real = Table.read_all_rows

    def counted(table: Table, columns: Any, fragment: int) -> Any:
        read.append(table.fragments[fragment][1])
        return real(table, columns, fragment)

    monkeypatch.setattr(Table, "read_all_rows", counted)
    with no_scans(monkeypatch):
        for number in range(3):
            graph.mutate(insert, params={"n": f"new{number}"})
    assert read == []


def test_many_small_fragments_are_read_by_one_scan(graph, monkeypatch):
    for number in range(8):
        graph.mutate("query q($n: String) { insert Shelf { code: $n } }", params={"n": f"new{number}"})
    graph.mutate('delete Shelf where code = "s3"')
    lookups(graph)
    table = graph.snapshot().table(SHELF)
    read: list[int] = []
    real = Table.read_all_rows
    monkeypatch.setattr(Table, "read_all_rows", lambda self, columns, at: (read.append(at), real(self, columns, at))[1])
    check(table, "id", ["s3", "s4", "new0", "new7"], ["id", "cap"])
    assert len(read) == 1, "the fragment with a deleted row"


def test_written_rows_are_indexed_without_a_read(graph, monkeypatch):
    before = graph.snapshot().table(SHELF)
    graph.load([shelf("x"), shelf("y")], mode="append")
    after = graph.snapshot().table(SHELF)
    cache = lookups(graph)
    check(before, "id", ["s1"], ["id"])
    metadata = [fragment.metadata for fragment in after.dataset.get_fragments()[before.fragment_count :]]
    written = after.read_with(["id"], ["x", "y"], after.schema.names)
    monkeypatch.setattr(Table, "read_all_rows", None)
    before.remember_written(metadata, written)
    check(after, "id", ["s1", "x"], ["id", "_rowid"])
    check(after, "id", ["y", "z"], ["code"])
    size = cache.nbytes
    before.remember_written(metadata, pa.concat_tables([written] * 3_000))
    assert cache.nbytes == size, "many rows are left to the first lookup"


def test_large_fragments_are_indexed_when_scans_took_as_long(graph, monkeypatch):
    monkeypatch.setattr(value_lookup, "_BUILD_S_PER_ROW", 100.0)
    cache = lookups(graph, small_rows_max=5)
    graph.mutate("query q($n: String) { insert Shelf { code: $n } }", params={"n": "small"})
    table = graph.snapshot().table(SHELF)
    check(table, "id", ["s1", "small", "absent"], ["id", "_rowid"])
    assert [len(index) for index in cache.of(table, "id").values()] == [1]
    cache.record_scan(table, "id", 5_000.0, 0)
    check(table, "id", ["s1"], ["id"])
    with no_scans(monkeypatch):
        assert find_rows(table, ["id"], ["s1"], ["cap"]).to_pylist() == [{"cap": 1}]
    assert sorted(len(index) for index in cache.of(table, "id").values()) == [1, 20]


def test_scans_as_fast_as_a_lookup_build_nothing(graph, monkeypatch):
    monkeypatch.setattr(value_lookup, "_SCAN_S_PER_VALUE", 0.0)
    cache = lookups(graph, small_rows_max=5)
    table = graph.snapshot().table(SHELF)
    for _ in range(100):
        cache.record_scan(table, "id", 1e-4, 0)
        cache.record_scan(table, "id", 1e-2, 1_000)
    assert cache.of(table, "id") == {}


def test_a_lookup_of_many_values_builds_the_index_that_it_uses(graph, monkeypatch):
    monkeypatch.setattr(value_lookup, "_BUILD_S_PER_ROW", value_lookup._SCAN_S_PER_VALUE)
    cache = lookups(graph, small_rows_max=5)
    table = graph.snapshot().table(SHELF)
    assert cache.of(table, "id", 19) == {}
    with no_scans(monkeypatch):
        assert find_rows(table, ["id"], [f"s{number}" for number in range(20)], ["id"]).num_rows == 20


@pytest.mark.parametrize("sizes", [DICTS, HASHES])
def test_more_values_than_rows_are_found_by_the_index(graph, sizes, monkeypatch):
    lookups(graph, **sizes)
    table = graph.snapshot().table(BESIDE)
    values = [f"s{number}" for number in range(2, 900)]
    expected = ordered(table.read_with(["dst"], values, ["id", "dst"]))
    assert len(expected) == 10
    with no_scans(monkeypatch):
        assert ordered(find_rows(table, ["dst"], values, ["id", "dst"])) == expected


def test_indexes_are_bounded(graph):
    cache = lookups(graph, bytes_max=1_000)
    table = graph.snapshot().table(SHELF)
    for column in ("id", "note", "code"):
        check(table, column, ["s1", "n1"], ["id"])
    assert len(cache._columns) == 1
    cache = lookups(graph, bytes_max=100, small_rows_max=5)
    cache.record_scan(table, "id", 10.0, 0)
    assert cache.of(table, "id") == {}, "the index is larger than the bound"


def test_a_located_row_is_not_looked_up_again(graph, monkeypatch):
    table = graph.snapshot().table(BESIDE)
    place = ["id", "_rowid", "_rowaddr"]
    expected = ordered(table.read_with(["id"], ["e1", "e5"], place))
    ids = table.locate(["src", "dst"], ["s1", "s5"], ["id"])["id"].to_pylist()
    assert sorted(ids) == ["e1", "e13", "e17", "e5", "e9"]
    monkeypatch.setattr(tables, "find_rows", None)
    assert ordered(table.rows_of(["e1", "e5"], place)) == expected
    table._located.add(table.read_with(["id"], ["e5"], place))
    assert table.rows_of(["e5", "e5"], ["_rowaddr"]).num_rows == 1


def test_indexes_of_dropped_fragments_are_removed(graph, monkeypatch):
    monkeypatch.setattr(value_lookup, "_STALE_MAX", 2)
    cache = lookups(graph)
    for number in range(12):
        graph.mutate("query q($n: String) { insert Shelf { code: $n } }", params={"n": f"new{number}"})
        if number % 3 == 2:
            graph.optimize()
        table = graph.snapshot().table(SHELF)
        check(table, "id", ["s1", f"new{number}"], ["id"])
        column = cache._columns[table.folder, table.field_ids["id"]]
        assert len(column.by_files) <= len(table.fragments) + 4
        assert column.nbytes == sum(index.nbytes for index in column.by_files.values())


def test_many_values_and_many_rows_are_scanned(graph, monkeypatch):
    cache = lookups(graph)
    table = graph.snapshot().table(SHELF)
    check(table, "id", [f"s{number}" for number in range(5_000)], ["id"])
    assert table.rows_with("code", [f"s{number}" for number in range(5_000)], ["id"]).num_rows == 20
    assert not cache.nbytes
    monkeypatch.setattr(value_lookup, "_CANDIDATES_MAX", 3)
    check(table, "note", ["n1"], ["id"])


@pytest.mark.parametrize("small", [0, 100])
def test_no_value_finds_no_row(graph, small):
    lookups(graph, small_rows_max=small)
    table = graph.snapshot().table(SHELF)
    for columns in COLUMNS:
        found = find_rows(table, ["id"], [], columns)
        assert (found.num_rows, found.schema) == (0, find_rows(table, ["id"], ["s1"], columns).schema)


def test_lookups_end_with_the_first_row_too_many_and_have_checkpoints(graph, monkeypatch):
    for number in range(6):
        graph.load([beside("s1", "s2", id_=f"{number}-{at}") for at in range(3)], mode="append")
    lookups(graph, dict_rows_max=0)
    table = graph.snapshot().table(BESIDE)
    passed: list[int] = []
    monkeypatch.setattr(
        value_lookup, "checked", lambda items: (passed.append(at) or one for at, one in enumerate(items))
    )
    assert len(table.fragments) == 7
    assert find_rows(table, ["src"], ["s1"], ["id"]).num_rows == 19
    assert passed == [*range(7), *range(7)], "one checkpoint before each lookup, and one before each read"
    passed.clear()
    monkeypatch.setattr(value_lookup, "_CANDIDATES_MAX", 6)
    check(table, "src", ["s1"], ["id"])
    assert passed == [0, 1, 2]


def test_a_value_in_quotes_is_found(graph):
    graph.mutate("query q($n: String) { insert Shelf { code: $n } }", params={"n": "o'brien"})
    for small in (100, 0):
        lookups(graph, small_rows_max=small)
        check(graph.snapshot().table(SHELF), "id", ["o'brien"], ["id"])


def test_renamed_and_added_columns(graph):
    lookups(graph)
    check(graph.snapshot().table(SHELF), "note", ["n1"], ["id"])
    renamed = SCHEMA.replace("note: String?", 'label: String? @rename_from("note")')
    graph.apply_schema(renamed)
    graph.apply_schema(renamed.replace("cap:", "note: String?  cap:"))
    table = graph.snapshot().table(SHELF)
    check(table, "label", ["n1"], ["id", "label"])
    check(table, "note", ["n1"], ["id", "note"])
    assert table.rows_with("note", ["n1"], ["id"]).num_rows == 0
    graph.mutate('update Shelf set { note: "n1" } where code = "s1"')
    check(graph.snapshot().table(SHELF), "note", ["n1"], ["id", "label"])


def test_a_restored_folder_shows_its_own_rows(graph, tmp_path: Path):
    place = tmp_path / "g"
    shutil.copytree(place, tmp_path / "copy")
    insert = "query q($n: String, $c: I32) { insert Shelf { code: $n, cap: $c } }"
    graph.mutate(insert, params={"n": "lost", "c": 1})
    graph.mutate(insert, params={"n": "other", "c": 1})
    shutil.rmtree(place)
    shutil.copytree(tmp_path / "copy", place)
    other = og.open(place, sync=False, environ={})
    other.mutate(insert, params={"n": "kept", "c": 2})
    other.mutate(insert, params={"n": "other", "c": 2})
    with pytest.raises(og.errors.KeyConflict):
        graph.mutate(insert, params={"n": "kept", "c": 3})
    assert graph.mutate(insert, params={"n": "lost", "c": 4}).affected_nodes == 1
    caps = {row["id"]: row["cap"] for row in graph.snapshot().table(SHELF).read(["id", "cap"]).to_pylist()}
    assert (caps["kept"], caps["other"], caps["lost"]) == (2, 2, 4)


def test_properties_of_nodes_may_be_named_like_the_ends_of_edges(tmp_path):
    graph = og.init(tmp_path / "ends", "node T { name: String @key  src: [I64]?  dst: I64? }", sync=False, environ={})
    graph.load([{"type": "T", "data": {"name": "a", "src": [1, 2], "dst": 3}}], mode="append")
    graph.mutate('update T set { src: [4] } where name = "a"')
    assert graph.get("T", "a") == {"id": "a", "name": "a", "src": [4], "dst": 3}
