"""Under rules for rows, the times of an answer are whole milliseconds."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa

import omnigraph as og
from support.server import serving

POLICY = """\
version: 2
groups: { staff: [ana] }
rows: { default: allow }
rules:
  - { id: staff, allow: { actors: { group: staff }, role: viewer } }
  - { id: some, deny: { actors: { any: true }, actions: [row_read], types: [Person], when: 'resource.name == "Bo"' } }
"""
QUERY = {"query": "match { $p: Person } return { $p.name }"}


def test_times_are_whole_milliseconds(tmp_path: Path) -> None:
    graph = og.init(tmp_path / "g.omni", "node Person { name: String @key }")
    graph.load([{"type": "Person", "data": {"name": name}} for name in ("Ada", "Bo")], mode="append")
    (tmp_path / "policy.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "omnigraph.yaml").write_text("policy:\n  file: policy.yaml\n", encoding="utf-8")
    environ = {"OMNIGRAPH_SERVER_BEARER_TOKENS_JSON": json.dumps({"ana": "ana-token"})}
    with serving(graph.uri, config=tmp_path / "omnigraph.yaml", environ=environ, token="ana-token") as server:
        answers = [server.post("/query", QUERY) for _ in range(3)]
        arrow = server.post("/query", QUERY, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert [answer.json["rows"] for answer in answers] == [[{"p.name": "Ada"}]] * 3
    assert all(answer.json["elapsed_ms"] == int(answer.json["elapsed_ms"]) for answer in answers)
    assert all("." not in answer.headers["server-timing"] for answer in answers)
    metadata = pa.ipc.open_stream(arrow.body).schema.metadata
    assert metadata[b"elapsed_ms"].endswith(b".000")
