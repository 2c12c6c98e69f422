"""Blobs given by reference are copied by the tasks of a job as by a load in memory."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.bulk import GraphPair

SCHEMA = """
node Photo { name: String @key  data: Blob  small: Blob? }
edge Beside: Photo -> Photo
"""


@pytest.fixture
def pair(tmp_path):
    return GraphPair.below(tmp_path, SCHEMA)


def reference(root: Path, name: str) -> str:
    return f"file://{root}/photos/{name}"


def photos(root: Path, names: list[str]) -> list[str]:
    return [
        json.dumps({"type": "Photo", "data": {"name": f"p{n}", "data": reference(root, name)}})
        for n, name in enumerate(names)
    ]


@pytest.mark.parametrize("set_aside", [False, True])
def test_blobs_are_copied_in_portions_that_fit_in_memory(pair, tmp_path, tune, set_aside):
    sizes = [10, 0, 300, 5, 5, 2_000, 1, 1, 1, 1, 700, 0, 0, 0, 3, 3]
    for number, size in enumerate(sizes):
        (tmp_path / "photos" / str(number)).write_bytes(bytes([number]) * size)
    tune(fetched_rows=2, fetched_bytes=1_000)
    lines = photos(tmp_path, [str(n) for n in range(len(sizes))])
    if set_aside:
        lines[5:5] = photos(tmp_path, ["gone"])
        lines.append(json.dumps({"edge": "Beside", "from": "p1", "to": "nobody"}))
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    pair.split_bytes = 10_000
    pair.load([tmp_path / "in.jsonl"], "append", set_aside=set_aside)
    assert len(pair.bulk.snapshot().table("node:Photo").dataset.get_fragments()) > 1


def test_tables_may_contain_references(pair, tmp_path):
    names = [f"p{n}" for n in range(4)]
    data = [reference(tmp_path, "a.jpg"), "base64:AA==", reference(tmp_path, "deep/c.jpg"), "base64:"]
    pq.write_table(pa.table({"name": names, "data": data}), tmp_path / "Photo.parquet", row_group_size=2)
    pair.split_bytes = 1
    pair.load([tmp_path / "Photo.parquet"], "append")
    (tmp_path / "Photo.csv").write_text(f"name,data\nq,{data[0]}\nr,{reference(tmp_path, 'none')}\n")
    pair.load([tmp_path / "Photo.csv"], "append")
    pair.load([tmp_path / "Photo.csv"], "append", set_aside=True)


def test_locating_a_line_resolves_no_reference_again(pair, tmp_path):
    lines = photos(tmp_path, ["a.jpg", "none", "a.jpg"])
    lines.append(json.dumps({"type": "Photo", "data": {"name": "p0", "data": reference(tmp_path, "a.jpg")}}))
    (tmp_path / "in.jsonl").write_text("\n".join(lines))
    pair.load([tmp_path / "in.jsonl"], "append", set_aside=True)
    followed: list[str] = []
    context = pair.bulk._context
    follow = context.fetch
    assert follow is not None
    pair.bulk._context = replace(context, fetch=lambda name: (followed.append(name), follow(name))[1])
    result = pair.bulk_load([str(tmp_path / "in.jsonl")], "overwrite", set_aside=True)
    assert [reject.line for reject in result.rejected] == [2, 4]
    assert len(followed) == 4
