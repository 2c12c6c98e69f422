"""A server serves graphs in a bucket."""

from __future__ import annotations

import omnigraph as og
from omnigraph.server.deployment.state_builder import StartOptions
from support.commands import SCHEMA
from support.serving import request, serving


def test_a_bucket_beside_a_missing_graph(s3):
    place = s3.new_place()
    og.init(place, SCHEMA, environ=s3.environ).load([{"type": "Person", "data": {"name": "Ana"}}], mode="append")
    names = [place, s3.new_place()]
    ids = [name.rstrip("/").rsplit("/", 1)[1] for name in names]
    options = StartOptions(tuple(names), flags={"bind": "127.0.0.1:0"}, environ=s3.environ)
    with serving(options) as (address, holder):
        assert [graph.graph_id for graph in holder.current.quarantined] == [ids[1]]
        found = request(address, f"/graphs/{ids[0]}/snapshot").document
        assert [table["row_count"] for table in found["tables"]] == [0, 1]
        missing = request(address, f"/graphs/{ids[1]}/snapshot")
        assert (missing.status, int(missing.headers["retry-after"]) > 0) == (503, True)
        assert request(address, "/snapshot").status == 404
