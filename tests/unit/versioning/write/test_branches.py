"""Attributes and expiry of branches, and preconditions of their creation and deletion."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from omnigraph.errors import BranchNotFound, InputError, PreconditionFailed
from omnigraph.graph import Graph
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.model.manifest_rows import head_to_row, row_to_head
from omnigraph.versioning.upkeep.maintenance import cleanup
from omnigraph.versioning.write.branches import create_branch, delete_expired, expired
from support.store import repository_of
from support.writes import new_graph, shelf

LATER = datetime(2100, 1, 1, tzinfo=UTC)
BEFORE = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return new_graph(tmp_path)


def test_a_branch_has_a_description_and_an_expiry(graph):
    made = graph.branch_create("side", description="a try", expires_in=timedelta(days=7), actor="ana")
    assert (made.owner, made.description) == ("ana", "a try")
    assert made.created_at + timedelta(days=6) < made.expires_at <= made.created_at + timedelta(days=7)
    assert graph.head("side") == made
    assert "a try" in repr(made)
    assert "description" not in repr(graph.head())


def test_attributes_survive_writes_and_are_not_inherited(graph):
    graph.branch_create("side", description="a try", expires_in=timedelta(days=7))
    before = graph.head("side")
    graph.load([shelf("a")], mode="append", branch="side")
    after = graph.head("side")
    assert (after.description, after.expires_us) == (before.description, before.expires_us)
    child = graph.branch_create("child", "side")
    assert (child.description, child.expires_at) == (None, None)
    start = graph.branch_create("past", at=after.commit_id, description="old")
    assert (start.description, start.expires_at) == ("old", None)


def test_an_update_changes_only_what_is_given(graph):
    graph.branch_create("side")
    graph.branch_update("side", description="one")
    assert graph.branch_update("side", expires_at=LATER).description == "one"
    assert graph.head("side").expires_at == LATER
    assert graph.branch_update("side", description="two").expires_at == LATER
    assert graph.branch_update("side", description="", expires_at="never") == graph.head("side")
    assert (graph.head("side").description, graph.head("side").expires_at) == (None, None)
    assert graph.branch_update("main", description="the trunk").description == "the trunk"
    assert graph.commits("side") == graph.commits("main")


@pytest.mark.parametrize(
    "call",
    [
        lambda g: g.branch_create("new", expires_in=timedelta(0)),
        lambda g: g.branch_create("new", expires_in=60),
        lambda g: g.branch_create("new", expires_in=timedelta.max),
        lambda g: g.branch_create("new", description=7),
        lambda g: g.branch_create("new", description="half \ud800"),
        lambda g: g.branch_update("side", expires_at="soon"),
        lambda g: g.branch_update("main", expires_at=LATER),
    ],
)
def test_wrong_attributes_are_refused(graph, call: Callable[[Graph], Any]):
    graph.branch_create("side")
    with pytest.raises(InputError) as caught:
        call(graph)
    assert caught.value.hint
    assert graph.branches() == ["main", "side"]


def test_an_update_checks_its_branch_and_its_head(graph):
    with pytest.raises(BranchNotFound):
        graph.branch_update("none", description="x")
    with pytest.raises(PreconditionFailed):
        graph.branch_update("main", description="x", if_commit="01J0000000000000000000000A")
    assert graph.head().description is None


def test_a_head_of_an_earlier_release_has_no_attributes(graph):
    row = head_to_row(graph.head())
    assert "description" not in row["metadata"]
    assert row_to_head(row, {}.__getitem__) == graph.head()


def test_an_expired_branch_works_until_a_cleanup_deletes_it(graph):
    graph.branch_create("side")
    graph.branch_create("lasting", expires_in=timedelta(days=1))
    graph.branch_update("side", expires_at=BEFORE)
    commit = graph.load([shelf("a")], mode="append", branch="side").commit_id
    graph.cleanup(keep=10)
    assert graph.branches() == ["main", "lasting", "side"], "a preview deletes nothing"
    graph.cleanup(keep=10, confirm=True, actor="ana", message="nightly")
    assert graph.branches() == ["main", "lasting"]
    assert graph.commit(commit).branch == "side", "its commits stay readable until a cleanup removes their data"
    assert graph.verify() == []


def test_a_cleanup_and_its_preview_count_the_versions_of_expired_branches(graph):
    repository = repository_of(graph)
    graph.branch_create("side")
    for code in "abc":
        graph.load([shelf(code)], mode="append", branch="side")
    graph.branch_update("side", expires_at=BEFORE)
    planned = cleanup(repository, keep=1, grace=timedelta(0))
    done = cleanup(repository, keep=1, confirm=True, grace=timedelta(0))
    assert [one.old_versions_removed for one in planned] == [one.old_versions_removed for one in done]
    assert sum(one.old_versions_removed for one in done) > 0
    assert graph.verify() == []


def test_internal_heads_are_listed_nowhere_and_expire(graph):
    repository = repository_of(graph)
    head = create_branch(repository, "tmp")
    inner = replace(head, branch="__trial", incarnation="01J0000000000000000000000A", expires_us=1)
    repository.publish(lambda _: Change(put=(head_to_row(inner),), drop=("graph_head:tmp",)))
    assert graph.branches() == ["main"]
    assert expired(repository.state(), 2) == ["__trial"]
    assert delete_expired(repository, 0) == []
    assert delete_expired(repository, 2) == ["__trial"]
    assert repository.state().find_head("__trial") is None


def test_a_branch_that_was_prolonged_is_not_deleted(graph):
    graph.branch_create("side")
    graph.branch_update("side", expires_at=BEFORE)
    graph.branch_update("side", expires_at="never")
    graph.cleanup(keep=1, confirm=True)
    assert graph.branches() == ["main", "side"]


def test_a_branch_is_created_only_at_the_expected_commit(graph):
    repository = repository_of(graph)
    head = graph.snapshot().commit_id
    graph.load([shelf("a")], mode="append")
    with pytest.raises(PreconditionFailed):
        create_branch(repository, "side", if_commit=head)
    with pytest.raises(PreconditionFailed):
        graph.ingest([shelf("b")], branch="side", if_commit=head)
    assert graph.branches() == ["main"]
    assert create_branch(repository, "side", at=head, if_commit=head).commit_id == head
