"""Scans and takes whose batches exceed the 32-bit offsets of Arrow are repeated with fewer rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.errors import StorageError
from omnigraph.storage.lance.scan import Scan, take_in_parts
from omnigraph.storage.lance.tables import Table
from omnigraph.storage.lance.version_diff import all_rows
from support.writes import new_graph, node

SCHEMA = "node P { name: String @key  n: I64  text: String }"
ROWS = 100
MESSAGE = "LanceError(Arrow): Offset overflow error: 2151001324"


class OverflowingScanner:
    """A scanner that fails at the batch that contains the long rows, unless its batches are small."""

    def __init__(self, scanner: Any, rows: int, rows_max: int) -> None:
        self._scanner, self._rows, self._rows_max = scanner, rows, rows_max

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scanner, name)

    def to_batches(self) -> Iterator[pa.RecordBatch]:
        done = 0
        for batch in self._scanner.to_batches():
            if done + batch.num_rows > 40 and self._rows > self._rows_max:
                raise pa.ArrowInvalid(f"External error: {MESSAGE}")
            done += batch.num_rows
            yield batch


class OverflowingDataset:
    """A Lance dataset whose rows from the fortieth on are so long that few of them are one array."""

    def __init__(self, dataset: Any, rows_max: int) -> None:
        self._dataset, self._rows_max = dataset, rows_max
        self.batch_rows: list[int] = []
        self.taken: list[int] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._dataset, name)

    def scanner(self, *args: Any, batch_size: int, **options: Any) -> OverflowingScanner:
        self.batch_rows.append(batch_size)
        return OverflowingScanner(
            self._dataset.scanner(*args, batch_size=batch_size, **options), batch_size, self._rows_max
        )

    def take(self, rows: Any, **options: Any) -> pa.Table:
        self.taken.append(len(rows))
        if len(rows) > self._rows_max:
            raise OSError(MESSAGE)
        return self._dataset.take(rows, **options)


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    rows = [node("P", name=f"p{at:03}", n=at, text=f"t{at % 10}") for at in range(ROWS)]
    made = new_graph(tmp_path_factory.mktemp("scan"), SCHEMA, *rows[:60])
    made.load(rows[60:], mode="append")
    return made


@pytest.fixture
def table(graph) -> Table:
    """A table whose batches overflow with more than three rows."""
    found: Table = og.open(graph.uri, environ={}).snapshot().table("node:P")
    found.dataset = OverflowingDataset(found.dataset, 3)
    return found


NAMES = [f"p{at:03}" for at in range(ROWS)]


def test_rows_are_returned_once_and_in_order(table):
    sizes = [batch.num_rows for batch in Scan(table, ["name"], batch_rows=16).batches()]
    assert sizes[:2] == [16, 16], "the batches before the overflow are returned"
    assert sum(sizes) == ROWS
    assert table.dataset.batch_rows == [16, 1]
    assert Scan(table, ["name"], batch_rows=16).to_table()["name"].to_pylist() == NAMES
    assert table.dataset.batch_rows == [16, 1, 1], "later scans begin with small batches"


READS = {
    "read": lambda table: table.read(["name"]),
    "stream": lambda table: pa.Table.from_batches(table.stream(["name"])),
    "batches": lambda table: pa.Table.from_batches(table.batches(["name"])),
    "fragments": lambda table: pa.concat_tables(rows for _, rows in table.read_fragments(["name"], [0, 1])),
    "from a fragment on": lambda table: table.read_from(["name"], 0),
    "matches": lambda table: pa.Table.from_batches(batch for batch in table.matches(["name"], "`n` >= 0")),
    "every row": lambda table: all_rows(table).read(["name"]),
    "take": lambda table: table.take(["name"], list(range(ROWS))),
    "take an array": lambda table: table.take(["name"], pa.array(np.arange(ROWS))),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_every_read_is_repeated_with_fewer_rows(table, read):
    assert read(table)["name"].to_pylist() == NAMES
    asked = table.dataset.batch_rows or table.dataset.taken
    assert asked[0] > 3 >= min(asked)


def test_filters_and_limits_hold_for_the_repeated_scan(table):
    found = table.read(["n"], filter="`text` != 't7'", limit=80)
    assert found["n"].to_pylist() == [at for at in range(ROWS) if at % 10 != 7][:80]
    assert len(table.dataset.batch_rows) > 1


def test_columns_are_read_in_smaller_parts(table):
    data = DataCache().table(table)
    assert data.take("text", np.array([99, 3, 50, 3, 7])).to_pylist() == ["t9", "t3", "t0", "t3", "t7"]
    assert data.column("name").to_pylist() == NAMES


def test_a_single_row_that_overflows_is_an_error(graph):
    table = og.open(graph.uri, environ={}).snapshot().table("node:P")
    table.dataset = OverflowingDataset(table.dataset, 0)
    with pytest.raises(StorageError, match="Offset overflow"):
        table.read(["name"])
    with pytest.raises(StorageError, match="Offset overflow"):
        table.take(["name"], [1, 2])


def test_other_errors_are_raised_at_once():
    asked: list[int] = []

    def take(rows: list[int]) -> pa.Table:
        asked.append(len(rows))
        raise OSError("disk failure")

    with pytest.raises(OSError, match="disk failure"):
        take_in_parts(take, [1, 2, 3])
    assert asked == [3]


@pytest.mark.long
def test_texts_that_are_compressed_beyond_all_estimates(tmp_path):
    """600 texts of 4.5 MB are 170 kB on disk; 8,192 rows would be one batch of 2.7 GB."""
    graph = og.init(tmp_path / "graph", "node D { key: String @key  text: String }", sync=False, environ={})
    for start in range(0, 600, 50):
        texts = ["x" * 4_500_000 + str(at) for at in range(start, start + 50)]
        keys = [f"d{at:03}" for at in range(start, start + 50)]
        graph.load({"D": pa.table({"key": keys, "text": texts})}, mode="append")
    graph.optimize()
    graph = og.open(graph.uri, environ={}, memory="2GiB")
    assert not graph.snapshot().table("node:D").has_long_values, "the estimate takes the texts for short ones"
    count = graph.query('match { $d: D  $d.text contains "xx59" } return { count($d) as n }')
    assert count.to_rows() == [{"n": 11}]
    longest = graph.query("match { $d: D } return { max(length($d.text)) as n }")
    assert longest.to_rows() == [{"n": 4_500_003}]
    ordered = graph.query("match { $d: D } return { $d.key } order { $d.text desc } limit 2")
    assert ordered.to_rows() == [{"d.key": "d099"}, {"d.key": "d098"}]
    table = graph.snapshot().table("node:D")
    assert table.take(["text"], list(range(600))).num_rows == 600


def test_batches_of_small_rows_are_larger(tmp_path):
    graph = og.init(tmp_path / "graph", "node V { k: I64 @key  vec: Vector(64) }")
    vectors = pa.array(list(np.ones((10_000, 64), np.float32)), pa.list_(pa.float32(), 64))
    graph.load({"V": pa.table({"k": np.arange(10_000), "vec": vectors})}, mode="append")
    table = graph.snapshot().table("node:V")
    assert [batch.num_rows for batch in table.batches(["k"])] == [10_000]
    assert [batch.num_rows for batch in table.batches(["vec", "k"])] == [8_192, 1_808]


def test_rows_of_fragments_with_deleted_rows_are_taken_from_the_fragment(tmp_path, monkeypatch):
    graph = new_graph(tmp_path, "node P { name: String @key }\n", *(node("P", name=f"p{at}") for at in range(50)))
    for first in (50, 60, 70):
        graph.load([node("P", name=f"p{at}") for at in range(first, first + 10)], mode="append")
    for name in ("p3", "p30", "p61"):
        graph.mutate(f'query q() {{ delete P where name = "{name}" }}')
    table = graph.snapshot().table("node:P")
    names = table.read(["id"])["id"].to_pylist()
    assert len(names) == 77
    taken = []
    take = type(table.dataset).take
    counted = lambda self, rows, **how: taken.extend(rows) or take(self, rows, **how)  # noqa: E731
    monkeypatch.setattr(type(table.dataset), "take", counted)
    for rows in ([0], [76, 0, 40, 40, 3], list(range(77)), [50, 51], [58, 5], [47, 48, 49]):
        assert table.take(["id"], rows)["id"].to_pylist() == [names[row] for row in rows]
    changed = {*range(48), *range(58, 67)}
    assert not changed.intersection(row.as_py() for row in taken), "rows of fragments with deleted rows"
    assert table.take(["id"], [])["id"].to_pylist() == []
