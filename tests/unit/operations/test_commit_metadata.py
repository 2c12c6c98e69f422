"""Metadata of commits that a handle adds."""

from __future__ import annotations

import asyncio

import pytest

import omnigraph as og
from omnigraph.errors import InputError
from omnigraph.operations.commit_metadata import RESERVED, check_metadata
from support.writes import SHELVES, new_graph, shelf


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path)


def test_every_commit_of_a_handle_has_its_metadata(graph):
    traced = graph.with_metadata({"request_id": "r1"})
    traced.load([shelf("a")], mode="append")
    traced.mutate('insert Shelf { code: "b" }', idempotency_key="k")
    traced.branch_create("side")
    traced.on("side").mutate('insert Shelf { code: "c" }')
    traced.merge("side")
    traced.revert("main")
    traced.apply_schema(SHELVES.replace("note: String?", "note: String?  year: I32?"))
    traced.optimize()
    commits = graph.commits()
    assert {commit.kind for commit in commits} >= {"load", "mutation", "merge", "revert", "schema_apply", "optimize"}
    assert [commit.metadata.get("request_id") for commit in commits] == ["r1"] * (len(commits) - 1) + [None]


def test_a_handle_replaces_entries_of_the_same_name(graph):
    traced = graph.with_metadata({"request_id": "r1", "tool": "x"}).with_metadata({"request_id": "r2"})
    commit = traced.load([shelf("a")], mode="append").commit_id
    found = graph.commit(commit).metadata
    assert (found["request_id"], found["tool"]) == ("r2", "x")
    assert graph.with_metadata({"a": 1}).on("main").branch == "main"


def test_an_asynchronous_handle_has_metadata(graph):
    async def scenario() -> None:
        async with await og.aopen(graph.uri) as opened:
            traced = await opened.with_metadata({"request_id": "r1"})
            await traced.load([shelf("a")], mode="append")

    asyncio.run(scenario())
    assert graph.commits()[0].metadata["request_id"] == "r1"


@pytest.mark.parametrize(
    "metadata",
    [{1: "a"}, {"a": object()}, {"a": float("nan")}, {"a": "half \ud800"}, 7, *[{name: 1} for name in RESERVED]],
)
def test_metadata_is_a_json_object_without_reserved_names(graph, metadata):
    with pytest.raises(InputError) as caught:
        graph.with_metadata(metadata)
    assert caught.value.code == "bad_metadata"
    assert caught.value.hint


def test_metadata_is_copied():
    given = {"a": {"b": [1]}}
    checked = check_metadata(given)
    given["a"]["b"].append(2)
    assert checked == {"a": {"b": [1]}}
