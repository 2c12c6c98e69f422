"""A cluster in a bucket: apply, a server that copies its policies, and an adopted revision."""

from __future__ import annotations

import pytest

import omnigraph as og
from omnigraph.cluster.cluster_store import ClusterStore
from omnigraph.cluster.converge import apply_cluster
from omnigraph.cluster.declaration import read_declaration
from omnigraph.errors import Conflict
from support.s3 import S3
from support.server import serving

POLICY = (
    "version: 2\ngroups: { staff: [ana] }\nrules:\n  - { id: s, allow: { actors: { group: staff }, role: owner } }\n"
)


def test_a_server_serves_a_cluster_of_a_bucket(s3: S3, tmp_path):
    place = s3.new_place()
    files = {"s.pg": "node Person { name: String @key }\n", "staff.yaml": POLICY}
    files["cluster.yaml"] = (
        f"version: 1\nmetadata: {{ name: demo }}\nstorage: {place}\ngraphs:\n  lab: {{ schema: s.pg }}\n"
        "policies:\n  staff: { file: staff.yaml, applies_to: [lab] }\n"
    )
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    declared, store = read_declaration(tmp_path), ClusterStore(place, s3.environ)
    assert apply_cluster(declared, store, s3.environ, "ana").converged
    with pytest.raises(Conflict, match="cluster 'demo'"):
        og.init(f"{place}/graphs/new.omni", files["s.pg"], environ=s3.environ)
    with pytest.raises(Conflict, match="cluster 'demo'"):
        og.open(f"{place}/graphs/lab.omni", environ=s3.environ).apply_schema("node Thing { name: String @key }\n")
    environ = {**s3.environ, "OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": '{"ana": "a-token-of-ana"}'}
    with serving(flags={"cluster": place}, environ=environ, token="a-token-of-ana") as server:
        assert server.get("/graphs/lab/branches").status == 200
        assert server.get("/graphs/lab/branches", token="x").status == 401
        (tmp_path / "staff.yaml").write_text(POLICY.replace("ana", "bo"), encoding="utf-8")
        assert apply_cluster(read_declaration(tmp_path), store, s3.environ, "ana").revision.number == 2
        assert server.holder.reload("test").ok
        assert server.get("/graphs/lab/branches").status == 403
