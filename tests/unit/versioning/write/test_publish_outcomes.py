"""Outcomes of publishes: idempotency keys, lost responses, fences and intents."""

from __future__ import annotations

import json

import pytest

from omnigraph.errors import (
    Conflict,
    HeadMoved,
    InputError,
    KeyReused,
    OutcomeUnknown,
    StorageError,
)
from omnigraph.storage.failpoints import arm
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.model.manifest_rows import abort_to_row, idempotency_to_row, unscoped_idempotency_object_id
from omnigraph.versioning.upkeep.verify import verify
from omnigraph.versioning.write.leases import LEASE_S
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write
from support.graphs import (
    KNOWS,
    PERSON,
    add_people,
    change,
    files_below,
    ids_of,
    knows,
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
    repository.publish(lambda _: Change(add=(row,)))
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
    assert caught.value.commit_id == open_repository(root).snapshot().commit_id


# -- fencing -------------------------------------------------------------------------------------------


def test_a_fenced_commit_cannot_be_published(repository, monkeypatch):
    transaction = with_person(repository, "slow")
    ids = []

    def fence():
        (note,) = repository.objects.list("__recovery")
        ids.append(json.loads(repository.objects.read(note))["graph_commit_id"])
        repository.publish(lambda _: Change(put=(abort_to_row(ids[0], "operation", repository.clock()),)))

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
            repository.publish(lambda _: Change(put=(row,)))

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
