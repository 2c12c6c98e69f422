"""Requests that landed but whose responses were lost: reading determines the outcome, and nothing is done twice."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.errors import StorageError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.manifest.manifest_table import ManifestTable, PublishConflict
from omnigraph.versioning.write.branches import create_branch, delete_branch
from omnigraph.versioning.write.recovery import recover
from omnigraph.versioning.write.repository import Repository
from support.store import SCHEMA, add_pair, check_sound, new_graph, repository_of


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return repository_of(new_graph(tmp_path / "graph", 1))


def lose_one_response(monkeypatch: pytest.MonkeyPatch, method: str, failure: Exception) -> None:
    """Let one call succeed, and raise a failure instead of returning."""
    do = getattr(ManifestTable, method)
    lost: list[bool] = []

    def call(manifest: ManifestTable, *arguments: object) -> object:
        done = do(manifest, *arguments)
        if not lost:
            lost.append(True)
            raise failure
        return done

    monkeypatch.setattr(ManifestTable, method, call)


# A client that repeats a conditional put after a broken connection finds the object that it wrote itself.
FAILURES = [StorageError("connection reset"), PublishConflict()]


@pytest.mark.parametrize("failure", FAILURES, ids=["connection lost", "own write reported as conflict"])
def test_a_commit_is_published_once(repository, monkeypatch, failure):
    lose_one_response(monkeypatch, "publish", failure)
    commit = add_pair(repository, "once")
    graph = og.open(repository.location.uri)
    assert graph.commits()[0] == commit
    assert len(check_sound(graph, ["seed-0", "once"])) == 3


@pytest.mark.parametrize("failure", FAILURES, ids=["connection lost", "own write reported as conflict"])
def test_a_branch_is_created_once(repository, monkeypatch, failure):
    lose_one_response(monkeypatch, "publish", failure)
    head = create_branch(repository, "mine")
    assert repository.state().get_head("mine") == head


@pytest.mark.parametrize("failure", FAILURES, ids=["connection lost", "own write reported as conflict"])
def test_a_branch_is_deleted_once(repository, monkeypatch, failure):
    create_branch(repository, "mine")
    lose_one_response(monkeypatch, "publish", failure)
    delete_branch(repository, "mine")
    assert repository.branches() == ["main"]


def test_a_recreated_branch_is_not_deleted_instead(repository, monkeypatch):
    create_branch(repository, "mine")
    other = Repository.open(repository.location.uri)
    publish = ManifestTable.publish

    def overtaken(manifest: ManifestTable, *arguments: object) -> object:
        monkeypatch.setattr(ManifestTable, "publish", publish)
        delete_branch(other, "mine")
        create_branch(other, "mine")
        raise PublishConflict

    monkeypatch.setattr(ManifestTable, "publish", overtaken)
    delete_branch(repository, "mine")
    assert repository.branches() == ["main", "mine"]


def test_an_init_that_landed_succeeds(tmp_path, monkeypatch):
    lose_one_response(monkeypatch, "create", PublishConflict())
    graph = og.init(tmp_path / "graph", SCHEMA)
    assert len(check_sound(graph, [])) == 1
    assert (tmp_path / "graph" / "_schema.pg").read_text() == SCHEMA


def test_an_intent_that_cannot_be_deleted_is_no_failure(repository):
    with arm("intent.delete"):
        commit = add_pair(repository, "once")
    graph = og.open(repository.location.uri)
    assert graph.commits()[0] == commit
    check_sound(graph, ["seed-0", "once"])


def test_an_intent_for_a_missing_table_blocks_no_recovery(repository):
    note = {
        "schema_version": 1,
        "operation_id": "operation-1",
        "graph_commit_id": "commit-1",
        "branch": "main",
        "lease_s": 0,
        "tables": [{"table_key": "node:Gone", "table_path": "nodes/gone", "expected_version": 1}],
    }
    repository.objects.write("__recovery/operation-1.json", json.dumps(note).encode())
    assert [entry.outcome for entry in recover(repository)] == ["rolled_back"]
    check_sound(og.open(repository.location.uri), ["seed-0"])
