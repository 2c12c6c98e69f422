"""Rows as JSON values, and as a load reads them again."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime

import omnigraph as og
from omnigraph.versioning.compare.rows import to_plain

SCHEMA = """
node Thing {
    k: String @key
    day: Date?
    at: DateTime?
    times: [DateTime]?
    raw: Blob?
    wide: U64?
    ratio: F64?
    meaning: Vector(2)?
}
"""


def test_values_are_converted_to_json():
    at = datetime(2024, 1, 2, 3, 4, 5, 678_000, tzinfo=UTC)
    row = {
        "d": date(2024, 2, 29),
        "t": at,
        "ts": [at, None],
        "b": b"\0\1",
        "n": 2**63,
        "m": -(2**53),
        "i": 7,
        "x": None,
    }
    assert to_plain(row) == {
        "d": "2024-02-29",
        "t": "2024-01-02T03:04:05.678Z",
        "ts": ["2024-01-02T03:04:05.678Z", None],
        "b": "base64:AAE=",
        "n": "9223372036854775808",
        "m": "-9007199254740992",
        "i": 7,
        "x": None,
    }
    assert to_plain(True) is True


def test_all_shown_values_are_valid_json(tmp_path):
    graph = og.init(tmp_path / "g", SCHEMA, sync=False)
    data = {
        "k": "x",
        "day": "2024-02-29",
        "at": "2024-01-02T03:04:05.678Z",
        "times": ["2024-01-02T03:04:05.678Z"],
        "raw": "base64:AAE=",
        "wide": 2**63,
        "ratio": 0.5,
        "meaning": [0.5, 1.0],
    }
    graph.load([{"type": "Thing", "data": data}], mode="append")
    loaded = graph.snapshot().commit_id
    for branch in ("here", "there"):
        graph.branch_create(branch)
        graph.load(
            [{"type": "Thing", "data": {**data, "day": None, "k": "x", "ratio": len(branch)}}],
            mode="merge",
            branch=branch,
        )
    shown = [
        *(change.to_json() for change in graph.diff(loaded, "here")),
        graph.commit_changes(loaded).to_json(),
        graph.changes(start="beginning").to_json(),
        *(change.to_json() for change in graph.history("Thing", "x")),
        *(blame.to_json() for blame in graph.blame("Thing", "x")),
        graph.merge_preview("there", into="here").to_json(),
    ]
    assert all(json.loads(json.dumps(document)) == document for document in shown)
    (change,) = graph.commit_changes(loaded)
    again = change.to_json()["after"]
    assert {name: again[name] for name in data if name != "wide"} == {k: v for k, v in data.items() if k != "wide"}
    graph.load(
        [{"type": "Thing", "data": {**{k: v for k, v in again.items() if k != "id"}, "wide": int(again["wide"])}}],
        mode="merge",
    )
    assert list(graph.diff(loaded)) == []
