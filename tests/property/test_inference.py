"""A frame made from a random schema infers a schema that loads it without rejects and with equal values."""

from __future__ import annotations

import datetime
import tempfile
from pathlib import Path
from typing import Any

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.engine.ingest.csv_text import csv_line

TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=12),
    st.sampled_from(
        ["", "NA", "007", "1", "1.0", "true", "03/04/2020", "2020-02-30", "[1]", "-", '"', "a,b", "x\ny", " "]
    ),
)
DAYS = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
TIMES = st.datetimes(datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)).map(
    lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000)
)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
KINDS: dict[str, tuple[pa.DataType, st.SearchStrategy[Any]]] = {
    "text": (pa.string(), TEXTS),
    "few": (pa.string(), st.sampled_from(["red", "blue", "green"])),
    "i32": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "i64": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "u64": (pa.uint64(), st.integers(0, 2**64 - 1)),
    "f32": (pa.float32(), st.floats(width=32, allow_nan=False, allow_infinity=False)),
    "f64": (pa.float64(), FLOATS),
    "bool": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), DAYS),
    "time": (pa.timestamp("ms"), TIMES),
    "bytes": (pa.binary(), st.binary(max_size=8)),
    "texts": (pa.list_(pa.string()), st.lists(TEXTS, max_size=3)),
    "numbers": (pa.list_(pa.int64()), st.lists(st.integers(-9, 9), max_size=3)),
    "vector": (pa.list_(pa.float32()), st.lists(st.floats(-9, 9, width=32), min_size=3, max_size=3)),
}
NAMES = st.one_of(
    st.sampled_from(["id", "name", "src", "from", "Full Name", "2020", "größe", "_x", "type", "count", "node"]),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8),
)


@st.composite
def tables(draw: st.DrawFn, kinds: tuple[str, ...] = tuple(KINDS)) -> pa.Table:
    """A table with random columns, some of them with missing values."""
    rows = draw(st.integers(0, 30))
    columns: dict[str, pa.Array] = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=6, unique=True)):
        type_, values = KINDS[draw(st.sampled_from(kinds))]
        values = st.none() | values if draw(st.booleans()) else values
        columns[name] = pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), type_)
    return pa.table(columns)


def loaded(draft: og.SchemaDraft, data: Any, folder: Any) -> tuple[pa.Table, list[Any]]:
    rejects: list[Any] = []
    graph = og.from_frames(folder / "g", schema=draft, things=data, rejects=rejects, environ={})
    return graph.to_arrow("Things"), rejects


@settings(max_examples=30)
@given(table=tables())
def test_frames_load_without_rejects(table):
    draft = og.infer_schema(things=table)
    with tempfile.TemporaryDirectory() as folder:
        found, rejects = loaded(draft, table, Path(folder))
    assert rejects == []
    assert found.num_rows == table.num_rows
    (mapping,) = (one.columns for one in draft.tables if one.type_name == "Things")
    for column, name in mapping.items():
        if name is not None:
            assert found[name].null_count == table[column].null_count


@settings(max_examples=30)
@given(table=tables(("text", "few", "i32", "i64", "f64", "bool", "day", "time", "numbers")))
def test_csv_loads_without_rejects(table):
    # pandas takes a first column without a name for an index, and so does a load.
    header = [name.strip() or f"c{at}" for at, name in enumerate(table.column_names)]
    cells = [[None if value is None else _cell(value) for value in column.to_pylist()] for column in table.columns]
    lines = [csv_line(header), *(csv_line(row) for row in zip(*cells, strict=True))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "things.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8", newline="")
        if len(set(header)) < len(header):
            return
        draft = og.infer_schema(path)
        _, rejects = loaded(draft, path, Path(folder))
    assert rejects == []


def _cell(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else str(value)
