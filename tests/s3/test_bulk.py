"""Bulk loads and exports with both the graph and the files in a bucket."""

from __future__ import annotations

import json

import obstore
import pytest

import omnigraph as og
from omnigraph.errors import ConstraintViolation, InputError
from omnigraph.storage.files.location import locate
from omnigraph.storage.files.s3_objects import bucket_store
from support.writes import SHELVES, beside, ids_of, rows_of, shelf


@pytest.fixture(autouse=True)
def every_file_is_a_job(tune):
    tune(memory_load_bytes_max=0, spark_bytes_min=1 << 60)


def put(s3, place: str, records) -> None:
    location = locate(place, s3.environ)
    data = "".join(json.dumps(record) + "\n" for record in records).encode()
    obstore.put(bucket_store(location), location.prefix, data)


def keys(s3, place: str) -> list[str]:
    location = locate(place, s3.environ)
    found = [item["path"] for batch in obstore.list(bucket_store(location), location.prefix) for item in batch]
    return [path.removeprefix(location.prefix + "/") for path in found]


def test_load_and_export(s3):
    place, uri = s3.new_place(), s3.new_place()
    put(s3, f"{place}/in/a.jsonl", [shelf("a"), shelf("b"), beside("a", "b", id_="e")])
    put(s3, f"{place}/in/b.jsonl", [shelf("c")])
    put(s3, f"{place}/in/_SUCCESS", [])
    graph = og.init(uri, SHELVES, environ=s3.environ)
    told = []
    graph.load(f"{place}/in", mode="append", watch=told.append)
    assert {progress.step for progress in told} >= {"read", "check"}
    graph.load(f"{place}/in/b*.jsonl", mode="merge")
    put(s3, f"{place}/more.jsonl", [shelf("a", note="new"), shelf("d")])
    graph.load(f"{place}/more.jsonl", mode="merge")
    assert ids_of(graph, "Shelf") == ["a", "b", "c", "d"]
    assert graph.verify() == []
    assert graph.export(f"{place}/out", format="parquet") == 5
    again = og.init(s3.new_place(), SHELVES, environ=s3.environ)
    again.load(f"{place}/out", mode="append", engine="memory")
    assert rows_of(again, "Shelf") == rows_of(graph, "Shelf")
    assert not [key for key in keys(s3, uri) if key.startswith("__staging/")]


def test_errors_name_the_file_by_its_uri(s3):
    place, uri = s3.new_place(), s3.new_place()
    put(s3, f"{place}/a.jsonl", [shelf("a")])
    put(s3, f"{place}/b.jsonl", [shelf("b"), beside("b", "nobody")])
    graph = og.init(uri, SHELVES, environ=s3.environ)
    before = keys(s3, uri)
    with pytest.raises(ConstraintViolation, match=rf"^{place}/b\.jsonl, line 2: edge Beside: dst 'nobody'"):
        graph.load([f"{place}/a.jsonl", f"{place}/b.jsonl"], mode="append")
    assert keys(s3, uri) == before
    with pytest.raises(InputError, match="there is no file"):
        graph.load(f"{place}/c.jsonl", mode="append")
