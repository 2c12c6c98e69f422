"""Review on a bucket: deletion files and ids of data files, which bypass Lance, are read from the bucket too."""

from __future__ import annotations

import pytest

import omnigraph as og
from support.s3 import S3

SCHEMA = "node Person {\n    name: String @key\n    age: I32?\n}\n\nedge Knows: Person -> Person\n"


@pytest.fixture
def graph(s3: S3):
    graph = og.init(s3.new_place(), SCHEMA, environ=s3.environ)
    graph.load([{"type": "Person", "data": {"name": f"p{number}", "age": 1}} for number in range(5)], mode="append")
    return graph


def set_age(graph, name, age, branch="main"):
    query = f'query q() {{ update Person set {{ age: {age} }} where name = "{name}" }}'
    return graph.mutate(query, branch=branch).commit_id


def test_diff_merge_history_revert_and_feed(graph):
    cursor = graph.changes().cursor
    graph.tag_create("start")
    graph.branch_create("side")
    theirs = set_age(graph, "p1", 2, "side")
    ours = set_age(graph, "p2", 3)
    assert [(c.id, c.properties) for c in graph.diff("start", "side")] == [("p1", ["age"])]
    assert graph.merge("side", delete_branch=True).outcome == "merged"
    assert next(graph.history("Person", "p1")).commit.id == theirs
    assert {b.property: b.commit.id for b in graph.blame("Person", "p2")}["age"] == ours
    graph.revert(ours)
    assert graph.entity_at("Person", "p2", None)["age"] == 1
    assert [[c.id for c in block] for block in graph.changes(cursor)] == [["p2"], ["p1"], ["p2"]]
    assert len(graph.tags()) == 1
    assert graph.verify() == []
