"""Processes that make the same requests with the same idempotency keys: each takes place once."""

from __future__ import annotations

from support.keyed_writes import WRITES, new_graph, open_graph, outcome, state_of
from support.racing import race

ORDER = [
    *("branch_create", "tag_create", "mutate", "ingest", "merge", "revert", "apply_schema", "analyze", "embed"),
    *("store_query", "delete_query", "invoke"),
    *("branch_update", "tag_delete", "branch_delete"),
]
"""Maintenance is left out: it yields to a concurrent writer of a table and then makes no commit."""


def test_processes_with_the_same_keys_get_the_same_results(tmp_path):
    graph = new_graph(tmp_path / "g")
    alone = new_graph(tmp_path / "alone")
    for name in ORDER:
        WRITES[name](alone, name)
    workers = race(tmp_path, graph.uri, *[{"do": "keyed", "writes": ORDER}] * 3)
    first, *others = [[line for line in worker.said() if "write" in line] for worker in workers]
    assert [line["write"] for line in first] == ORDER
    assert others == [first, first]
    after = state_of(graph)
    assert [commit.kind for commit in graph.commits()] == [commit.kind for commit in alone.commits()]
    again = open_graph(graph.uri)
    assert [repr(outcome(WRITES[name](again, name))) for name in ORDER] == [line["outcome"] for line in first]
    assert state_of(graph) == after
    assert graph.verify() == []
