"""Manifest objects: conversion to rows and back, and errors for damaged rows."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import Damaged
from omnigraph.storage.manifest.manifest_schema import SCHEMA, to_rows
from omnigraph.versioning.model.manifest_objects import MAIN, Commit, Head, Pin, SchemaRecord, TableRow, TableSpec
from omnigraph.versioning.model.manifest_rows import (
    abort_to_row,
    commit_to_row,
    head_to_log_row,
    head_to_row,
    idempotency_to_row,
    read_metadata,
    row_to_commit,
    row_to_commit_and_pins,
    row_to_head,
    row_to_schema,
    row_to_table,
    schema_to_row,
    table_to_row,
    tombstone_to_row,
    version_to_row,
)
from support.graphs import PERSON_SCHEMA

PIN = Pin(1, 2, "node:Person", 7, 41, 1000)
EDGE = Pin(3, 4, "edge:Knows", 1, 1, 0)
COMMIT = Commit(
    id="01J",
    branch=MAIN,
    manifest_version=12,
    parent_id="01H",
    merged_parent_id=None,
    actor="ada",
    created_us=1_700_000_000_000_000,
    message="why",
    metadata={"ticket": 7},
    kind="load",
    changed=("node:Person",),
    schema_hash="abc",
    since=3,
    fork_commit_id="01G",
)
HEAD = Head(
    branch="feature/x",
    incarnation="01K",
    commit_id="01J",
    parent_commit_id="01H",
    manifest_version=12,
    schema_hash="abc",
    created_us=1_700_000_000_000_001,
    fork_commit_id="01G",
    fork_branch=MAIN,
    since=3,
    owner="ada",
    pins=(EDGE, PIN),
)

texts = st.text(st.characters(exclude_categories=["Cs"]))
numbers = st.integers(0, 2**63 - 1)
pins = st.builds(Pin, numbers, numbers, texts, numbers, numbers, numbers)
branches = texts.filter(bool)
said = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.lists(texts)
commits = st.builds(
    Commit,
    id=texts,
    branch=branches,
    manifest_version=numbers,
    parent_id=st.none() | texts,
    merged_parent_id=st.none() | texts,
    actor=st.none() | texts,
    created_us=numbers,
    message=st.none() | texts,
    metadata=st.dictionaries(
        texts, st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts | st.lists(texts)
    ),
    kind=texts,
    changed=st.lists(texts).map(tuple),
    schema_hash=texts,
    since=numbers,
    fork_commit_id=st.none() | texts,
)
heads = st.builds(
    Head,
    branch=branches,
    incarnation=texts,
    commit_id=texts,
    parent_commit_id=st.none() | texts,
    manifest_version=numbers,
    schema_hash=texts,
    created_us=numbers,
    fork_commit_id=st.none() | texts,
    fork_branch=st.none() | texts,
    since=numbers,
    owner=st.none() | texts,
    pins=st.lists(pins).map(tuple),
)


def through_arrow(row):
    """Return the row as it is read from a manifest."""
    table = to_rows([row])
    assert table.schema == SCHEMA
    return table.to_pylist()[0]


# -- round trip ----------------------------------------------------------------------------------------


@given(commits, st.lists(pins))
def test_a_commit_round_trips(commit, pinned):
    row = through_arrow(commit_to_row(commit, pinned))
    assert row_to_commit(row) == commit
    assert row_to_commit_and_pins(row) == (commit, tuple(pinned))


NO_PINS: dict[str, tuple[Pin, ...]] = {}


@given(heads)
def test_a_head_round_trips(head):
    assert row_to_head(through_arrow(head_to_row(head)), NO_PINS.__getitem__) == head


@given(heads)
def test_a_head_in_the_log_has_the_pins_of_its_commit(head):
    row = through_arrow(head_to_log_row(head))
    assert not {"pins", "transactions", "embeddings"} & json.loads(row["metadata"]).keys()
    assert row_to_head(row, {head.commit_id: head.pins}.__getitem__) == head


tables = st.tuples(st.integers(0, 3), st.integers(0, 1))
branch_pins = st.dictionaries(tables, st.tuples(texts, st.integers(0, 2), st.sampled_from(["", "t1"])), max_size=6).map(
    lambda found: tuple(
        sorted(
            (
                Pin(*table, f"node:{table}{key}", 1, lance, 5, transaction)
                for table, (key, lance, transaction) in found.items()
            ),
            key=lambda pin: pin.key,
        )
    )
)


@given(heads, branch_pins, branch_pins)
def test_a_head_in_a_checkpoint_contains_what_differs_from_its_fork_point(head, own, fork):
    """Tables that were changed, added, dropped or renamed since."""
    head = replace(head, pins=own, fork_commit_id="01FORK")
    row = through_arrow(head_to_row(head, fork))
    stored = json.loads(row["metadata"])
    assert len(stored["pins"]) == len(set(own) - set(fork))
    assert row_to_head(row, {"01FORK": fork}.__getitem__) == head


@given(st.builds(SchemaRecord, texts, texts, texts))
def test_a_schema_round_trips(record):
    assert row_to_schema(through_arrow(schema_to_row(record))) == record


folders = st.from_regex(r"(nodes|edges)/[0-9a-f]{16}(-[0-9a-f]{16})?", fullmatch=True)


@given(st.builds(TableRow, numbers, numbers, texts, folders))
def test_a_table_round_trips(table):
    assert row_to_table(through_arrow(table_to_row(table))) == table


def test_the_full_range_of_identities_fits():
    table = TableRow(2**64 - 1, 2**64 - 1, "node:Person", "nodes/0123456789abcdef")
    assert row_to_table(through_arrow(table_to_row(table))) == table


# -- the specified form --------------------------------------------------------------------------------


def test_object_ids():
    assert (
        table_to_row(TableRow(10, 11, "node:P", "nodes/0123456789abcdef"))["object_id"] == f"table:{10:016x}:{11:016x}"
    )
    assert version_to_row(PIN, MAIN, 5, {})["object_id"] == f"table_version:{1:016x}:{2:016x}:{5:020}"
    assert tombstone_to_row(PIN, MAIN, 5)["object_id"] == f"table_tombstone:{1:016x}:{2:016x}:{5:020}"
    assert commit_to_row(COMMIT, [])["object_id"] == "01J"
    assert head_to_row(HEAD)["object_id"] == "graph_head:feature/x"
    assert abort_to_row("01J", "01K", 1)["object_id"] == "01J", "the very id the commit would have"
    assert schema_to_row(SchemaRecord("abc", "", ""))["object_id"] == "schema:abc"
    assert idempotency_to_row("key", "ana", "01J", None)["object_id"] == 'idempotency_of:["ana","key"]'


def test_main_is_stored_as_null():
    assert through_arrow(commit_to_row(COMMIT, []))["table_branch"] is None
    assert through_arrow(head_to_row(HEAD))["table_branch"] == "feature/x"
    assert version_to_row(PIN, "feature/x", 5, {})["table_branch"] == "feature/x"


def test_the_columns_of_a_version_row():
    row = through_arrow(version_to_row(PIN, MAIN, 5, {"transaction_uuid": "u"}))
    assert (row["object_type"], row["table_key"]) == ("table_version", "node:Person")
    assert (row["stable_table_id"], row["table_incarnation_id"]) == (1, 2)
    assert (row["table_version"], row["row_count"]) == (7, 1000)
    assert json.loads(row["metadata"]) == {"lance_version": 41, "transaction_uuid": "u"}


def test_a_tombstone_has_the_next_table_version():
    row = through_arrow(tombstone_to_row(PIN, MAIN, 5))
    assert (row["object_type"], row["table_version"], row["metadata"]) == ("table_tombstone", 8, None)


def test_the_metadata_of_a_commit_row():
    data = json.loads(commit_to_row(COMMIT, [PIN])["metadata"])
    assert data["parent_commit_id"] == "01H"
    assert data["merged_parent_commit_id"] is None
    assert data["actor_id"] == "ada"
    assert data["created_at"] == 1_700_000_000_000_000
    assert data["pins"] == [[1, 2, "node:Person", 7, 41, 1000]]


def test_the_json_form_of_a_commit():
    assert COMMIT.to_json() == {
        "graph_commit_id": "01J",
        "manifest_branch": None,
        "manifest_version": 12,
        "parent_commit_id": "01H",
        "merged_parent_commit_id": None,
        "actor_id": "ada",
        "created_at": 1_700_000_000_000_000,
        "message": "why",
        "metadata": {"ticket": 7},
        "kind": "load",
        "changed": ["node:Person"],
    }


def test_the_key_of_a_table():
    assert TableSpec("node", "Person", 1, 1, PERSON_SCHEMA).key == "node:Person"


# -- damage --------------------------------------------------------------------------------------------

READERS = {
    "commit": (row_to_commit_and_pins, commit_to_row(COMMIT, [PIN])),
    "head": (lambda row: row_to_head(row, NO_PINS.__getitem__), head_to_row(HEAD)),
    "head of a checkpoint": (lambda row: row_to_head(row, lambda _: (EDGE,)), head_to_row(HEAD, (EDGE,))),
    "head of the log": (lambda row: row_to_head(row, lambda _: (EDGE, PIN)), head_to_log_row(HEAD)),
    "schema": (row_to_schema, schema_to_row(SchemaRecord("abc", "text", "{}"))),
}
OPTIONAL = {"transactions"}
FIELDS = [(kind, field) for kind, (_, row) in READERS.items() for field in json.loads(row["metadata"])]
FIELDS = [(kind, field) for kind, field in FIELDS if field not in OPTIONAL]
FIELDS.remove(("head of a checkpoint", "pins"))  # without pins, it has those of its commit


def damaged(read, row):
    with pytest.raises(Damaged) as caught:
        read(row)
    assert caught.value.code == "damaged_manifest"
    assert f"'{row['object_id']}'" in caught.value.message
    assert "verify" in caught.value.hint


def test_pins_record_the_transactions_of_their_versions():
    pin = Pin(1, 2, "node:Person", 7, 41, 1000, "9c0da626-a90d-49fc-b842-125eee98c029")
    _, pins = row_to_commit_and_pins(commit_to_row(COMMIT, [pin, EDGE]))
    assert pins == (pin, EDGE)


def test_pins_without_transactions_are_read():
    row = commit_to_row(COMMIT, [PIN])
    data = json.loads(row["metadata"])
    del data["transactions"]
    assert row_to_commit_and_pins({**row, "metadata": json.dumps(data)})[1] == (PIN,)


@pytest.mark.parametrize("metadata", [None, "", "{", "[]", "7", '"text"', "null", "{}"])
@pytest.mark.parametrize("kind", READERS)
def test_a_row_with_invalid_metadata_is_named(kind, metadata):
    read, row = READERS[kind]
    damaged(read, {**row, "metadata": metadata})


@pytest.mark.parametrize(("kind", "field"), FIELDS, ids=[f"{kind}-{field}" for kind, field in FIELDS])
def test_a_row_with_a_missing_field_is_named(kind, field):
    read, row = READERS[kind]
    data = json.loads(row["metadata"])
    del data[field]
    damaged(read, {**row, "metadata": json.dumps(data)})


@pytest.mark.parametrize(
    ("kind", "field", "value"),
    [
        ("commit", "pins", None),
        ("commit", "pins", [[1, 2]]),
        ("commit", "pins", [[1, 2, 3, 4, 5, 6]]),
        ("commit", "pins", "text"),
        ("commit", "transactions", [7]),
        ("commit", "transactions", ["a", "b"]),
        ("commit", "created_at", "yesterday"),
        ("commit", "changed", 7),
        ("commit", "metadata", 7),
        ("commit", "parent_commit_id", 7),
        ("head", "pins", {"a": 1}),
        ("head", "head_commit_id", None),
        ("head", "incarnation", 7),
        ("head", "manifest_version", None),
        ("head of a checkpoint", "pins_of", None),
        ("head of a checkpoint", "dropped", None),
        ("head of a checkpoint", "dropped", [[1]]),
        ("head of a checkpoint", "dropped", 7),
        ("head of the log", "head_commit_id", 7),
        ("schema", "source", 7),
    ],
)
def test_a_row_with_a_field_of_another_type_is_named(kind, field, value):
    read, row = READERS[kind]
    data = {**json.loads(row["metadata"]), field: value}
    damaged(read, {**row, "metadata": json.dumps(data)})


@pytest.mark.parametrize(
    "folder", ["../x", "/etc", "nodes/../../x", "nodes/", "__manifest", "nodes/0123456789abcdef/.."]
)
def test_a_table_row_with_another_location_is_refused(folder):
    damaged(row_to_table, table_to_row(TableRow(1, 1, "node:Person", folder)))


@pytest.mark.parametrize("column", ["stable_table_id", "table_incarnation_id", "location"])
def test_a_table_row_with_a_missing_column_is_named(column):
    damaged(row_to_table, {**table_to_row(TableRow(1, 1, "node:Person", "nodes/0123456789abcdef")), column: None})


def test_a_commit_row_without_its_version_is_named():
    damaged(row_to_commit, {**commit_to_row(COMMIT, []), "table_version": None})


plain = st.none() | st.booleans() | numbers | texts


@given(st.recursive(plain, lambda inner: st.lists(inner) | st.dictionaries(texts, inner)))
def test_arbitrary_metadata_is_read_or_named(value):
    row = {**commit_to_row(COMMIT, []), "metadata": json.dumps(value)}
    if isinstance(value, dict):
        assert read_metadata(row) == value
    else:
        damaged(read_metadata, row)


@pytest.mark.parametrize("value", [2**64, -(2**200), 1e308, float("inf"), 0.1, "\u2028", {"a": [None, {}]}])
def test_metadata_of_a_commit_round_trips(value):
    row = through_arrow(commit_to_row(replace(COMMIT, metadata={"said": value}), [PIN]))
    found = row_to_commit(row).metadata["said"]
    assert (found, type(found)) == (value, type(value))


def test_nan_in_metadata_round_trips():
    row = through_arrow(commit_to_row(replace(COMMIT, metadata={"said": float("nan")}), [PIN]))
    assert math.isnan(row_to_commit(row).metadata["said"])
