"""Transactions that add, drop and rename tables and change the schema."""

from __future__ import annotations

import pytest

from omnigraph.errors import (
    InputError,
    TypeNotFound,
)
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.storage.manifest.manifest_schema import HistoryFilter
from omnigraph.versioning.model.manifest_objects import SchemaRecord, TableSpec
from omnigraph.versioning.upkeep.verify import verify
from omnigraph.versioning.write.branches import create_branch
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write
from support.graphs import (
    KNOWS,
    PERSON,
    PERSON_SCHEMA,
    add_people,
    change,
    ids_of,
    knows,
    new_repository,
    open_repository,
    people,
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
    create_branch(repository, "side")
    structural(repository, lambda transaction: transaction.create_table(PLACE), branch="side")
    assert "node:Place" in repository.snapshot("side").tables
    assert "node:Place" not in repository.snapshot("main").tables


def test_two_branches_that_add_one_name_have_separate_tables(repository):
    create_branch(repository, "side")
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
    (stone,) = repository.manifest.scan(repository.state().manifest, HistoryFilter("table_tombstone"))
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
    assert sorted(repository.state().manifest.ids_of("schema")) == ["schema:hash-1", "schema:hash-2"]
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
