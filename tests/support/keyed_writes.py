"""Every write of `Graph` that takes an idempotency key, as a function of a graph and a key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.graph import Graph

SCHEMA = """
node Doc { key: String @key  text: String?  rank: F64?  meaning: Vector(8)? @embed(text) }
edge Cites: Doc -> Doc
"""
WIDER = SCHEMA.replace("rank: F64?", "rank: F64?  year: I32?")
NARROWER = SCHEMA.replace("text: String?  rank: F64?", "text: String?")
ENVIRON = {"OMNIGRAPH_EMBED_PROVIDER": "mock", "OMNIGRAPH_EMBED_MODEL": "m-1"}
ADD = "query add($key: String) { insert Doc { key: $key } as $d return { $d.key as key } }"
ALL = "query all_docs() { match { $d: Doc } return { $d.key as key } }"
INSERT = 'insert Doc { key: "new" }'


def new_graph(uri: Path) -> Graph:
    """A graph on which every write of `WRITES` changes something."""
    graph = og.init(uri, SCHEMA, sync=False, environ=ENVIRON)
    docs = [{"type": "Doc", "data": {"key": key, "text": f"about {key}"}} for key in "abc"]
    cites = [{"edge": "Cites", "from": "a", "to": key} for key in "bc"]
    graph.load([*docs, *cites], mode="append", embed=False)
    graph.store_query(ADD, ALL)
    graph.branch_create("side")
    graph.mutate('insert Doc { key: "s" }', branch="side")
    graph.branch_create("idle")
    graph.tag_create("old")
    graph.mutate('update Doc set { text: "changed" } where key = "b"', message="to revert")
    return graph


def open_graph(uri: str | Path) -> Graph:
    """A handle with its own caches, as another process has it."""
    return og.open(uri, sync=False, environ=ENVIRON)


Write = Callable[..., Any]

WRITES: dict[str, Write] = {
    "mutate": lambda graph, key, **more: graph.mutate(INSERT, idempotency_key=key, **more),
    "unify": lambda graph, key, **more: graph.unify("Doc", keep="a", drop="b", idempotency_key=key, **more),
    "store_query": lambda graph, key, **more: graph.store_query(
        ALL.replace("all_docs", "docs"), idempotency_key=key, **more
    ),
    "delete_query": lambda graph, key, **more: graph.delete_query("all_docs", idempotency_key=key, **more),
    "invoke": lambda graph, key, **more: graph.invoke("add", {"key": "called"}, idempotency_key=key, **more),
    "load": lambda graph, key, **more: graph.load(
        [{"type": "Doc", "data": {"key": "new"}}], mode="append", job_id=key, **more
    ),
    "ingest": lambda graph, key, **more: graph.ingest(
        [{"type": "Doc", "data": {"key": "fed"}}], branch="fed", mode="append", job_id=key, **more
    ),
    "merge": lambda graph, key, **more: graph.merge("side", idempotency_key=key, **more),
    "merge and delete": lambda graph, key, **more: graph.merge("side", delete_branch=True, idempotency_key=key, **more),
    "revert": lambda graph, key, **more: graph.revert("main", idempotency_key=key, **more),
    "apply_schema": lambda graph, key, **more: graph.apply_schema(WIDER, idempotency_key=key, **more),
    "drop": lambda graph, key, **more: graph.apply_schema(NARROWER, allow_data_loss=True, idempotency_key=key, **more),
    "analyze": lambda graph, key, **more: graph.analyze("pagerank", write="rank", idempotency_key=key, **more),
    "embed": lambda graph, key, **more: graph.embed(idempotency_key=key, **more),
    "branch_create": lambda graph, key, **more: graph.branch_create("new", idempotency_key=key, **more),
    "branch_update": lambda graph, key, **more: graph.branch_update(
        "side", description="a try", idempotency_key=key, **more
    ),
    "ensure_indices": lambda graph, key, **more: graph.ensure_indices(idempotency_key=key, **more),
    "optimize": lambda graph, key, **more: graph.optimize(idempotency_key=key, **more),
    "branch_delete": lambda graph, key, **more: graph.branch_delete("side", force=True, idempotency_key=key, **more),
    "tag_create": lambda graph, key, **more: graph.tag_create("newest", idempotency_key=key, **more),
    "tag_delete": lambda graph, key, **more: graph.tag_delete("old", idempotency_key=key, **more),
}

_WITHOUT_HEAD = ("branch_create", "tag_create", "tag_delete", "ensure_indices", "optimize")
ON_BRANCH = [name for name in WRITES if name not in _WITHOUT_HEAD]
"""The writes that take `if_commit`."""


def outcome(result: Any) -> Any:
    """What two equal results have in common: everything but the mark of a repeated load and its note."""
    if result is None or not hasattr(result, "to_json"):
        return result
    return {name: value for name, value in result.to_json().items() if name not in ("repeated", "notes")}


def state_of(graph: Graph) -> tuple[Any, ...]:
    """Everything that a write may change: heads, tags, commits and rows."""
    branches = graph.branches()
    return (
        graph.newest_version,
        [(branch, [commit.id for commit in graph.commits(branch)]) for branch in branches],
        [(tag.name, tag.commit_id) for tag in graph.tags()],
        [(query.name, query.source) for branch in branches for query in graph.queries(branch)],
        [sorted(map(repr, graph.export(branch=branch))) for branch in branches],
    )
