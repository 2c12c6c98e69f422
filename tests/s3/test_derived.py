"""Derived structures of a graph on an object store are kept in the cache folder of the user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.engine.adjacency import adjacency
from omnigraph.engine.cache import user_folder

SCHEMA = "node Item { name: String @key  note: String }\nedge Link: Item -> Item"
HOPS = 'query q() { match { $a: Item { name: "i1" }  $a link $b } return { $b.name as name } order { $b.name } }'
RECORDS = [{"type": "Item", "data": {"name": f"i{at}", "note": "red"}} for at in range(5)] + [
    {"edge": "Link", "from": f"i{at}", "to": f"i{(at * 2) % 5}"} for at in range(5)
]


@pytest.fixture
def environ(s3, tmp_path) -> dict[str, str]:
    return {**s3.environ, user_folder.VARIABLE: str(tmp_path / "cache")}


def test_the_next_process_uses_the_structures_of_the_last(s3, environ, tmp_path, monkeypatch, tune):
    tune(adjacency_disk_edges_min=1)
    uri = s3.new_place()
    graph = og.init(uri, SCHEMA, environ=environ)
    graph.load(RECORDS, mode="append")
    expected = list(graph.query(HOPS))
    (folder,) = (tmp_path / "cache" / "graphs").iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    assert any(folder.iterdir())
    monkeypatch.setattr(adjacency, "write_targets", lambda *_: pytest.fail("built again"))
    assert list(og.open(uri, read_only=True, environ=environ).query(HOPS)) == expected


def test_a_folder_of_others_is_not_used(s3, environ, tmp_path, tune):
    tune(adjacency_disk_edges_min=1)
    uri = s3.new_place()
    graph = og.init(uri, SCHEMA, environ=environ)
    graph.load(RECORDS, mode="append")
    (folder,) = (tmp_path / "cache" / "graphs").iterdir()
    folder.chmod(0o777)
    assert list(og.open(uri, environ=environ).query(HOPS))
    assert not any(folder.iterdir())


def test_structures_of_graphs_that_are_no_longer_opened_are_removed(tmp_path):
    environ = {user_folder.VARIABLE: str(tmp_path)}
    unused, used = (user_folder.graph_folder(environ, f"s3://bucket/{name}") for name in ("unused", "used"))
    assert unused is not None
    assert used is not None
    os.utime(unused, (1, 1))
    os.utime(used, (1, 1))
    assert user_folder.graph_folder(environ, "s3://bucket/used") == used
    assert [path.name for path in Path(used.parent).iterdir()] == [used.name]
    assert user_folder.graph_folder({user_folder.VARIABLE: "off"}, "s3://bucket/used") is None
