"""Transactions: atomic, on the intended branch, exactly once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from omnigraph.errors import (
    ExpectedVersionMismatch,
    HeadMoved,
    OmniGraphError,
    PreconditionFailed,
    TypeNotFound,
)
from omnigraph.storage.failpoints import NAMES, FailpointError, arm
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.lance.table_versions import FRAGMENTS_MAX
from omnigraph.versioning.upkeep.verify import verify
from omnigraph.versioning.write import write as write_module
from omnigraph.versioning.write.branches import create_branch, delete_branch
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
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
    write_elsewhere,
)

BOTH = {PERSON: TableWrite(append=people("a", "b")), KNOWS: TableWrite(append=knows(("a", "b")))}


@pytest.fixture
def root(tmp_path):
    return tmp_path / "g"


@pytest.fixture
def repository(root):
    return new_repository(root)


def begin(repository, **options):
    return Transaction(repository, WriteOptions(**options))


def with_person(repository, id_, **options):
    transaction = begin(repository, **options)
    transaction.change(PERSON, TableWrite(append=people(id_)))
    return transaction


def intents(root):
    return list((root / "__recovery").glob("*")) if (root / "__recovery").exists() else []


# -- all or nothing ------------------------------------------------------------------------------------


def test_several_tables_in_one_commit(repository, root):
    before = repository.commits()
    commit = change(repository, BOTH)
    assert commit.changed == (KNOWS, PERSON)
    snapshot = open_repository(root).snapshot()
    assert (ids_of(snapshot), ids_of(snapshot, KNOWS)) == (["a", "b"], ["a-b"])
    assert snapshot.commit_id == commit.id
    assert repository.commits() == [commit, *before]
    assert intents(root) == []


STEPS = [name for name in NAMES if name.startswith(("table.", "intent.", "publish."))]
BEFORE = [name for name in STEPS if name not in ("intent.delete", "publish.after_commit")]


@pytest.mark.parametrize("passes", [0, 1])
@pytest.mark.parametrize("place", BEFORE)
def test_a_write_that_fails_before_its_publish_is_invisible(repository, root, place, passes):
    add_people(repository, "old")
    if place == "table.detached":
        write_elsewhere(repository)
    before = repository.state().version
    left = [passes]

    def fail():
        if not left[0]:
            raise FailpointError("here")
        left[0] -= 1

    repeated = place.startswith("table.") or passes == 0
    try:
        with arm(place, fail):
            change(repository, BOTH)
    except FailpointError:
        assert repository.state().version == before
        assert ids_of(open_repository(root).snapshot()) == ["old"]
        assert ids_of(open_repository(root).snapshot(), KNOWS) == []
        add_people(repository, "new")
        assert ids_of(repository.snapshot()) == ["new", "old"]
    else:
        assert not repeated, "the place was never reached"
    assert intents(root) == [], "who knows that nothing happened takes the note away"
    assert verify(open_repository(root)) == []


def test_pins_of_unchanged_tables_stay(repository):
    change(repository, BOTH)
    before = repository.snapshot().tables[KNOWS]
    add_people(repository, "c")
    assert repository.snapshot().tables[KNOWS] == before


def test_every_kind_of_change_through_a_transaction(repository):
    change(repository, {PERSON: TableWrite(append=people("a", "b", "c"))})
    change(repository, {PERSON: TableWrite(upsert=people("a", "d", name="new"), delete=["b"])})
    assert names_of(repository.snapshot()) == {"a": "new", "c": "name of c", "d": "new"}
    change(repository, {PERSON: TableWrite(overwrite=people("x"))})
    assert names_of(repository.snapshot()) == {"x": "name of x"}
    change(repository, {PERSON: TableWrite(overwrite=people())})
    assert names_of(repository.snapshot()) == {}
    assert [table.pin.row_count for table in repository.snapshot().tables.values()] == [0, 0]
    assert verify(repository) == []


def test_table_versions_count_publishes_of_the_table(repository):
    for number in range(3):
        add_people(repository, str(number))
    change(repository, {KNOWS: TableWrite(append=knows(("0", "1")))})
    versions = {key: table.pin.table_version for key, table in repository.snapshot().tables.items()}
    assert versions == {PERSON: 4, KNOWS: 2}


def test_a_table_with_many_fragments_is_compacted_by_a_write(repository):
    for number in range(FRAGMENTS_MAX + 6):
        add_people(repository, f"p{number:03}")
    assert repository.snapshot().table(PERSON).fragment_count <= FRAGMENTS_MAX + 1
    assert ids_of(repository.snapshot()) == [f"p{number:03}" for number in range(FRAGMENTS_MAX + 6)]
    assert verify(repository) == []


def test_a_missing_table_is_refused(repository):
    with pytest.raises(TypeNotFound, match="'node:None'"):
        change(repository, {"node:None": TableWrite(append=people("a"))})


# -- no effect -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {PERSON: TableWrite()},
        {PERSON: TableWrite(append=people())},
        {PERSON: TableWrite(delete=["none"])},
        {PERSON: TableWrite(upsert=people()), KNOWS: TableWrite(delete=["none"])},
        {KNOWS: TableWrite(overwrite=knows())},
    ],
)
def test_a_write_without_effect_leaves_nothing(repository, root, changes):
    add_people(repository, "a")
    before = files_below(root)
    assert change(repository, changes, message="nothing") is None
    assert files_below(root) == before


def test_an_unchanged_table_is_not_part_of_the_commit(repository):
    before = repository.snapshot().tables[KNOWS]
    commit = change(repository, {PERSON: TableWrite(append=people("a")), KNOWS: TableWrite(delete=["none"])})
    assert commit.changed == (PERSON,)
    assert repository.snapshot().tables[KNOWS] == before


def test_a_commit_without_changes_can_be_requested(repository):
    commit = change(repository, {}, always_commit=True, message="marker")
    assert commit.changed == ()
    assert repository.commits()[0] == commit
    assert verify(repository) == []


# -- author and message --------------------------------------------------------------------------------


def test_a_commit_records_actor_message_and_metadata(repository, root):
    metadata = {"ticket": 7, "tags": ["ü", None], "deep": {"x": 1.5}}
    commit = add_people(repository, "a", actor="ada", message="first 'real' row\n☃", metadata=metadata, kind="load")
    again = open_repository(root).get_commit(commit.id)
    assert again == commit
    assert (again.actor, again.message, again.metadata, again.kind) == (
        "ada",
        "first 'real' row\n☃",
        metadata,
        "load",
    )


def test_a_merge_has_two_parents(repository):
    create_branch(repository, "side")
    theirs = add_people(repository, "a", branch="side")
    ours = add_people(repository, "b")
    commit = change(repository, {}, merged_parent=theirs.id)
    assert (commit.parent_id, commit.merged_parent_id) == (ours.id, theirs.id)
    assert {one.id for one in repository.commits()} >= {ours.id, theirs.id}
    assert verify(repository) == []


# -- a branch that moves -------------------------------------------------------------------------------


def test_a_moved_head_is_reported_and_nothing_is_written(repository):
    transaction = with_person(repository, "late")
    add_people(repository, "early")
    with pytest.raises(HeadMoved, match="'main'") as caught:
        transaction.commit()
    assert "nothing was written" in caught.value.message
    assert caught.value.hint
    assert ids_of(repository.snapshot()) == ["early"]


def test_a_write_starts_over_on_the_new_head(repository, root):
    other = open_repository(root)
    seen = []

    def prepare(transaction):
        seen.append(ids_of(transaction.snapshot))
        transaction.change(PERSON, TableWrite(append=people(f"after-{len(seen[-1])}")))
        if len(seen) <= 3:
            add_people(other, f"rival-{len(seen)}")

    commit = write(repository, prepare)
    assert len(seen) == 4
    assert seen[-1] == ["rival-1", "rival-2", "rival-3"]
    assert ids_of(repository.snapshot()) == ["after-3", "rival-1", "rival-2", "rival-3"]
    assert repository.commits()[0] == commit
    assert verify(repository) == []


def test_a_write_fails_after_a_bounded_number_of_lost_races(repository, root, monkeypatch):
    monkeypatch.setattr(write_module, "WRITE_TRIES", 3)
    monkeypatch.setattr(write_module, "pause", lambda _: None)
    other = open_repository(root)
    tried = []

    def prepare(transaction):
        tried.append(1)
        transaction.change(PERSON, TableWrite(append=people("late")))
        add_people(other, f"rival-{len(tried)}")

    with pytest.raises(HeadMoved):
        write(repository, prepare)
    assert len(tried) == 3
    assert ids_of(repository.snapshot()) == ["rival-1", "rival-2", "rival-3"]


def test_writers_of_different_branches_do_not_conflict(repository, root):
    create_branch(repository, "side")
    other = open_repository(root)
    transaction = with_person(repository, "mine", branch="side")
    add_people(other, "theirs")
    commit = transaction.commit()
    assert commit.manifest_version == repository.state().version
    assert ids_of(repository.snapshot("side")) == ["mine"]
    assert ids_of(repository.snapshot()) == ["theirs"]


def test_a_branch_deleted_during_a_write(repository):
    create_branch(repository, "side")
    transaction = with_person(repository, "late", branch="side")
    delete_branch(repository, "side")
    with pytest.raises(OmniGraphError, match="'side'"):
        transaction.commit()


def test_a_branch_recreated_during_a_write_is_another_branch(repository):
    create_branch(repository, "side")
    transaction = with_person(repository, "late", branch="side")
    delete_branch(repository, "side")
    create_branch(repository, "side")
    with pytest.raises(HeadMoved):
        transaction.commit()
    assert ids_of(repository.snapshot("side")) == []


# -- conditions ----------------------------------------------------------------------------------------


def test_if_commit_holds(repository):
    head = repository.snapshot().commit_id
    commit = add_people(repository, "a", if_commit=head)
    assert commit.parent_id == head


def test_if_commit_that_fails_at_the_start(repository, root):
    old = repository.snapshot().commit_id
    head = add_people(repository, "a")
    before = files_below(root)
    with pytest.raises(PreconditionFailed) as caught:
        add_people(repository, "b", if_commit=old)
    assert (caught.value.branch, caught.value.expected, caught.value.actual) == ("main", old, head.id)
    assert "nothing was written" in caught.value.message
    assert files_below(root) == before


def test_if_commit_that_fails_during_the_write_is_not_retried(repository, root):
    other = open_repository(root)
    tried = []

    def prepare(transaction):
        tried.append(1)
        transaction.change(PERSON, TableWrite(append=people("late")))
        add_people(other, "rival")

    head = repository.snapshot().commit_id
    with pytest.raises(PreconditionFailed) as caught:
        write(repository, prepare, WriteOptions(if_commit=head))
    assert tried == [1]
    assert caught.value.expected == head
    assert ids_of(repository.snapshot()) == ["rival"]


def test_expected_versions(repository):
    add_people(repository, "a", expected_versions={PERSON: 1, KNOWS: 1})
    with pytest.raises(ExpectedVersionMismatch) as caught:
        add_people(repository, "b", expected_versions={PERSON: 1})
    error = caught.value
    assert (error.table_key, error.expected, error.actual) == (PERSON, 1, 2)
    assert "nothing was written" in error.message
    assert ids_of(repository.snapshot()) == ["a"]


def test_an_expected_version_of_an_unknown_table_is_zero(repository):
    with pytest.raises(ExpectedVersionMismatch) as caught:
        add_people(repository, "a", expected_versions={"node:None": 3})
    assert caught.value.actual == 0
    add_people(repository, "a", expected_versions={"node:None": 0})


def test_an_expected_version_fails_after_another_write(repository, root):
    other = open_repository(root)

    def prepare(transaction):
        transaction.change(KNOWS, TableWrite(append=knows(("a", "b"))))
        add_people(other, "a")

    with pytest.raises(ExpectedVersionMismatch):
        write(repository, prepare, WriteOptions(expected_versions={PERSON: 1}))
    assert ids_of(repository.snapshot(), KNOWS) == []


# -- contention ----------------------------------------------------------------------------------------


def test_a_writer_that_lost_a_race_queues_for_a_while(root, monkeypatch):
    clock = Ticks()
    repository = new_repository(root, clock=clock)
    create_branch(repository, "quiet")
    queued = []
    queue = repository.manifest.locks.retry_lock

    def counted(branch):
        queued.append(1)
        return queue(branch)

    monkeypatch.setattr(repository.manifest.locks, "retry_lock", counted)
    other = open_repository(root)
    losing: list[bool] = []

    def lose():
        if losing:
            losing.clear()
            add_people(other, "faster")

    add_people(repository, "a")
    assert len(queued) == 0, "nobody is in the way"
    with arm("intent.written", lose):
        losing[:] = [True]
        add_people(repository, "b")
    assert len(queued) == 1, "the second try"
    add_people(repository, "c")
    assert len(queued) == 2, "more may be to come"
    add_people(repository, "d", branch="quiet")
    assert len(queued) == 2, "on this branch"
    clock.sleep(timedelta(seconds=11))
    add_people(repository, "e")
    assert len(queued) == 2
    assert ids_of(repository.snapshot()) == ["a", "b", "c", "e", "faster"]
