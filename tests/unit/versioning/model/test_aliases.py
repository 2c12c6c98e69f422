"""Alias sets: segments, changes, differences, compared with a dictionary."""

from __future__ import annotations

from random import Random

import pyarrow as pa
import pytest

from omnigraph.versioning.model import aliases as module
from omnigraph.versioning.model.aliases import AliasSet, chained


class Store:
    """The documents of all sets, as a manifest keeps them."""

    def __init__(self):
        self.documents = {}

    def keep(self, aliases):
        self.documents.update({record.hash: record.document for record in aliases.records})
        return AliasSet(aliases.hash, self.documents.__getitem__)


@pytest.fixture(autouse=True)
def _small_segments(monkeypatch):
    monkeypatch.setattr(module, "SEGMENT_MAX", 4)


def model(aliases):
    return {table: aliases.entries(table) for table in aliases.tables()}


@pytest.mark.parametrize("seed", range(20))
def test_sets_equal_dictionaries(seed):
    random, store = Random(seed), Store()
    known, expected = AliasSet(), {}
    for _ in range(12):
        changes = {}
        for _ in range(random.randrange(1, 9)):
            table, old = random.randrange(2), f"id{random.randrange(60)}"
            changes.setdefault(table, {})[old] = random.choice([None, "x", "y", "z"])
        before = known
        known = store.keep(known.with_changes(changes))
        was, expected = expected, {table: dict(entries) for table, entries in expected.items()}
        for table, some in changes.items():
            of_table = expected.setdefault(table, {})
            for old, kept in some.items():
                of_table.pop(old, None)
                if kept is not None:
                    of_table[old] = kept
        expected = {table: entries for table, entries in expected.items() if entries}
        assert model(known) == expected
        assert bool(known) == bool(expected)
        found = {(table, old): (a, b) for table, old, a, b in before.differences(known)}
        keys = {(table, old) for side in (was, expected) for table, some in side.items() for old in some}
        images = {key: tuple(side.get(key[0], {}).get(key[1]) for side in (was, expected)) for key in keys}
        assert found == {key: both for key, both in images.items() if both[0] != both[1]}
        assert before.with_changes(before.changes_to(known)).hash == known.hash or model(known) == expected
        ids = pa.array([f"id{number}" for number in range(60)])
        resolved = known.resolve(0, ids).to_pylist()
        assert resolved == [expected.get(0, {}).get(id_, id_) for id_ in ids.to_pylist()]


def test_a_change_writes_few_segments():
    store = Store()
    known = store.keep(AliasSet().with_changes({1: {f"id{number}": "x" for number in range(200)}}))
    after = known.with_changes({1: {"other": "x"}})
    assert len(after.records) == 2, "one segment and the root"
    assert known.with_changes({1: {"id0": "x"}}).hash == known.hash


def test_chains_are_shortened():
    known = AliasSet().with_changes({1: {"a": "b"}})
    assert chained(known, 1, {"b": "c"}) == {"a": "c", "b": "c"}
