"""The statistics document: stored form, changes, damage."""

from __future__ import annotations

import math
import random
from datetime import date, datetime

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.cache import disk_cache
from omnigraph.engine.statistics import table_statistics
from omnigraph.engine.statistics.column_statistics import ColumnStatistics
from omnigraph.engine.statistics.degree_statistics import DegreeStatistics
from omnigraph.engine.statistics.table_statistics import Change, TableStatistics
from omnigraph.scalar_types.columns import ARROW_TYPES

VALUES = {
    "String": lambda r: r.choice(["", "é", "word " * r.randrange(300), f"k{r.randrange(50)}"]),
    "Uuid": lambda r: f"{r.getrandbits(32):08x}-0000-4000-8000-{r.getrandbits(48):012x}",
    "Bool": lambda r: r.random() < 0.3,
    "I32": lambda r: r.randrange(-(2**31), 2**31),
    "I64": lambda r: r.choice([-(2**63), 2**63 - 1, r.randrange(9)]),
    "U32": lambda r: r.randrange(2**32),
    "U64": lambda r: r.choice([2**64 - 1, r.randrange(9)]),
    "F32": lambda r: np.float32(r.gauss(0, 1)).item(),
    "F64": lambda r: r.choice([math.inf, -0.0, math.nan, r.random()]),
    "Date": lambda r: date(2000, 1, 1 + r.randrange(28)),
    "DateTime": lambda r: datetime(2000, 1, 1, r.randrange(24)),
}


def column(kind: str, seed: int, nulls: float = 0.2) -> pa.Array:
    source = random.Random(seed)
    count = source.choice([1, 5, 700, 5_000])
    values = [None if source.random() < nulls else VALUES[kind](source) for _ in range(count)]
    return pa.array(values, ARROW_TYPES[kind])


def stored(summary: ColumnStatistics) -> ColumnStatistics:
    return ColumnStatistics.unpack(msgspec.msgpack.decode(msgspec.msgpack.encode(summary.pack())))


def test_every_scalar_kind_is_covered():
    assert {*VALUES, "Vector", "Blob"} == set(ARROW_TYPES)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", VALUES)
def test_a_stored_summary_equals_the_computed_one(kind, seed):
    values = column(kind, seed)
    computed = ColumnStatistics.of(values, 3 * len(values))
    found = stored(computed)
    assert found.pack() == computed.pack()
    assert (found.distinct, found.common, found.length) == (computed.distinct, computed.common, computed.length)
    for value in (*computed.sample[:3], computed.low, computed.high):
        assert found.share_equal(value) == computed.share_equal(value)
        assert found.share_below(value, inclusive=True) == computed.share_below(value, inclusive=True)
    assert stored(found.merged(computed)).pack() == computed.merged(found).pack()


@pytest.mark.parametrize("type_", [pa.list_(pa.int64()), pa.list_(pa.float32(), 2), pa.string(), pa.int64()], ids=str)
def test_columns_without_values_are_stored(type_):
    for values in ([], [None, None], [[1, 2], None] if pa.types.is_nested(type_) else [None]):
        computed = ColumnStatistics.of(pa.array(values, type_))
        assert stored(computed).pack() == computed.pack()
        assert computed.filled == sum(value is not None for value in values)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("kind", ["I64", "F64", "String", "Bool", "Date", "Uuid"])
def test_merged_parts_agree_with_the_whole(kind, seed):
    values = pa.concat_arrays([column(kind, 10 * seed + part) for part in range(3)])
    whole = ColumnStatistics.of(values)
    parts = [ColumnStatistics.of(values.slice(start, 2_000)) for start in range(0, len(values), 2_000)]
    merged = parts[0]
    for part in parts[1:]:
        merged = merged.merged(part)
    assert (merged.rows, merged.nulls, merged.filled) == (whole.rows, whole.nulls, whole.filled)
    assert (merged.low, merged.high) == (whole.low, whole.high)
    assert merged.length == pytest.approx(whole.length)
    assert merged.distinct == pytest.approx(whole.distinct, rel=0.2)
    for value in whole.sample[:: max(len(whole.sample) // 5, 1)]:
        below = whole.share_below(value, inclusive=True)
        assert merged.share_below(value, inclusive=True) == pytest.approx(below, abs=0.12)
    for value, share in whole.common.items():
        assert merged.share_equal(value) == pytest.approx(share, abs=0.12)


def test_empty_texts_are_not_filled():
    found = ColumnStatistics.of(pa.array(["", "four", None, "sixsix"]), 400)
    assert (found.rows, found.nulls, found.filled, found.length) == (400, 100, 200, 5.0)
    assert (found.known_share, found.filled_share) == (0.75, 0.5)


def test_a_sample_may_lack_extreme_values():
    found = ColumnStatistics.of(pa.array(range(100)), 10_000)
    assert found.is_sampled
    assert 0 < found.share_equal(5_000) <= 1 / 100
    assert ColumnStatistics.of(pa.array(range(100))).share_equal(5_000) == 0


@pytest.mark.parametrize(
    ("change", "small", "growth"),
    [
        (Change(0, 0, 100), True, True),
        (Change(5, 5, 100), True, True),
        (Change(6, 0, 100), False, True),
        (Change(6, 6, 100), False, False),
        (Change(1, 0, 0), False, True),
    ],
)
def test_size_of_changes(change, small, growth):
    assert (change.is_small, change.is_growth) == (small, growth)


def document() -> TableStatistics:
    summaries = {
        "column:1": ColumnStatistics.of(pa.array(range(2_000))),
        "column:2": ColumnStatistics.of(pa.array(["text"] * 2_000)),
        "degrees:source": DegreeStatistics(10, 2_000, 1.0, 300.5, 400),
    }
    return TableStatistics(2_000, 7, frozenset({"a.lance", "b.lance|c.lance"}), summaries)


SUBJECT = ("statistics", "nodes/x")


def read(folder) -> TableStatistics | None:
    return disk_cache.load(folder, SUBJECT, table_statistics._read, discard=True)


def test_a_document_is_written_and_read(tmp_path):
    written = document()
    table_statistics._write(tmp_path, SUBJECT, written)
    found = read(tmp_path)
    assert (found.rows, found.version, found.fragments) == (written.rows, written.version, written.fragments)
    assert found.summaries.keys() == written.summaries.keys()
    assert found.find("degrees:source", DegreeStatistics) == written.find("degrees:source", DegreeStatistics)
    for name in ("column:1", "column:2"):
        assert found.find(name, ColumnStatistics).pack() == written.find(name, ColumnStatistics).pack()
    assert found.find("column:3", ColumnStatistics) is None
    assert found.find("degrees:source", ColumnStatistics) is None
    assert found.find("column:1", ColumnStatistics) is found.find("column:1", ColumnStatistics)
    # A document that was read and extended is written again.
    table_statistics._write(tmp_path, SUBJECT, found.with_summaries({"column:3": written.summaries["column:1"]}))
    again = read(tmp_path)
    assert again.summaries.keys() == {*written.summaries, "column:3"}
    assert again.find("column:3", ColumnStatistics).pack() == written.summaries["column:1"].pack()
    assert len([path for path in tmp_path.iterdir() if not path.name.startswith(".")]) == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_document_is_reported_and_removed(tmp_path, caplog, seed):
    table_statistics._write(tmp_path, SUBJECT, document())
    [entry] = tmp_path.iterdir()
    source = random.Random(seed)
    file = source.choice(sorted(entry.iterdir()))
    data = bytearray(file.read_bytes())
    data[source.randrange(len(data))] ^= 1 << source.randrange(8)
    file.write_bytes(data)
    assert [name for name, _ in disk_cache.find_damaged(tmp_path)] == [entry.name]
    assert read(tmp_path) is None
    assert "is damaged and is built again" in caplog.text
    assert not disk_cache.exists(tmp_path, SUBJECT)


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"\xc1",
        msgspec.msgpack.encode([1, 2, 3]),
        msgspec.msgpack.encode([5, 9, 5, 5, 0.0, [], None, None, None]),
        msgspec.msgpack.encode([5, 0, 5, 5, 0.0, [2, 1], [b"\0" * 8, b"\0" * 8], 1, 2]),
        msgspec.msgpack.encode([5, 0, 5, 5, 0.0, [1], [b"\0" * 8, b"\0" * 8], 1, 1]),
        msgspec.msgpack.encode([5, 0, 5, 5, 0.0, [1], [b"\0" * 7, b"\0" * 8], 1, 1]),
        msgspec.msgpack.encode([5, 0, 5, 5, 0.0, [1], None, 1, 1]),
        msgspec.msgpack.encode(["5", 0, 5, 5, 0.0, [], None, None, None]),
    ],
    ids=range(9),
)
def test_a_malformed_part_is_reported_and_ignored(part, caplog):
    found = TableStatistics(5, 1, frozenset(), {"column:1": memoryview(part)})
    assert found.find("column:1", ColumnStatistics) is None
    assert "stored statistics of 'column:1' are damaged" in caplog.text
    degrees = TableStatistics(
        5, 1, frozenset(), {"degrees:source": memoryview(msgspec.msgpack.encode([1, 2, 3, 4, 5]))}
    )
    assert degrees.find("degrees:source", DegreeStatistics) is None


def test_a_document_of_another_format_is_not_read(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(table_statistics, "_FORMAT", 0)
    table_statistics._write(tmp_path, SUBJECT, document())
    monkeypatch.undo()
    assert read(tmp_path) is None
    assert "it has another format" in caplog.text
    assert not disk_cache.exists(tmp_path, SUBJECT)
