"""Commits, branches, tags and snapshots from documents."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

import omnigraph as og
from omnigraph.client.results.changes import block_of, entity_change_of
from omnigraph.client.results.history import RemoteSnapshot, commit_of, head_of, tag_of
from omnigraph.client.results.merges import preview_of
from omnigraph.client.results.schemas import plan_of
from omnigraph.errors import InputError, RemoteError
from omnigraph.wire.branches import BranchDocument, MergePreviewDocument, TagListDocument
from omnigraph.wire.change_feed import CommitChangesAnswerDocument
from omnigraph.wire.changes import HistoryDocument
from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.graph_state import SnapshotDocument
from omnigraph.wire.schemas import SchemaPlanDocument
from support.server import ServerUnderTest, serving

SCHEMA = "node Person { name: String @key }\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerUnderTest]:
    path: Path = tmp_path_factory.mktemp("results") / "graph.omni"
    graph = og.init(path, SCHEMA, sync=False)
    graph.load([{"type": "Person", "data": {"name": "ana"}}], mode="merge")
    graph.tag_create("v1")
    graph.branch_create("draft")
    with serving(graph.uri) as running:
        yield running


PLAIN: list[tuple[str, str, Any, type, Callable[[Any], object]]] = [
    ("GET", "/commits/main", None, CommitDocument, commit_of),
    ("GET", "/branches/main", None, BranchDocument, head_of),
    ("GET", "/tags", None, TagListDocument, lambda document: tag_of(document.tags[0])),
    ("GET", "/snapshot", None, SnapshotDocument, RemoteSnapshot),
    ("GET", "/commits/main/changes", None, CommitChangesAnswerDocument, block_of),
    ("GET", "/entities/Person/ana/history", None, HistoryDocument, lambda found: entity_change_of(found.changes[0])),
    ("POST", "/branches/merge/preview", {"source": "draft"}, MergePreviewDocument, preview_of),
    ("POST", "/schema/plan", {"schema_source": SCHEMA}, SchemaPlanDocument, plan_of),
]


@pytest.mark.parametrize(("method", "path", "body", "kind", "decode"), PLAIN, ids=[each[1] for each in PLAIN])
def test_an_answer_without_its_details_is_refused(
    server: ServerUnderTest, method: str, path: str, body: Any, kind: type, decode: Callable[[Any], object]
) -> None:
    """An older server ignores `values=typed`."""
    reply = server.request(method, path, body)
    with pytest.raises(RemoteError) as caught:
        decode(msgspec.json.decode(reply.body, type=kind))
    assert caught.value.code == "incomplete_answer"
    typed = server.request(method, path, body, headers={"Accept": "application/json;values=typed"})
    decode(msgspec.json.decode(typed.body, type=kind))


def test_a_remote_snapshot_opens_no_tables(server: ServerUnderTest) -> None:
    with og.connect(server.url) as graph:
        snapshot = graph.snapshot()
    for call in (lambda: snapshot.table("node:Person"), lambda: snapshot.entity("node:Person", "ana")):
        with pytest.raises(InputError) as caught:
            call()
        assert caught.value.code == "not_remote"


def test_a_missing_commit_is_refused() -> None:
    with pytest.raises(RemoteError):
        commit_of(UNSET)
