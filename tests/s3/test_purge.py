"""A purge on a bucket: no object contains a canary, and machines with an older cache forget it."""

from __future__ import annotations

import obstore
import pytest

import omnigraph as og
from omnigraph.storage.failpoints import FailpointError, arm
from omnigraph.storage.files.location import locate
from omnigraph.storage.files.s3_objects import bucket_store
from support.canaries import SUBJECT, VALUES, fill
from support.s3 import S3


def objects_of(uri: str, s3: S3) -> dict[str, bytes]:
    location = locate(uri, s3.environ)
    store = bucket_store(location)
    prefix = uri.removeprefix("s3://").partition("/")[2]
    found = [item["path"] for batch in obstore.list(store, f"{prefix}/") for item in batch]
    return {path: bytes(obstore.get(store, path).bytes()) for path in found}


def test_no_canary_is_left_in_the_bucket(s3: S3, tmp_path, tune):
    tune(statistics_stored_rows_min=1, segment_rows_min=1, adjacency_disk_edges_min=1, id_segments_rows_min=1)
    environ = {**s3.environ, "OMNIGRAPH_CACHE_DIR": str(tmp_path / "cache")}
    uri = s3.new_place()
    graph = fill(uri, environ)
    elsewhere = {**s3.environ, "OMNIGRAPH_CACHE_DIR": str(tmp_path / "elsewhere")}
    other = og.open(uri, environ=elsewhere)
    other.query('match { $p: Person search($p.text, "canary") } return { $p.name }', at="before")
    needles = [value.encode() if isinstance(value, str) else value for value in VALUES]
    assert any(needle in data for data in objects_of(uri, s3).values() for needle in needles)
    with arm("purge.switched"), pytest.raises(FailpointError):
        graph.purge("Person", [SUBJECT], edges=True, reason="test")
    [certificate] = og.open(uri, environ=environ).purge_resume()
    assert certificate.rows == {"node:Person": 1, "edge:Knows": 2, "edge:Lives": 1}
    left = {path for path, data in objects_of(uri, s3).items() for needle in needles if needle in data}
    assert left == set()
    assert other.get("Person", "p1")["small"] == 7, "an open handle continues with the new history"
    again = og.open(uri, environ=elsewhere)
    assert again.purge_verify(VALUES).is_clean
    assert again.verify(deep=True) == []
    for folder in ("cache", "elsewhere"):
        kept = [path.read_bytes() for path in (tmp_path / folder).rglob("*") if path.is_file()]
        assert not any(needle in data for data in kept for needle in needles)
    again.load([{"type": "Person", "data": {"name": "new"}}], mode="append")
    assert again.get("Person", "new") is not None
