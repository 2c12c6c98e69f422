"""Compaction, indexes and cleanup: rows never change, and versions in use stay."""

from __future__ import annotations

import os
import shutil
from datetime import UTC, datetime, timedelta

import pytest

import omnigraph as og
from omnigraph.errors import Damaged, InputError
from omnigraph.storage.failpoints import arm
from omnigraph.storage.lance.indexes import IndexSpec, index_names
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.upkeep.maintenance import cleanup, ensure_indices, optimize
from omnigraph.versioning.upkeep.verify import verify
from omnigraph.versioning.write.branches import create_branch, delete_branch
from omnigraph.versioning.write.transaction import WriteOptions
from omnigraph.versioning.write.write import write
from support.graphs import (
    KNOWS,
    PERSON,
    Ticks,
    add_people,
    change,
    files_below,
    ids_of,
    knows,
    names_of,
    new_repository,
    open_repository,
    people,
    put_people,
    write_elsewhere,
)

WANTED = {
    PERSON: [IndexSpec("id"), IndexSpec("name")],
    KNOWS: [IndexSpec("id"), IndexSpec("src"), IndexSpec("dst")],
}
NO_GRACE = timedelta(seconds=-3600)
"""A version counts as old an hour before it was written, so that no test has to wait."""


@pytest.fixture
def root(tmp_path):
    return tmp_path / "g"


@pytest.fixture
def repository(root):
    return new_repository(root)


def in_fragments(repository, count=5, **options):
    return [add_people(repository, f"p{number}", **options) for number in range(count)]


def fragments(repository, branch="main", key=PERSON):
    return repository.snapshot(branch).table(key).fragment_count


def by_key(stats):
    return {one.table_key: one for one in stats}


# -- optimize ------------------------------------------------------------------------------------------


def test_optimize_is_one_commit_with_the_same_rows(repository, root):
    in_fragments(repository)
    for number in range(3):
        change(repository, {KNOWS: TableWrite(append=knows((f"p{number}", "p4")))})
    before, commits = names_of(repository.snapshot()), repository.commits()
    held = repository.snapshot()
    stats = by_key(optimize(repository))
    assert (stats[PERSON].fragments_before, stats[PERSON].fragments_after, stats[PERSON].committed) == (5, 1, True)
    assert (stats[KNOWS].fragments_before, stats[KNOWS].fragments_after) == (3, 1)
    commit, *older = repository.commits()
    assert older == commits
    assert (commit.kind, commit.changed) == ("optimize", (KNOWS, PERSON))
    for snapshot in (repository.snapshot(), held, open_repository(root).snapshot()):
        assert names_of(snapshot) == before
    assert verify(repository) == []


def test_optimize_keeps_row_identity(repository):
    in_fragments(repository)
    put_people(repository, "p1", name="new")
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]

    def rows():
        return sorted(repository.snapshot().table(PERSON).read(columns).to_pylist(), key=lambda row: row["id"])

    before = rows()
    optimize(repository)
    assert rows() == before


@pytest.mark.parametrize("rows", [0, 1])
def test_optimize_with_nothing_to_do_makes_no_commit(repository, root, rows):
    in_fragments(repository, rows)
    before = files_below(root)
    stats = optimize(repository)
    assert not any(one.committed for one in stats)
    assert files_below(root) == before


def test_a_second_optimize_does_nothing(repository):
    in_fragments(repository)
    optimize(repository, wanted=WANTED)
    commits = repository.commits()
    assert not any(one.committed for one in optimize(repository, wanted=WANTED))
    assert repository.commits() == commits


def test_optimize_builds_missing_indexes_and_covers_new_rows(repository):
    in_fragments(repository)
    stats = by_key(optimize(repository, wanted=WANTED))
    assert index_names(repository.snapshot().table(PERSON)) == {"id_btree", "name_btree"}
    assert [one.reason for one in stats[KNOWS].pending] == ["the table is empty"] * 3
    add_people(repository, "later")
    optimize(repository, wanted=WANTED)
    (covered,) = {index.num_rows_indexed for index in repository.snapshot().table(PERSON).dataset.describe_indices()}
    assert covered == 6


def test_optimize_of_a_branch_does_not_change_main(repository):
    in_fragments(repository)
    create_branch(repository, "side")
    add_people(repository, "own", branch="side")
    before = repository.snapshot().tables
    optimize(repository, WriteOptions("side"))
    assert fragments(repository, "side") == 1
    assert repository.snapshot().tables == before
    assert fragments(repository) == 5
    assert ids_of(repository.snapshot("side")) == ["own", *(f"p{number}" for number in range(5))]


def test_optimize_plans_again_when_the_branch_moves(repository, root):
    in_fragments(repository)
    other = open_repository(root)
    moved = []

    def move():
        if len(moved) < 2:
            moved.append(add_people(other, f"rival{len(moved)}"))

    with arm("optimize.before_publish", move):
        optimize(repository)
    assert len(moved) == 2
    assert fragments(repository) == 1
    assert ids_of(repository.snapshot()) == [*(f"p{n}" for n in range(5)), "rival0", "rival1"]
    assert [commit.kind for commit in repository.commits()][:4] == ["optimize", "write", "write", "write"]
    assert verify(repository) == []


def test_a_writer_overtaken_by_optimize_starts_over(repository, root):
    in_fragments(repository)
    other = open_repository(root)
    tried = []

    def prepare(transaction):
        tried.append(1)
        if len(tried) == 1:
            optimize(other)
        transaction.change(PERSON, TableWrite(upsert=people("p1", name="new"), delete=["p0"]))

    write(repository, prepare)
    assert len(tried) == 2
    assert names_of(repository.snapshot()) == {"p1": "new", **{f"p{n}": f"name of p{n}" for n in (2, 3, 4)}}
    assert verify(repository) == []


def test_an_optimize_that_fails_changes_nothing(repository, root):
    in_fragments(repository)
    for place in ("optimize.compacted", "optimize.before_publish", "publish.before_commit"):
        version = repository.state().version
        with pytest.raises(Exception, match="failpoint"), arm(place):
            optimize(repository)
        assert repository.state().version == version
        assert ids_of(open_repository(root).snapshot()) == [f"p{number}" for number in range(5)]
    optimize(repository)
    assert fragments(repository) == 1
    assert verify(open_repository(root)) == []


def test_the_json_form(repository):
    in_fragments(repository, 2)
    (edges, nodes) = optimize(repository, wanted=WANTED)
    assert nodes.to_json() == {
        "table_key": PERSON,
        "fragments_removed": 2,
        "fragments_added": 1,
        "committed": True,
        "pending_indexes": [],
    }
    assert edges.to_json()["pending_indexes"][0] == {"property": "id", "reason": "the table is empty"}


# -- ensure_indices ------------------------------------------------------------------------------------


def test_ensure_indices_is_one_commit_and_does_nothing_again(repository):
    in_fragments(repository, 2)
    change(repository, {KNOWS: TableWrite(append=knows(("p0", "p1")))})
    commits = repository.commits()
    ensure_indices(repository, WriteOptions(), WANTED)
    assert [commit.kind for commit in repository.commits()] == ["ensure_indices", *(one.kind for one in commits)]
    assert index_names(repository.snapshot().table(KNOWS)) == {"id_btree", "src_btree", "dst_btree"}
    assert fragments(repository) == 2, "it does not compact"
    ensure_indices(repository, WriteOptions(), WANTED)
    assert len(repository.commits()) == len(commits) + 1
    assert verify(repository) == []


def test_ensure_indices_on_empty_tables_is_pending(repository, root):
    before = files_below(root)
    stats = ensure_indices(repository, WriteOptions(), WANTED)
    assert {len(one.pending) for one in stats} == {2, 3}
    assert files_below(root) == before


# -- cleanup: the policy -------------------------------------------------------------------------------


def readable(repository, commits):
    """Return those of the commits that can still be read."""
    repository.tables.forget(repository.snapshot().tables[PERSON].folder)
    found = []
    for place, commit in enumerate(commits):
        try:
            ids_of(repository.snapshot(at=commit.id))
        except Damaged as error:
            if error.code != "version_reclaimed":
                raise
        else:
            found.append(place)
    return found


def test_a_cleanup_requires_a_policy(repository):
    with pytest.raises(InputError, match="policy") as caught:
        cleanup(repository, confirm=True)
    assert "keep" in caught.value.hint
    assert "older_than" in caught.value.hint
    with pytest.raises(InputError, match="negative"):
        cleanup(repository, keep=-1)
    with pytest.raises(InputError, match="older_than is a timedelta, not int"):
        cleanup(repository, older_than=5)


@pytest.mark.parametrize(
    ("keep", "older_than_h", "left"),
    [
        (1, None, [5]),
        (0, None, [5]),
        (3, None, [3, 4, 5]),
        (99, None, [0, 1, 2, 3, 4, 5]),
        (None, 0, [5]),
        (None, 2.5, [3, 4, 5]),
        (None, 99, [0, 1, 2, 3, 4, 5]),
        (1, 2.5, [3, 4, 5]),
        (4, 2.5, [2, 3, 4, 5]),
        (4, 0, [2, 3, 4, 5]),
    ],
)
def test_the_policy_selects_the_retained_commits(root, keep, older_than_h, left):
    """Six commits an hour apart, the newest just made: a version is removed only if it is beyond both limits."""
    clock = Ticks()
    clock.sleep(timedelta(hours=-6))
    repository = new_repository(root, clock=clock)
    commits = []
    for number in range(6):
        clock.sleep(timedelta(hours=1))
        commits.append(put_people(repository, "a", name=str(number)))
        date_new_files(root, clock)
    older_than = timedelta(hours=older_than_h) if older_than_h is not None else None
    cleanup(repository, keep=keep, older_than=older_than, confirm=True, grace=NO_GRACE)
    assert readable(repository, commits) == left
    assert len(repository.commits()) == 7, "commits stay listed when their versions are gone"
    assert names_of(repository.snapshot()) == {"a": "5"}
    put_people(repository, "a", name="next")
    assert verify(repository) == []


def test_a_preview_removes_nothing_and_counts_versions(repository, root):
    in_fragments(repository)
    before = files_below(root)
    preview = by_key(cleanup(repository, keep=1, grace=NO_GRACE))
    assert files_below(root) == before
    done = by_key(cleanup(repository, keep=1, confirm=True, grace=NO_GRACE))
    assert preview[PERSON].old_versions_removed == done[PERSON].old_versions_removed == 5
    assert preview[PERSON].bytes_removed == 0
    assert done[PERSON].bytes_removed > 0
    assert done[KNOWS].old_versions_removed == 0
    assert done[PERSON].to_json() == {
        "table_key": PERSON,
        "old_versions_removed": 5,
        "bytes_removed": done[PERSON].bytes_removed,
        "error": None,
    }


def test_versions_within_the_grace_stay(repository):
    commits = in_fragments(repository)
    stats = by_key(cleanup(repository, keep=1, confirm=True))
    assert stats[PERSON].old_versions_removed == 0
    assert readable(repository, commits) == [0, 1, 2, 3, 4]


def test_a_cleanup_without_grace_ignores_ages(repository, root):
    """A store with a resolution of seconds can report versions that are as old as its current time."""
    commits = in_fragments(repository)
    soon = (datetime.now(UTC) + timedelta(minutes=1)).timestamp()
    for path in root.rglob("*"):
        os.utime(path, (soon, soon))
    preview = by_key(cleanup(repository, keep=1, grace=timedelta(0)))
    done = by_key(cleanup(repository, keep=1, confirm=True, grace=timedelta(0)))
    assert done[PERSON].old_versions_removed == preview[PERSON].old_versions_removed == 5
    assert readable(repository, commits) == [4]
    assert verify(repository) == []


def test_a_cleanup_frees_space(repository, root):
    in_fragments(repository, 20)
    optimize(repository)
    before = sum(files_below(root / "nodes").values())
    cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
    assert sum(files_below(root / "nodes").values()) < before / 2
    assert len(ids_of(repository.snapshot())) == 20
    assert verify(repository) == []


def test_a_second_cleanup_removes_nothing(repository, root):
    in_fragments(repository)
    cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
    before = files_below(root)
    assert sum(one.old_versions_removed for one in cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)) == 0
    assert files_below(root) == before


# -- cleanup: protected versions -----------------------------------------------------------------------


def test_merge_bases_of_branches_stay(repository):
    """After a merge the base is no longer the fork point but a commit in the middle of the branch."""
    fork = add_people(repository, "a")
    create_branch(repository, "side")
    lost = put_people(repository, "a", name="lost", branch="side")
    base = put_people(repository, "a", name="merged", branch="side")
    change(repository, {PERSON: TableWrite(upsert=people("a", name="merged"))}, merged_parent=base.id)
    later = [
        put_people(repository, "a", name=f"{branch} {number}", branch=branch)
        for number in range(3)
        for branch in ("main", "side")
    ]
    cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
    assert readable(repository, [fork, lost, base, *later]) == [0, 2, 7, 8]
    delete_branch(repository, "side")
    cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
    assert readable(repository, [fork, lost, base, *later]) == [7, 8], "the last version of a table always stays"
    assert verify(repository) == []


def test_heads_of_all_branches_stay(repository):
    commits = in_fragments(repository)
    create_branch(repository, "old", at=commits[1].id)
    create_branch(repository, "side", at=commits[2].id)
    own = add_people(repository, "own", branch="side")
    cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
    assert readable(repository, [*commits, own]) == [1, 2, 4, 5], "the heads, and where a branch came from"
    assert ids_of(repository.snapshot("old")) == ["p0", "p1"]
    assert ids_of(repository.snapshot("side")) == ["own", "p0", "p1", "p2"]
    assert verify(repository) == []


def test_keep_counts_per_branch(repository):
    base = in_fragments(repository, 2)
    create_branch(repository, "side")
    own = [put_people(repository, "own", name=str(number), branch="side") for number in range(4)]
    cleanup(repository, keep=2, confirm=True, grace=NO_GRACE)
    assert readable(repository, own) == [2, 3]
    assert readable(repository, base) == [0, 1]


def test_commits_of_a_deleted_branch_are_removed(repository):
    create_branch(repository, "side")
    own = in_fragments(repository, 3, branch="side")
    add_people(repository, "main")
    delete_branch(repository, "side")
    assert readable(repository, own) == [0, 1, 2]
    cleanup(repository, keep=99, confirm=True, grace=NO_GRACE)
    assert readable(repository, own) == []
    assert ids_of(repository.snapshot()) == ["main"]
    assert verify(repository) == []


def test_recent_heads_stay_within_the_grace(root):
    clock = Ticks()
    clock.sleep(timedelta(hours=-5))
    repository = new_repository(root, clock=clock)
    commits = in_fragments(repository, 3)
    make_old(root)
    clock.sleep(timedelta(hours=5))
    commits.append(add_people(repository, "now"))
    cleanup(repository, keep=1, confirm=True, grace=timedelta(minutes=15))
    assert readable(repository, commits) == [2, 3], "somebody may still read the one before"


def date_new_files(root, clock):
    """Files of the last minutes have the time of the graph's clock."""
    recently = (datetime.now(UTC) - timedelta(minutes=10)).timestamp()
    for path in root.rglob("*"):
        if path.stat().st_mtime > recently:
            os.utime(path, (clock.at().timestamp(), clock.at().timestamp()))


def make_old(root):
    """All files are a day old."""
    then = (datetime.now(UTC) - timedelta(days=1)).timestamp()
    for path in root.rglob("*"):
        os.utime(path, (then, then))


def test_a_concurrent_write_survives_a_cleanup(repository, root):
    in_fragments(repository, 3)
    other = open_repository(root)
    done = []

    def clean():
        if not done:
            done.append(cleanup(other, keep=1, confirm=True))

    for place in ("table.staged", "table.numbered", "table.detached", "table.promoted", "publish.before_commit"):
        done.clear()
        if place == "table.detached":
            write_elsewhere(repository)
        with arm(place, clean):
            add_people(repository, place)
        assert done
    assert set(ids_of(repository.snapshot())) >= {"table.staged", "publish.before_commit"}
    assert verify(repository) == []


def test_a_commit_made_between_planning_and_removal_stays(repository, root):
    in_fragments(repository, 3)
    other = open_repository(root)
    made = []
    with arm("cleanup.planned", lambda: made.append(add_people(other, "between"))):
        cleanup(repository, keep=1, confirm=True)
    assert readable(repository, made) == [0]
    assert verify(repository) == []


# -- cleanup: leftovers --------------------------------------------------------------------------------


def test_unknown_folders_are_removed_and_known_ones_stay(repository, root):
    in_fragments(repository, 1)
    unknown = root / "nodes" / "0123456789abcdef-0000000000000001"
    repository.tables.create(str(unknown.relative_to(root)), repository.snapshot().table(PERSON).schema)
    mine = root / "notes"
    mine.mkdir()
    cleanup(repository, keep=1, confirm=False, grace=NO_GRACE)
    assert unknown.exists(), "a preview removes nothing"
    cleanup(repository, keep=1, confirm=True)
    assert unknown.exists(), "it may belong to a change on its way"
    cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
    assert not unknown.exists()
    assert mine.exists()
    assert verify(repository) == []


def test_the_versions_of_a_dropped_table_are_removed(repository):
    change(repository, {KNOWS: TableWrite(append=knows(("a", "b")))})
    old = change(repository, {KNOWS: TableWrite(append=knows(("b", "c")))})
    write(repository, lambda transaction: transaction.drop_table(KNOWS))
    put_people(repository, "a")
    assert ids_of(repository.snapshot(at=old.id), KNOWS) == ["a-b", "b-c"]
    stats = by_key(cleanup(repository, keep=1, confirm=True, grace=NO_GRACE))
    assert stats[KNOWS].old_versions_removed == 2
    assert verify(repository) == []


def test_a_table_that_cannot_be_listed_is_reported_and_the_others_are_cleaned(repository, root):
    in_fragments(repository, 3)
    shutil.rmtree(root / "edges")
    repository.tables.forget(repository.snapshot().tables[KNOWS].folder)
    stats = by_key(cleanup(repository, keep=1, confirm=True, grace=NO_GRACE))
    assert stats[KNOWS].error
    assert stats[PERSON].error is None
    assert stats[PERSON].old_versions_removed == 3
    assert ids_of(repository.snapshot()) == ["p0", "p1", "p2"]


def test_a_cleanup_that_fails_can_be_repeated(repository, root):
    in_fragments(repository)
    for place in ("cleanup.planned", "cleanup.table"):
        with pytest.raises(Exception, match="failpoint"), arm(place):
            cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
        assert verify(open_repository(root)) == []
    cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
    assert ids_of(open_repository(root).snapshot()) == [f"p{number}" for number in range(5)]


def test_reading_a_reclaimed_commit_is_a_typed_error(repository):
    first, *_ = in_fragments(repository)
    cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
    snapshot = repository.snapshot(at=first.id)
    with pytest.raises(Damaged) as caught:
        snapshot.table(PERSON)
    assert caught.value.code == "version_reclaimed"
    assert "newer commit" in caught.value.hint
    assert repository.get_commit(first.id) == first


def test_a_write_that_outlives_the_grace_starts_over(tmp_path):
    """A version that waits too long for its publish may be removed; it is never pinned afterwards."""
    clock = Ticks()
    repository = new_repository(tmp_path / "g", clock=clock)
    add_people(repository, "a")
    create_branch(repository, "other")
    done: list[str] = []

    def collect() -> None:
        if not done:
            done.append("once")
            clock.sleep(timedelta(hours=1))
            other = open_repository(tmp_path / "g", clock=clock)
            add_people(other, "z", branch="other")  # the unpublished version is no longer the newest
            cleanup(other, keep=99, confirm=True, grace=NO_GRACE)

    with arm("table.promoted", collect):
        add_people(repository, "b")
    assert ids_of(repository.snapshot()) == ["a", "b"]
    assert verify(repository) == []


def test_a_branch_at_a_reclaimed_commit_is_refused(tmp_path):
    repository = new_repository(tmp_path / "g")
    old = add_people(repository, "a")
    for name in "bcd":
        add_people(repository, name)
    cleanup(repository, keep=1, confirm=True, grace=NO_GRACE)
    with pytest.raises(Damaged, match="was reclaimed or lost"):
        create_branch(repository, "late", at=old.id)
    assert repository.branches() == ["main"]


def test_an_optimize_whose_version_was_removed_starts_over(tmp_path):
    """The branch moves, and a cleanup removes the version that an optimize is building indexes for."""
    graph = og.init(tmp_path / "g", "node Item { name: String @key }", sync=False, environ={})
    for number in range(6):
        graph.load([{"type": "Item", "data": {"name": f"n{number}"}}], mode="append")
    done: list[str] = []

    def collect() -> None:
        if not done:
            done.append("once")
            other = og.open(tmp_path / "g", sync=False, environ={})
            other.mutate('insert Item { name: "late" }')
            cleanup(other._repository, keep=1, confirm=True, grace=NO_GRACE)

    with arm("optimize.compacted", collect):
        graph.optimize()
    assert done
    assert graph.query("match { $i: Item } return { count($i) as n }").to_pylist() == [{"n": 7}]
    assert graph.verify() == []
