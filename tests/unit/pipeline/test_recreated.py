"""A graph is deleted and created again at the same location while the process keeps handles of the first one."""

from __future__ import annotations

import json
import shutil

import omnigraph as og
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource

SCHEMA = "node Item {\n  name: String @key\n  count: I64\n}\n"
READ = "query q() { match { $i: Item } return { $i.name as name, $i.count as count } order { $i.name } }"


def bulk_load(graph, folder, counts):
    file = folder / "items.jsonl"
    lines = [json.dumps({"type": "Item", "data": {"name": name, "count": n}}) for name, n in counts.items()]
    file.write_text("\n".join(lines) + "\n")
    source = FileSource(plan_input([str(file)], {}, 1))
    load_source(graph._repository, InlineRunner(), source, LoadRequest("merge"))


def test_bulk_loads_into_a_recreated_graph(tmp_path):
    path = tmp_path / "graph"
    for life in range(3):
        graph = og.init(path, SCHEMA)
        bulk_load(graph, tmp_path, {"a": life, "b": 1})
        bulk_load(graph, tmp_path, {"b": life, "c": 2})
        rows = [{"name": "a", "count": life}, {"name": "b", "count": life}, {"name": "c", "count": 2}]
        assert list(graph.query(READ)) == rows
        assert not graph.verify()
        shutil.rmtree(path)
