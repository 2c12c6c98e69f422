"""Every document with rows shows a value in the same form, whichever way it was read."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph import Graph
from omnigraph.wire.changes import BlameDocument, CommitChangesDocument, DiffDocument, FeedPageDocument, HistoryDocument
from omnigraph.wire.entities import EntityDocument
from omnigraph.wire.json_values import row_value
from omnigraph.wire.queries import TargetDocument, query_document

SCHEMA = """
node Thing {
    name: String @key
    small: I64?
    large: I64?
    huge: U64?
    ratio: F64?
    day: Date?
    time: DateTime?
    data: Blob?
    vector: Vector(2)?
    list: [I64]?
}
"""
RECORD = {
    "name": "a",
    "small": 2**53 - 1,
    "large": -(2**53),
    "huge": 2**64 - 1,
    "ratio": 0.1,
    "day": "2026-01-31",
    "time": "2026-01-31T12:30:00.5Z",
    "data": "base64:aGk=",
    "vector": [1, 0.5],
    "list": [1, 2**60 + 1],
}
SHOWN = {
    "id": "a",
    "name": "a",
    "small": 9007199254740991,
    "large": "-9007199254740992",
    "huge": "18446744073709551615",
    "ratio": 0.1,
    "day": "2026-01-31",
    "time": "2026-01-31T12:30:00.500Z",
    "data": "base64:aGk=",
    "vector": [1.0, 0.5],
    "list": [1, "1152921504606846977"],
}


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    folder: Path = tmp_path_factory.mktemp("values")
    (folder / "data.jsonl").write_text(json.dumps({"type": "Thing", "data": RECORD}), encoding="utf-8")
    graph = og.init(str(folder / "graph"), schema=SCHEMA)
    graph.load(folder / "data.jsonl", mode="merge")
    return graph


def rows_of(graph: Graph) -> dict[str, dict[str, Any]]:
    """The row as each document shows it."""
    first, head = graph.commits()[-1].id, graph.commits()[0].id
    changes = [change.to_json() for change in graph.diff(first, head)]
    diff = DiffDocument.of({"from": first, "to": head, "schema_steps": [], "changes": changes})
    versions = [change.to_json() for change in graph.history("Thing", "a")]
    history = HistoryDocument.of({"type_name": "Thing", "id": "a", "changes": versions})
    blame = BlameDocument.of(
        {"type_name": "Thing", "id": "a", "properties": [each.to_json() for each in graph.blame("Thing", "a")]}
    )
    block = graph.commit_changes(head)
    commit = CommitChangesDocument.of({**block.to_json(), "page": block.page})
    feed = FeedPageDocument.of(graph.changes(start="beginning").to_json())
    entity = EntityDocument("Thing", "a", row_value(graph.get("Thing", "a")), head)
    return {
        "diff": diff.to_json()["changes"][0]["after"],
        "history": history.to_json()["changes"][0]["after"],
        "blame": {each["property"]: each["value"] for each in blame.to_json()["properties"]},
        "commit": commit.to_json()["changes"][0]["after"],
        "feed": feed.to_json()["blocks"][-1]["changes"][0]["after"],
        "entity": entity.to_json()["data"],
    }


def test_every_document_shows_a_row_alike(graph: Graph) -> None:
    for name, row in rows_of(graph).items():
        assert row == SHOWN, name
        assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_query_shows_the_same_values(graph: Graph) -> None:
    names = [name for name in SHOWN if name not in ("data", "id")]
    returned = ", ".join(f"$t.{name} as {name}" for name in names)
    result = graph.query(f"query q() {{ match {{ $t: Thing }} return {{ id($t) as id, {returned}, $t }} }}")
    document = query_document(result, TargetDocument("main", None), result.to_columns())
    (row,) = document.to_json()["rows"]
    node = row.pop("t")
    assert row == node == {name: SHOWN[name] for name in ("id", *names)}


def test_export_shows_integers_as_numbers(graph: Graph, tmp_path: Path) -> None:
    """An export is input of a load, which reads numbers of any size."""
    graph.export(tmp_path / "out.jsonl")
    record = json.loads((tmp_path / "out.jsonl").read_text(encoding="utf-8"))["data"]
    assert (record["large"], record["huge"], record["list"]) == (-(2**53), 2**64 - 1, [1, 2**60 + 1])


def test_row_value() -> None:
    time = datetime(2026, 1, 31, 12, tzinfo=UTC)
    row = {"a": True, "b": None, "c": time, "d": date(2026, 1, 31), "e": float("nan"), "f": [b"", {"g": -(2**53)}]}
    assert row_value(row) == {
        "a": True,
        "b": None,
        "c": "2026-01-31T12:00:00.000Z",
        "d": "2026-01-31",
        "e": "NaN",
        "f": ["base64:", {"g": "-9007199254740992"}],
    }
