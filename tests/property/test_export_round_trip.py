"""Every export loads back to the same graph: every property type, nulls, empty texts, quotes, line breaks, Unicode."""

from __future__ import annotations

import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.pipeline.export import FORMATS, ExportFormat

LOADED: tuple[ExportFormat, ...] = (*FORMATS, "neo4j", "graphml")
"""Formats that a load reads."""

SCHEMA = """
node Item {
    key: String @key
    text: String?  mood: enum(good, so-so)?  ok: Bool?
    small: I32?  far: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?
    day: Date?  at: DateTime?  uid: Uuid?  uids: [Uuid]?  blob: Blob?  vec: Vector(2)?
    texts: [String]?  bools: [Bool]?  ints: [I64]?  floats: [F64]?  days: [Date]?  times: [DateTime]?
}
node Number { n: I64 @key  label: String? }
node Free { text: String? }
edge Likes: Item -> Number { note: String?  at: DateTime? }
edge Same: Free -> Free
"""
DAY_MIN, DAY_MAX = -719_162, 2_932_896
TEXT = st.text(alphabet=st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    [
        "",
        " ",
        '"',
        '""',
        "a,b",
        "a;b",
        "\t",
        "x\ny",
        "x\r\ny",
        "\r",
        "null",
        "true",
        "1900.0",
        "base64:AA==",
        "\ufeff",
        "日本",
    ]
)
I64 = st.integers(-(2**63), 2**63 - 1)
F64 = st.floats(allow_nan=False, allow_infinity=False)
DAYS = st.integers(DAY_MIN, DAY_MAX)
TIMES = st.integers(DAY_MIN * 86_400_000, (DAY_MAX + 1) * 86_400_000 - 1)
F32 = st.floats(width=32, allow_nan=False, allow_infinity=False)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": TEXT,
    "mood": st.sampled_from(["good", "so-so"]),
    "ok": st.booleans(),
    "small": st.integers(-(2**31), 2**31 - 1),
    "far": I64,
    "u32": st.integers(0, 2**32 - 1),
    "u64": st.integers(0, 2**64 - 1),
    "f32": F32,
    "f64": F64,
    "day": DAYS,
    "at": TIMES,
    "uid": st.uuids().map(str),
    "uids": st.lists(st.uuids().map(str), max_size=3),
    "blob": st.binary(max_size=9).map(lambda data: "base64:" + b64encode(data).decode()),
    "vec": st.lists(F32, min_size=2, max_size=2),
    "texts": st.lists(TEXT, max_size=3),
    "bools": st.lists(st.booleans(), max_size=3),
    "ints": st.lists(I64, max_size=3),
    "floats": st.lists(F64, max_size=3),
    "days": st.lists(DAYS, max_size=3),
    "times": st.lists(TIMES, max_size=3),
}
ITEM = st.fixed_dictionaries({"key": TEXT}, optional=VALUES)


@st.composite
def graphs(draw: st.DrawFn) -> list[dict[str, Any]]:
    """The records of a graph."""
    items = draw(st.lists(ITEM, max_size=4, unique_by=lambda data: data["key"]))
    numbers = draw(st.lists(I64, max_size=3, unique=True))
    free = draw(st.lists(TEXT, max_size=3, unique=True))
    records: list[dict[str, Any]] = [{"type": "Item", "data": data} for data in items]
    records += [{"type": "Number", "data": {"n": n, "label": draw(st.none() | TEXT)}} for n in numbers]
    records += [{"type": "Free", "data": {"id": id_, "text": draw(st.none() | TEXT)}} for id_ in free]
    if items and numbers:
        for number in range(draw(st.integers(0, 3))):
            ends = {"from": draw(st.sampled_from(items))["key"], "to": draw(st.sampled_from(numbers))}
            data = {"id": f"e{number}", "note": draw(st.none() | TEXT), "at": draw(st.none() | TIMES)}
            records.append({"edge": "Likes", **ends, "data": data})
    if free:
        records.append({"edge": "Same", "from": free[0], "to": draw(st.sampled_from(free)), "data": {"id": "s"}})
    return records


def check(records: list[dict[str, Any]], format_: ExportFormat) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        graph = og.init(root / "a", SCHEMA, sync=False, environ={})
        graph.load(records, mode="append")
        again = og.init(root / "b", SCHEMA, sync=False, environ={})
        if format_ in FORMATS:
            graph.export(root / "out", format=format_, partitioned=True)
            again.load(root / "out", mode="append")
        else:
            graph.export(root / "out", format=format_)
            again.load(root / "out", mode="append", format=format_)
        # Compared as text: the two zeros of a float differ.
        assert repr(list(again.export())) == repr(list(graph.export()))


@pytest.mark.parametrize("format_", LOADED)
@settings(deadline=None, max_examples=5, suppress_health_check=list(HealthCheck))
@given(records=graphs())
def test_export_loads_back(records, format_):
    check(records, format_)


@pytest.mark.long
@pytest.mark.parametrize("format_", LOADED)
@settings(deadline=None, max_examples=200, suppress_health_check=list(HealthCheck))
@given(records=graphs())
def test_many_exports_load_back(records, format_):
    check(records, format_)
