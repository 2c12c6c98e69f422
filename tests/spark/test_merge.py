"""A merge decided on Spark equals a merge decided in process."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph as og
from omnigraph.graph import Graph
from omnigraph.versioning.compare import diff
from support.merge_model import KEYS, SCHEMA, Side, empty, shown, stored


def two_sides(path: Path) -> Graph:
    random = Random(5)
    main = Side(og.init(path, SCHEMA, sync=False), "main", empty())
    main.put(random)
    main.put(random)
    side = main.fork("side")
    for _ in range(3):
        main.edit(random)
        side.edit(random)
    return main.graph


def test_merge_ranges_decided_on_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split = diff.split_ids
    monkeypatch.setattr("omnigraph.operations.merge.merge_tasks.split_ids", lambda sides: split(sides, 3))
    here, there = two_sides(tmp_path / "here"), two_sides(tmp_path / "there")
    with pytest.raises(og.errors.MergeConflict) as mine:
        here.merge("side")
    with pytest.raises(og.errors.MergeConflict) as theirs:
        there.merge("side", engine="spark", spark=spark)
    assert [c.to_json() for c in theirs.value.conflicts] == [c.to_json() for c in mine.value.conflicts]
    here.merge("side", resolve="theirs")
    there.merge("side", resolve="theirs", engine="spark", spark=spark)
    assert shown(stored(here, "main")) == shown(stored(there, "main"))
    assert there.verify() == []


def test_different_properties_combine_on_spark(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    split = diff.split_ids
    monkeypatch.setattr("omnigraph.operations.merge.merge_tasks.split_ids", lambda sides: split(sides, 3))
    graph = og.init(tmp_path / "g", f"merge {{ properties: combine }}\n{SCHEMA}", sync=False)
    graph.load([{"type": "N", "data": {"k": key}} for key in KEYS], mode="append")
    graph.branch_create("side")
    graph.mutate('update N set { a: 1 } where k != ""', branch="side")
    graph.mutate('update N set { b: "x" } where k != ""')
    graph.merge("side", engine="spark", spark=spark)
    assert [(row["data"]["a"], row["data"]["b"]) for row in graph.export(types=["N"])] == [(1, "x")] * len(KEYS)
    assert graph.verify() == []
