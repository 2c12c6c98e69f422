"""Blobs in a bucket are read in ranges."""

from __future__ import annotations

import numpy as np

import omnigraph as og
from support.writes import node

MIB = 1024 * 1024


def test_ranges_and_time_travel(s3):
    values = {"inline": b"small", "packed": np.random.default_rng(1).bytes(200_000), "large": bytes(5 * MIB) + b"end"}
    graph = og.init(s3.new_place(), "node Photo { name: String @key  data: Blob? }", environ=s3.environ)
    graph.load([node("Photo", name=name, data=data) for name, data in values.items()], mode="append")
    first = graph.snapshot().commit_id
    graph.load([node("Photo", name="large", data=b"new")], mode="merge")
    assert graph.blob("Photo", "large", "data").read() == b"new"
    for name, data in values.items():
        blob = graph.blob("Photo", name, "data", at=first)
        assert (blob.size, blob.read(2, 3), b"".join(blob.stream())) == (len(data), data[2:5], data)
        assert blob.read(blob.size - 3) == data[-3:]
        again = og.open(graph.uri, environ=s3.environ).blob("Photo", name, "data", at=first)
        assert again.etag == blob.etag
