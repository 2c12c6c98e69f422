"""Transactions: atomic, on the intended branch, exactly once."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from omnigraph.errors import (
    Conflict,
    ExpectedVersionMismatch,
    HeadMoved,
    InputError,
    KeyReused,
    OmniGraphError,
    OutcomeUnknown,
    PreconditionFailed,
    StorageError,
    TypeNotFound,
)
from omnigraph.storage.failpoints import NAMES, FailpointError, arm
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.lance.table_versions import FRAGMENTS_MAX
from omnigraph.versioning.model.manifest_objects import SchemaRecord, TableSpec
from omnigraph.versioning.model.manifest_rows import abort_to_row, idempotency_to_row, unscoped_idempotency_object_id
from omnigraph.versioning.model.state import Publication
from omnigraph.versioning.upkeep.verify import verify
from omnigraph.versioning.write import transaction as transaction_module
from omnigraph.versioning.write.leases import LEASE_S
from omnigraph.versioning.write.transaction import Transaction, WriteOptions, write
from support.graphs import (
    KNOWS,
    PERSON,
    PERSON_SCHEMA,
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
    repository.create_branch("side")
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
    monkeypatch.setattr(transaction_module, "WRITE_TRIES", 3)
    monkeypatch.setattr(transaction_module, "pause", lambda _: None)
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
    repository.create_branch("side")
    other = open_repository(root)
    transaction = with_person(repository, "mine", branch="side")
    add_people(other, "theirs")
    commit = transaction.commit()
    assert commit.manifest_version == repository.state().version
    assert ids_of(repository.snapshot("side")) == ["mine"]
    assert ids_of(repository.snapshot()) == ["theirs"]


def test_a_branch_deleted_during_a_write(repository):
    repository.create_branch("side")
    transaction = with_person(repository, "late", branch="side")
    repository.delete_branch("side")
    with pytest.raises(OmniGraphError, match="'side'"):
        transaction.commit()


def test_a_branch_recreated_during_a_write_is_another_branch(repository):
    repository.create_branch("side")
    transaction = with_person(repository, "late", branch="side")
    repository.delete_branch("side")
    repository.create_branch("side")
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


# -- idempotency ---------------------------------------------------------------------------------------


def test_a_repeated_request_returns_its_first_commit(repository, root):
    first = add_people(repository, "a", idempotency_key="k", request_hash="h")
    add_people(repository, "b")
    before = files_below(root)
    for again in (repository, open_repository(root)):
        assert add_people(again, "a", idempotency_key="k", request_hash="h") == first
    assert files_below(root) == before
    assert ids_of(repository.snapshot()) == ["a", "b"]


def test_a_key_for_another_request_is_refused(repository):
    add_people(repository, "a", idempotency_key="k", request_hash="h")
    with pytest.raises(KeyReused, match="'k'") as caught:
        add_people(repository, "b", idempotency_key="k", request_hash="other")
    assert isinstance(caught.value, Conflict)
    assert ids_of(repository.snapshot()) == ["a"]


def test_another_key_is_another_request(repository):
    add_people(repository, "a", idempotency_key="k")
    add_people(repository, "b", idempotency_key="k2")
    assert ids_of(repository.snapshot()) == ["a", "b"]


@pytest.mark.parametrize("key", ["", "  ", 7, b"k", ["k"], "x" * 1025, "half \ud800"])
def test_invalid_idempotency_keys(repository, key):
    with pytest.raises(InputError, match="idempotency key") as caught:
        add_people(repository, "a", idempotency_key=key)
    assert caught.value.code == "bad_idempotency_key"
    assert caught.value.hint
    assert ids_of(repository.snapshot()) == []


def test_idempotency_keys_are_per_actor(repository):
    made = {
        actor: add_people(repository, f"by {actor}", actor=actor, idempotency_key="k") for actor in (None, "ana", "bo")
    }
    for actor, commit in made.items():
        assert commit.actor == actor
        assert add_people(repository, f"by {actor}", actor=actor, idempotency_key="k") == commit
    assert ids_of(repository.snapshot()) == ["by None", "by ana", "by bo"]


def test_a_key_of_an_earlier_release_belongs_to_the_actor_of_its_commit(repository):
    commit = add_people(repository, "a", actor="ana")
    row = {
        **idempotency_to_row("k", None, commit.id, None),
        "object_id": unscoped_idempotency_object_id("k"),
    }
    repository.publish(lambda _: Publication(add=(row,)))
    assert add_people(repository, "b", actor="ana", idempotency_key="k") == commit
    assert add_people(repository, "b", actor="bo", idempotency_key="k") != commit
    assert add_people(repository, "c", idempotency_key="k").actor is None
    assert ids_of(repository.snapshot()) == ["a", "b", "c"]


def test_a_key_survives_a_long_history(repository):
    first = add_people(repository, "a", idempotency_key="o'key", request_hash="h")
    for number in range(80):
        put_people(repository, "x", name=str(number))
    assert add_people(repository, "a", idempotency_key="o'key", request_hash="h") == first


def test_concurrent_requests_with_one_key_make_one_commit(repository, root):
    other = open_repository(root)
    made = []

    def prepare(transaction):
        transaction.change(PERSON, TableWrite(append=people("a")))
        if not made:
            made.append(add_people(other, "a", idempotency_key="k", request_hash="h"))

    commit = write(repository, prepare, WriteOptions(idempotency_key="k", request_hash="h"))
    assert commit == made[0]
    assert ids_of(repository.snapshot()) == ["a"]


# -- lost responses ------------------------------------------------------------------------------------


def test_a_lost_response_is_resolved_by_reading(repository, root):
    lost = []

    def lose():
        lost.append(1)
        raise StorageError("the connection broke")

    with arm("publish.after_commit", lose):
        commit = add_people(repository, "a")
    assert lost == [1], "it is not published a second time"
    assert repository.commits()[0] == commit
    assert ids_of(open_repository(root).snapshot()) == ["a"]
    assert intents(root) == []
    assert verify(repository) == []


def test_a_publish_that_did_not_land_is_retried_once(repository):
    lost = []

    def lose():
        lost.append(1)
        if len(lost) == 1:
            raise StorageError("the connection broke")

    with arm("publish.before_commit", lose):
        commit = add_people(repository, "a")
    assert len(lost) == 2
    assert repository.commits()[0].id == commit.id
    assert verify(repository) == []


def test_a_store_that_keeps_failing_is_reported_with_nothing_written(repository, root):
    def lose():
        raise StorageError("the connection broke")

    with pytest.raises(StorageError, match="connection"), arm("publish.before_commit", lose):
        add_people(repository, "a")
    assert ids_of(repository.snapshot()) == []
    assert intents(root) == []


def test_an_unknown_outcome_is_reported_and_keeps_the_intent(repository, root, monkeypatch):
    def lose():
        monkeypatch.setattr(repository.manifest, "read", unreachable)
        raise StorageError("the connection broke")

    def unreachable():
        raise StorageError("still broken")

    with pytest.raises(OutcomeUnknown) as caught, arm("publish.after_commit", lose):
        add_people(repository, "a")
    assert "read the branch" in caught.value.hint
    (note,) = intents(root)
    assert json.loads(note.read_text())["branch"] == "main"
    assert ids_of(open_repository(root).snapshot()) == ["a"]


# -- fencing -------------------------------------------------------------------------------------------


def test_a_fenced_commit_cannot_be_published(repository, monkeypatch):
    transaction = with_person(repository, "slow")
    ids = []

    def fence():
        (note,) = repository.objects.list("__recovery")
        ids.append(json.loads(repository.objects.read(note))["graph_commit_id"])
        repository.publish(lambda _: Publication(put=(abort_to_row(ids[0], "operation", repository.clock()),)))

    with pytest.raises(HeadMoved, match="was aborted"), arm("table.promoted", fence):
        transaction.commit()
    assert ids_of(repository.snapshot()) == []
    assert repository.find_commit(ids[0]) is None
    assert verify(repository) == []


def test_a_fenced_write_starts_over_with_another_id(repository):
    fenced = []

    def fence():
        if not fenced:
            (note,) = repository.objects.list("__recovery")
            fenced.append(json.loads(repository.objects.read(note))["graph_commit_id"])
            row = abort_to_row(fenced[0], "operation", repository.clock())
            repository.publish(lambda _: Publication(put=(row,)))

    with arm("table.promoted", fence):
        commit = add_people(repository, "slow")
    assert commit.id != fenced[0]
    assert ids_of(repository.snapshot()) == ["slow"]


# -- intents -------------------------------------------------------------------------------------------


def test_the_content_of_an_intent(repository, root):
    notes = []

    def read():
        (note,) = intents(root)
        notes.append((note.name, json.loads(note.read_text())))

    with arm("publish.before_commit", read):
        commit = change(repository, BOTH, actor="ada", kind="load")
    ((name, note),) = notes
    assert name == f"{note['operation_id']}.json"
    assert note["schema_version"] == 2
    assert note["graph_commit_id"] == commit.id
    assert (note["branch"], note["actor_id"], note["writer_kind"]) == ("main", "ada", "load")
    assert note["lease_s"] == LEASE_S
    assert {"id", "boot_id", "pid_namespace", "pid", "started"} <= set(note["writer"])
    assert note["tables"] == [
        {"table_key": KNOWS, "table_path": "edges/602a25a3bd0b455b", "expected_version": 1},
        {"table_key": PERSON, "table_path": "nodes/40d76f1f51639ec0", "expected_version": 1},
    ]


# -- adding, dropping and renaming tables --------------------------------------------------------------

PLACE = TableSpec("node", "Place", 3, 3, PERSON_SCHEMA)


def structural(repository, prepare, **options):
    return write(repository, prepare, WriteOptions(**options))


def test_a_table_is_added(repository, root):
    commit = structural(repository, lambda transaction: transaction.create_table(PLACE))
    assert commit.changed == ("node:Place",)
    change(repository, {"node:Place": TableWrite(append=people("here"))})
    again = open_repository(root)
    assert ids_of(again.snapshot(), "node:Place") == ["here"]
    assert again.snapshot().tables["node:Place"].folder.startswith("nodes/")
    assert "node:Place" not in again.snapshot(at=1).tables
    assert verify(again) == []


def test_a_table_is_added_on_one_branch_only(repository):
    repository.create_branch("side")
    structural(repository, lambda transaction: transaction.create_table(PLACE), branch="side")
    assert "node:Place" in repository.snapshot("side").tables
    assert "node:Place" not in repository.snapshot("main").tables


def test_two_branches_that_add_one_name_have_separate_tables(repository):
    repository.create_branch("side")
    for branch, table_id in (("main", 3), ("side", 4)):
        spec = TableSpec("node", "Place", table_id, table_id, PERSON_SCHEMA)
        structural(repository, lambda transaction, spec=spec: transaction.create_table(spec), branch=branch)
        change(repository, {"node:Place": TableWrite(append=people(branch))}, branch=branch)
    assert ids_of(repository.snapshot("main"), "node:Place") == ["main"]
    assert ids_of(repository.snapshot("side"), "node:Place") == ["side"]
    assert verify(repository) == []


def test_a_table_is_dropped(repository, root):
    before = change(repository, BOTH)
    commit = structural(repository, lambda transaction: transaction.drop_table(KNOWS))
    assert commit.changed == (KNOWS,)
    assert list(repository.snapshot().tables) == [PERSON]
    with pytest.raises(TypeNotFound):
        change(repository, {KNOWS: TableWrite(append=knows(("a", "b")))})
    assert ids_of(open_repository(root).snapshot(at=before.id), KNOWS) == ["a-b"]
    (stone,) = repository.manifest.scan(repository.state().manifest, "object_type = 'table_tombstone'").to_pylist()
    assert (stone["table_key"], stone["table_version"]) == (KNOWS, 3)
    assert verify(repository) == []


def test_a_reused_name_is_a_new_table(repository):
    change(repository, BOTH)
    structural(repository, lambda transaction: transaction.drop_table(PERSON))
    spec = TableSpec("node", "Person", 9, 9, PERSON_SCHEMA)
    structural(repository, lambda transaction: transaction.create_table(spec))
    assert ids_of(repository.snapshot()) == []
    assert repository.snapshot().tables[PERSON].pin.table_version == 1
    assert ids_of(repository.snapshot(at=2)) == ["a", "b"]
    add_people(repository, "new")
    assert ids_of(repository.snapshot()) == ["new"]
    assert verify(repository) == []


def test_a_table_is_renamed_with_its_rows_and_history(repository, root):
    before = change(repository, BOTH)
    folder = repository.snapshot().tables[PERSON].folder
    structural(repository, lambda transaction: transaction.rename_table(PERSON, "node:Human"))
    again = open_repository(root)
    assert sorted(again.snapshot().tables) == [KNOWS, "node:Human"]
    assert again.snapshot().tables["node:Human"].folder == folder
    assert ids_of(again.snapshot(), "node:Human") == ["a", "b"]
    assert ids_of(again.snapshot(at=before.id), PERSON) == ["a", "b"]
    change(again, {"node:Human": TableWrite(append=people("c"))})
    assert ids_of(again.snapshot(), "node:Human") == ["a", "b", "c"]
    assert verify(again) == []


def test_a_table_is_renamed_and_changed_in_one_commit(repository):
    change(repository, BOTH)

    def prepare(transaction):
        transaction.rename_table(PERSON, "node:Human")
        transaction.change(PERSON, TableWrite(delete=["a"]))

    structural(repository, prepare)
    assert ids_of(repository.snapshot(), "node:Human") == ["b"]


def test_a_schema_changes_with_its_tables_in_one_commit(repository, root):
    record = SchemaRecord("hash-2", "node Person { }\nnode Place { }\n", '{"v":2}')
    first = repository.state().next_identity

    def prepare(transaction):
        transaction.set_schema(record, first_identity=first, next_identity=first + 2)
        transaction.create_table(PLACE)

    before = repository.snapshot().commit_id
    structural(repository, prepare)
    again = open_repository(root)
    assert again.snapshot().schema == record
    assert again.state().next_identity == first + 2
    assert again.snapshot(at=before).schema.hash == "hash-1"
    add_people(again, "a")
    assert again.snapshot().schema == record


def test_a_schema_that_returns_is_stored_once(repository):
    first = repository.snapshot().schema
    second = SchemaRecord("hash-2", "two", "{}")
    for record in (second, first, second):
        now = repository.state().next_identity

        def prepare(transaction, record=record, now=now):
            transaction.set_schema(record, first_identity=now, next_identity=now)

        structural(repository, prepare)
    rows = repository.manifest.scan(repository.state().manifest, "object_type = 'schema'")
    assert sorted(rows["object_id"].to_pylist()) == ["schema:hash-1", "schema:hash-2"]
    assert verify(repository) == []


def test_a_lost_race_while_a_table_is_added_starts_over(repository, root):
    other = open_repository(root)
    tried = []

    def prepare(transaction):
        tried.append(1)
        transaction.create_table(PLACE)
        if len(tried) == 1:
            add_people(other, "rival")

    structural(repository, prepare)
    assert len(tried) == 2
    assert sorted(repository.snapshot().tables) == [KNOWS, PERSON, "node:Place"]
    assert ids_of(repository.snapshot()) == ["rival"]
    assert verify(repository) == []


def test_an_existing_table_cannot_be_added_or_dropped_or_renamed_twice(repository):
    for prepare in (
        lambda transaction: transaction.create_table(TableSpec("node", "Person", 9, 9, PERSON_SCHEMA)),
        lambda transaction: transaction.rename_table(PERSON, KNOWS),
        lambda transaction: transaction.adopt_table(transaction.snapshot.tables[PERSON].pin),
    ):
        with pytest.raises(InputError):
            structural(repository, prepare)
    for prepare in (
        lambda transaction: transaction.drop_table("node:None"),
        lambda transaction: transaction.rename_table("node:None", "node:Other"),
    ):
        with pytest.raises(TypeNotFound, match="'node:None'"):
            structural(repository, prepare)
    assert len(repository.commits()) == 1


# -- contention ----------------------------------------------------------------------------------------


def test_a_writer_that_lost_a_race_queues_for_a_while(root, monkeypatch):
    clock = Ticks()
    repository = new_repository(root, clock=clock)
    repository.create_branch("quiet")
    queued = []
    queue = repository.manifest.retry_lock

    def counted():
        queued.append(1)
        return queue()

    monkeypatch.setattr(repository.manifest, "retry_lock", counted)
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
