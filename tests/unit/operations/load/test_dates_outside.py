"""Dates outside the years 1 to 9999 are refused on input and shown as text if an earlier release stored them."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.engine.ingest import json_columns
from omnigraph.errors import OmniGraphError
from omnigraph.graph import Graph
from omnigraph.pipeline.export import FORMATS
from omnigraph.scalar_types import dates
from support.writes import new_graph, node

SCHEMA = "node T { k: String @key  day: Date?  at: DateTime?  days: [Date]?  times: [DateTime]? }\n"
DAY, MS = 5_000_000, 10**15
TEXT_DAY, TEXT_MS = "+15659-07-15", "+33658-09-27T01:46:40.000Z"
STORED: dict[str, Any] = {"day": DAY, "at": MS, "days": [0, DAY], "times": [0, MS]}
READ = """query q() {
    match { $t: T }
    return { $t.k as k, $t.day as day, $t.at as at, $t.days as days, $t.times as times }
    order { k }
}"""


@pytest.fixture
def graph(tmp_path, monkeypatch) -> Graph:
    """A graph with a row that earlier releases accepted."""
    graph = new_graph(tmp_path, SCHEMA, node("T", k="fine", day="2024-01-01", at="2024-01-01T00:00:01Z"))
    wide = (-(2**31), 2**31 - 1), (-(2**63), 2**63 - 1)
    with monkeypatch.context() as patch:
        patch.setattr(dates, "DATE_RANGE", wide[0])
        patch.setattr(dates, "DATETIME_RANGE", wide[1])
        patch.setattr(json_columns, "holds_values_of", lambda *_: True)
        graph.load([node("T", k="far", **STORED)], mode="append")
    return og.open(tmp_path / "g", environ={})


@pytest.mark.parametrize(
    "data",
    [
        {"day": DAY},
        {"day": -719_163},
        {"day": "0000-12-31"},
        {"at": MS},
        {"at": "0001-01-01T00:00:00+00:01"},
        {"at": "9999-12-31T23:59:59-00:01"},
        {"days": [DAY]},
        {"times": [MS]},
    ],
)
def test_records_are_refused(tmp_path, data):
    graph = new_graph(tmp_path, SCHEMA)
    with pytest.raises(OmniGraphError, match="is outside the years 1 to 9999"):
        graph.load([node("T", k="a", **data)], mode="append")


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("day", pa.array([DAY], pa.int32()).cast(pa.date32())),
        ("day", pa.array([MS], pa.int64()).cast(pa.timestamp("ms"))),
        ("at", pa.array([MS], pa.int64()).cast(pa.date64())),
        ("at", pa.array([10**12], pa.int64()).cast(pa.timestamp("s"))),
        ("days", pa.array([[DAY]], pa.list_(pa.int32())).cast(pa.list_(pa.date32()))),
    ],
)
def test_columns_are_refused(tmp_path, name, column):
    graph = new_graph(tmp_path, SCHEMA)
    with pytest.raises(OmniGraphError, match=r"^line 1: T\.\w+: .* is outside the years 1 to 9999"):
        graph.load({"T": pa.table({"k": ["a"], name: column})}, mode="append")


def test_first_and_last_day_are_accepted(tmp_path):
    graph = new_graph(tmp_path, SCHEMA)
    graph.load([node("T", k="a", day="0001-01-01", at="9999-12-31T23:59:59.999Z")], mode="append")
    (record,) = graph.export()
    assert (record["data"]["day"], record["data"]["at"]) == (dates.DATE_RANGE[0], dates.DATETIME_RANGE[1])


def test_results_show_the_date_as_text(graph):
    result = graph.query(READ)
    far = {"k": "far", "day": TEXT_DAY, "at": TEXT_MS, "days": ["1970-01-01", TEXT_DAY]}
    assert json.loads(result.to_json())[0] == {**far, "times": ["1970-01-01T00:00:00.000Z", TEXT_MS]}
    for rows in (result.to_pylist(), list(graph.query(READ))):
        assert (rows[0]["day"], rows[0]["at"], rows[0]["days"][1]) == (TEXT_DAY, TEXT_MS, TEXT_DAY)
        assert rows[1]["day"].isoformat() == "2024-01-01"
        assert rows[1]["at"].isoformat() == "2024-01-01T00:00:01+00:00"
    frame = result.to_pandas()
    assert list(frame["day"].astype(str)) == [TEXT_DAY, "2024-01-01"]


def test_history_diff_feed_and_export(graph, tmp_path):
    newest, before = graph.commits()[:2]
    (change,) = graph.diff(before.id, newest.id)
    assert change.to_json()["after"]["day"] == TEXT_DAY
    (event,) = graph.history("T", "far")
    assert event.to_json()["after"]["times"][1] == TEXT_MS
    assert graph.entity_at("T", "far", newest.id)["at"] == TEXT_MS
    assert json.dumps(TEXT_MS)[1:-1] in json.dumps(graph.changes(start=f"after:{before.id}").to_json())
    for format_ in FORMATS:
        graph.export(tmp_path / format_, format=format_, partitioned=True)
    assert any(TEXT_DAY in path.read_text() for path in (tmp_path / "csv").glob("T.*.csv"))


def test_merge_keeps_the_row(graph):
    graph.branch_create("b")
    update = "query q($k: String) { update T set { days: [] } where k = $k }"
    graph.mutate(update, params={"k": "fine"})
    graph.on("b").mutate('query q() { update T set { times: [] } where k = "far" }')
    graph.merge("b", into="main")
    rows = graph.query(READ).to_pylist()
    assert [rows[0]["day"], rows[0]["times"], rows[1]["days"]] == [TEXT_DAY, [], []]


@pytest.mark.parametrize("days", [-(2**31), -719_528, -719_163, 0, 2_932_897, 2**31 - 1])
def test_text_names_the_stored_value(days):
    assert dates.stored_days(dates.python_date(days)) == days
    assert dates.stored_milliseconds(dates.python_datetime(days * 86_400_000 + 1)) == days * 86_400_000 + 1
