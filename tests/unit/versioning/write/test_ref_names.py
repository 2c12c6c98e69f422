"""Branches: valid names, start points, isolation and constant cost."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from omnigraph.errors import BranchExists, BranchNotFound, CommitNotFound, InputError
from omnigraph.versioning.write.branches import create_branch, delete_branch
from omnigraph.versioning.write.ref_changes import RefRequest
from omnigraph.versioning.write.ref_names import check_branch_name
from support.graphs import (
    PERSON,
    add_people,
    branch_names,
    files_below,
    ids_of,
    names_of,
    new_repository,
    open_repository,
    put_people,
)


@pytest.fixture
def root(tmp_path):
    return tmp_path / "g"


@pytest.fixture
def repository(root):
    return new_repository(root)


def table_files(root):
    found = files_below(root)
    return {name: size for name, size in found.items() if name.startswith(("nodes/", "edges/"))}


# -- names ---------------------------------------------------------------------------------------------

GOOD = [
    "a",
    "feature",
    "UP",
    "up",
    "v1.2",
    "2024",
    "_mine",
    "a-b_c.d",
    "feat/x",
    "feat/x/y",
    "größe",
    "名前",
    "review/ünï",
    "a" * 200,
]
BAD = [
    "/a",
    "a/",
    "a//b",
    "a/../b",
    "..",
    "a..b",
    "a b",
    "a\\b",
    "a:b",
    "a@b",
    "a~b",
    "a?",
    "a*",
    "a'b",
    "a\nb",
    "a\x00b",
    "x.lock",
    "feat/x.lock",
    ".hidden",
    "-dash",
    "feat/.x",
    "a" * 201,
]


@pytest.mark.parametrize("name", GOOD)
def test_valid_names(name):
    assert check_branch_name(name) == name


@pytest.mark.parametrize("name", BAD)
def test_invalid_names(name):
    with pytest.raises(InputError, match="cannot be a branch name") as caught:
        check_branch_name(name)
    assert name[:120] in caught.value.message
    assert caught.value.hint


def test_surrounding_blanks_are_removed():
    assert check_branch_name("  a\t\n") == "a"


@pytest.mark.parametrize("name", ["", "   "])
def test_an_empty_name_is_refused(name):
    with pytest.raises(InputError, match="must not be empty"):
        check_branch_name(name)


@pytest.mark.parametrize("name", ["main", " main "])
def test_main_cannot_be_created(repository, name):
    with pytest.raises(InputError, match="'main'"):
        create_branch(repository, name)


@pytest.mark.parametrize("name", ["__schema_apply_lock__", "__run__1", "__x"])
def test_names_of_the_engine_are_refused(name):
    with pytest.raises(InputError, match="belong to the engine") as caught:
        check_branch_name(name)
    assert name in caught.value.message


def test_names_are_case_sensitive_and_may_be_prefixes(repository):
    for name in ("review", "Review", "review/x", "review/x/y"):
        create_branch(repository, name)
    assert repository.branches() == ["main", "Review", "review", "review/x", "review/x/y"]
    add_people(repository, "a", branch="review/x")
    delete_branch(repository, "review")
    assert ids_of(repository.snapshot("review/x")) == ["a"]
    assert ids_of(repository.snapshot("review/x/y")) == []


# -- creating ------------------------------------------------------------------------------------------


def test_a_branch_of_main(repository):
    commit = add_people(repository, "a")
    head = create_branch(repository, "side", request=RefRequest("ada"))
    assert (head.branch, head.commit_id) == ("side", commit.id)
    assert (head.fork_branch, head.fork_commit_id, head.owner) == ("main", commit.id, "ada")
    assert repository.branches() == ["main", "side"]
    assert ids_of(repository.snapshot("side")) == ["a"]
    assert repository.state().get_head("side") == head


def test_a_branch_of_a_branch(repository):
    create_branch(repository, "one")
    commit = add_people(repository, "a", branch="one")
    create_branch(repository, "two", from_branch="one")
    add_people(repository, "b", branch="two")
    assert repository.state().get_head("two").fork_commit_id == commit.id
    assert [ids_of(repository.snapshot(name)) for name in ("main", "one", "two")] == [[], ["a"], ["a", "b"]]


@pytest.mark.parametrize("point", ["commit", "version", "snapshot id", "time"])
def test_a_branch_at_an_earlier_commit(repository, point):
    add_people(repository, "a")
    commit = add_people(repository, "b")
    add_people(repository, "c")
    at = {
        "commit": commit.id,
        "version": commit.manifest_version,
        "snapshot id": f"manifest:main:v{commit.manifest_version}",
        "time": commit.created_at,
    }[point]
    head = create_branch(repository, "past", at=at)
    assert (head.commit_id, head.fork_commit_id, head.fork_branch) == (commit.id, commit.id, "main")
    assert ids_of(repository.snapshot("past")) == ["a", "b"]
    add_people(repository, "x", branch="past")
    assert ids_of(repository.snapshot("past")) == ["a", "b", "x"]
    assert ids_of(repository.snapshot("main")) == ["a", "b", "c"]
    assert [one.id for one in repository.commits("past")][1:] == [one.id for one in repository.commits("main")][1:]


def test_a_branch_at_an_earlier_commit_of_another_branch(repository):
    create_branch(repository, "one")
    commit = add_people(repository, "a", branch="one")
    add_people(repository, "b", branch="one")
    create_branch(repository, "two", from_branch="one", at=commit.manifest_version)
    assert ids_of(repository.snapshot("two")) == ["a"]
    assert repository.state().get_head("two").fork_branch == "one"


def test_an_existing_name_is_refused(repository):
    create_branch(repository, "side")
    before = repository.state().version
    with pytest.raises(BranchExists, match="'side'"):
        create_branch(repository, " side ")
    assert repository.state().version == before


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"from_branch": "none"}, BranchNotFound),
        ({"at": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, CommitNotFound),
        ({"at": 0}, CommitNotFound),
        ({"at": datetime(2000, 1, 1, tzinfo=UTC)}, CommitNotFound),
        ({"at": "manifest:none:v1"}, BranchNotFound),
        ({"at": "manifest:main"}, InputError),
    ],
)
def test_a_missing_source_is_refused(repository, source, kind):
    with pytest.raises(kind):
        create_branch(repository, "side", **source)
    assert repository.branches() == ["main"]


def test_creating_writes_no_table_file_and_no_commit(repository, root):
    add_people(repository, "a")
    before, commits = table_files(root), repository.all_commits()
    create_branch(repository, "side")
    assert table_files(root) == before
    assert repository.all_commits() == commits
    delete_branch(repository, "side")
    assert table_files(root) == before
    assert repository.all_commits() == commits


def test_only_the_written_table_gets_a_version(repository, root):
    create_branch(repository, "side")
    before = {name for name in table_files(root) if name.startswith("edges/")}
    add_people(repository, "a", branch="side")
    assert {name for name in table_files(root) if name.startswith("edges/")} == before


# -- isolation -----------------------------------------------------------------------------------------


def test_branches_are_isolated(repository):
    put_people(repository, "a", "b", name="main")
    create_branch(repository, "one")
    create_branch(repository, "two")
    put_people(repository, "a", name="one", branch="one")
    put_people(repository, "b", "c", name="two", branch="two")
    put_people(repository, "d", name="main")
    assert names_of(repository.snapshot("main")) == {"a": "main", "b": "main", "d": "main"}
    assert names_of(repository.snapshot("one")) == {"a": "one", "b": "main"}
    assert names_of(repository.snapshot("two")) == {"a": "main", "b": "two", "c": "two"}


def test_table_versions_count_per_branch(repository):
    add_people(repository, "a")
    create_branch(repository, "side")
    for id_ in "bcd":
        add_people(repository, id_, branch="side")
    add_people(repository, "x")
    pins = {branch: repository.snapshot(branch).tables[PERSON].pin for branch in ("main", "side")}
    assert pins["side"].table_version == 5
    assert pins["main"].table_version == 3
    assert pins["main"].lance_version == 6, "both are versions of one table"


# -- deleting ------------------------------------------------------------------------------------------


def test_deleting_a_branch(repository):
    create_branch(repository, "side")
    commit = add_people(repository, "a", branch="side")
    delete_branch(repository, " side ")
    assert repository.branches() == ["main"]
    with pytest.raises(BranchNotFound, match="'side'"):
        repository.snapshot("side")
    with pytest.raises(BranchNotFound):
        add_people(repository, "b", branch="side")
    assert ids_of(repository.snapshot(at=commit.id)) == ["a"], "its commits are readable by id until a cleanup"


def test_main_cannot_be_deleted(repository):
    with pytest.raises(InputError, match="'main'"):
        delete_branch(repository, "main")


def test_deleting_a_missing_branch_suggests_a_name(repository):
    create_branch(repository, "feature")
    with pytest.raises(BranchNotFound, match="'featur'") as caught:
        delete_branch(repository, "featur")
    assert "feature" in caught.value.hint


def test_a_branch_outlives_the_one_it_came_from(repository):
    create_branch(repository, "one")
    add_people(repository, "a", branch="one")
    create_branch(repository, "two", from_branch="one")
    delete_branch(repository, "one")
    add_people(repository, "b", branch="two")
    assert ids_of(repository.snapshot("two")) == ["a", "b"]
    assert len(repository.commits("two")) == 3


def test_a_recreated_branch_does_not_see_old_rows(repository, root):
    first = create_branch(repository, "side")
    add_people(repository, "old", branch="side")
    stale = open_repository(root)
    assert ids_of(stale.snapshot("side")) == ["old"]
    delete_branch(repository, "side")
    second = create_branch(repository, "side")
    assert second.incarnation != first.incarnation
    assert ids_of(repository.snapshot("side")) == []
    assert ids_of(stale.snapshot("side")) == []
    add_people(stale, "new", branch="side")
    assert ids_of(repository.snapshot("side")) == ["new"]
    assert [commit.kind for commit in repository.commits("side")] == ["write", "init"]


# -- many ----------------------------------------------------------------------------------------------


def test_three_hundred_branches(repository, root):
    add_people(repository, "a")
    before = table_files(root)
    names = list(branch_names(300))
    for name in names:
        create_branch(repository, name)
    assert table_files(root) == before
    assert repository.branches() == ["main", *names]
    for name in names[::60]:
        add_people(repository, f"only-{name}", branch=name)
    again = open_repository(root)
    for place, name in enumerate(names):
        if place % 30 == 0:
            own = [f"only-{name}"] if place % 60 == 0 else []
            assert ids_of(again.snapshot(name)) == sorted(["a", *own])
    for name in names[1::2]:
        delete_branch(again, name)
    assert repository.branches() == ["main", *names[::2]]
