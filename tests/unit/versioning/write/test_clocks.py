"""Wrong clocks, slow writers and aggressive cleanups: no acknowledged commit loses a file."""

from __future__ import annotations

import multiprocessing
import time
from contextlib import suppress
from datetime import timedelta

import pytest

from omnigraph.errors import Damaged, OmniGraphError, StorageError
from omnigraph.storage.failpoints import arm
from omnigraph.versioning.model.ids import system_clock
from omnigraph.versioning.model.manifest_objects import TableSpec
from omnigraph.versioning.upkeep import maintenance
from omnigraph.versioning.upkeep.maintenance import cleanup, optimize
from omnigraph.versioning.upkeep.verify import verify
from omnigraph.versioning.write.branches import create_branch
from omnigraph.versioning.write.repository import Repository
from omnigraph.versioning.write.tags import create_tag
from omnigraph.versioning.write.write import write
from support.graphs import (
    PERSON,
    PERSON_SCHEMA,
    Ticks,
    add_people,
    ids_of,
    new_repository,
    open_repository,
    put_people,
)

EAGER = timedelta(seconds=-3600)
"""A cleanup with this grace treats every version as old."""


@pytest.fixture
def root(tmp_path):
    return tmp_path / "g"


def shifted(root, **span):
    """Open the graph as a host with another clock."""
    clock = Ticks()
    clock.sleep(timedelta(**span))
    return open_repository(root, clock=clock)


def once(action):
    done = []

    def run():
        if not done:
            done.append(1)
            action()

    return run


def clean_eagerly(root, **options):
    """Remove everything that is not pinned, after another write made the newest version of every table."""
    other = open_repository(root)
    add_people(other, "newest", branch="other")
    cleanup(other, keep=1, confirm=True, **{"grace": EAGER, **options})


@pytest.fixture
def repository(root):
    repository = new_repository(root)
    add_people(repository, "a")
    create_branch(repository, "other")
    return repository


# -- writes in progress --------------------------------------------------------------------------------


@pytest.mark.parametrize("hours", [-24 * 365, -1, 1, 24 * 365])
def test_the_host_clock_of_a_cleanup_is_irrelevant(repository, root, hours):
    def clean():
        add_people(open_repository(root), "newest", branch="other")
        cleanup(shifted(root, hours=hours), keep=1, confirm=True)

    with arm("table.promoted", once(clean)):
        commit = add_people(repository, "b")
    assert repository.snapshot().commit_id == commit.id
    assert ids_of(open_repository(root).snapshot()) == ["a", "b"]
    assert verify(open_repository(root)) == []


@pytest.mark.parametrize("place", ["table.staged", "table.detached", "table.promoted", "publish.before_commit"])
def test_a_write_whose_version_was_removed_starts_over(repository, root, place):
    with arm(place, once(lambda: clean_eagerly(root))):
        commit = add_people(repository, "b")
    assert repository.snapshot().commit_id == commit.id
    assert ids_of(open_repository(root).snapshot()) == ["a", "b"]
    assert verify(open_repository(root)) == []


@pytest.mark.parametrize("place", ["optimize.compacted", "optimize.before_publish", "publish.before_commit"])
def test_an_optimize_whose_versions_were_removed_starts_over(repository, root, place):
    for name in "bcd":
        add_people(repository, name)
    # One table only: the cleanup writes to it, and a compaction at the same time would leave the table as it is.
    with arm(place, once(lambda: clean_eagerly(root))):
        optimize(repository, tables=[PERSON])
    assert ids_of(open_repository(root).snapshot()) == ["a", "b", "c", "d"]
    assert open_repository(root).snapshot().table(PERSON).fragment_count == 1
    assert verify(open_repository(root)) == []


def test_a_new_table_whose_folder_was_removed_is_created_again(repository, root):
    spec = TableSpec("node", "Place", 3, 3, PERSON_SCHEMA)
    with arm("publish.before_commit", once(lambda: clean_eagerly(root))):
        write(repository, lambda transaction: transaction.create_table(spec))
    assert ids_of(open_repository(root).snapshot(), "node:Place") == []
    assert verify(open_repository(root)) == []


def test_a_publish_while_versions_are_fenced_starts_over(repository, root):
    """The cleanup has published its fence and has not removed anything yet."""
    commits = []

    def clean():
        other = open_repository(root)
        add_people(other, "newest", branch="other")
        with pytest.raises(OmniGraphError, match="failpoint"), arm("cleanup.fenced"):
            cleanup(other, keep=1, confirm=True, grace=EAGER)
        assert other.state().reclaims()

    with arm("table.promoted", once(clean)):
        commits.append(add_people(repository, "b"))
    assert ids_of(open_repository(root).snapshot()) == ["a", "b"]
    cleanup(repository, keep=1, confirm=True, grace=EAGER)
    assert repository.state().reclaims() == []
    assert ids_of(open_repository(root).snapshot()) == ["a", "b"]
    assert verify(open_repository(root)) == []


def test_a_commit_that_is_being_removed_cannot_be_pinned(repository, root):
    old = put_people(repository, "a", name="old")
    for name in "xyz":
        put_people(repository, "a", name=name)
    at = repository.snapshot(at=old.id)
    refused = []

    def pin():
        other = open_repository(root)
        for attempt in (
            lambda: create_branch(other, "late", at=old.id),
            lambda: create_tag(other, "late-tag", lambda: at),
        ):
            with pytest.raises(Damaged) as caught:
                attempt()
            refused.append(caught.value.code)

    with arm("cleanup.fenced", pin):
        cleanup(repository, keep=1, confirm=True, grace=EAGER)
    assert refused == ["version_reclaimed"] * 2
    assert verify(repository) == []


def test_a_branch_created_before_the_fence_keeps_its_versions(repository, root):
    old = put_people(repository, "a", name="old")
    for name in "xyz":
        put_people(repository, "a", name=name)
    with arm("cleanup.planned", lambda: create_branch(open_repository(root), "late", at=old.id)):
        cleanup(repository, keep=1, confirm=True, grace=EAGER)
    assert ids_of(open_repository(root).snapshot("late")) == ["a"]
    assert verify(repository) == []


def test_the_next_cleanup_finishes_a_dead_one_under_any_policy(repository):
    for name in "xyz":
        put_people(repository, "a", name=name)
    for place in ("cleanup.fenced", "cleanup.table"):
        with pytest.raises(OmniGraphError, match="failpoint"), arm(place):
            cleanup(repository, keep=1, confirm=True, grace=EAGER)
        assert len(repository.state().reclaims()) == 1
    cleanup(repository, keep=99, confirm=True, grace=EAGER)
    assert repository.state().reclaims() == []
    assert verify(repository) == []


def test_a_clock_far_ahead_of_the_store_stops_a_cleanup(repository, monkeypatch):
    monkeypatch.setattr(maintenance, "system_clock", lambda: system_clock() + 8 * 86_400_000_000)
    with pytest.raises(StorageError, match="ahead of the store's") as caught:
        cleanup(repository, keep=1, confirm=True)
    assert caught.value.code == "clock_skew"
    assert cleanup(repository, keep=1)


# -- ages ----------------------------------------------------------------------------------------------


def readable(repository, commits):
    repository.tables.forget(repository.snapshot().tables[PERSON].folder)
    found = []
    for place, commit in enumerate(commits):
        try:
            ids_of(repository.snapshot(at=commit.id))
            found.append(place)
        except Damaged as error:
            if error.code != "version_reclaimed":
                raise
    return found


@pytest.mark.parametrize("last_h", [-24 * 365, -3, 3, 24 * 365])
def test_a_later_commit_with_another_time_does_not_age_earlier_commits(root, last_h):
    repository = new_repository(root)
    commits = [put_people(repository, "a", name=name) for name in "xyz"]
    commits.append(put_people(shifted(root, hours=last_h), "a", name="last"))
    cleanup(repository, older_than=timedelta(hours=2), confirm=True, grace=EAGER)
    assert readable(repository, commits) == [0, 1, 2, 3]


def test_a_writer_with_a_slow_clock_does_not_lose_its_commits(root):
    new_repository(root)
    slow = shifted(root, hours=-5)
    commits = [put_people(slow, "a", name=name) for name in "wxyz"]
    cleanup(open_repository(root), older_than=timedelta(hours=2), confirm=True, grace=EAGER)
    assert readable(slow, commits) == [0, 1, 2, 3]


# -- processes -----------------------------------------------------------------------------------------


def _write_until(root, branch, end, answers):
    """Write until a time and print what was acknowledged. A cleanup that treats all files as old may fail a write."""
    repository = Repository.open(root, environ={})
    acknowledged = []
    number = 0
    while time.time() < end:
        number += 1
        with suppress(StorageError, Damaged):
            add_people(repository, f"{branch}-{number}", branch=branch)
            acknowledged.append(f"{branch}-{number}")
    answers.put((branch, acknowledged))


def _clean_until(root, shift_s, end):
    repository = Repository.open(root, clock=lambda: system_clock() + shift_s * 1_000_000, environ={})
    while time.time() < end:
        cleanup(repository, keep=1, confirm=True, grace=EAGER)


@pytest.mark.long
def test_writers_and_aggressive_cleanups_in_other_processes(root):
    """Four writers on four branches, and two cleanups with other clocks that treat every version as old."""
    repository = new_repository(root)
    branches = [f"b{number}" for number in range(4)]
    for branch in branches:
        create_branch(repository, branch)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    end = time.time() + 30
    workers = [context.Process(target=_write_until, args=(root, branch, end, answers)) for branch in branches]
    workers += [context.Process(target=_clean_until, args=(root, shift, end)) for shift in (3600, -3600)]
    for worker in workers:
        worker.start()
    written = dict(answers.get(timeout=120) for _ in branches)
    for worker in workers:
        worker.join(60)
        assert worker.exitcode == 0
    again = open_repository(root)
    for branch in branches:
        assert written[branch]
        assert set(written[branch]) <= set(ids_of(again.snapshot(branch)))
    assert verify(again) == []
