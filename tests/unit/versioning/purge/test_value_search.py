"""The search of many values at once finds those that a search of one after the other finds."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.checkpoints import current
from omnigraph.versioning.purge.value_search import ValueSearch

LETTERS = b"ab\x00\xff"


def one_by_one(values: list[bytes], data: bytes) -> set[str]:
    return {value.hex() for value in values if value in data}


@pytest.mark.parametrize("seed", range(20))
def test_windows_find_what_a_search_for_each_value_finds(seed):
    """A small alphabet makes values overlap, repeat and share their windows."""
    rng = random.Random(seed)
    values = [bytes(rng.choices(LETTERS, k=rng.randint(4, 12))) for _ in range(60)]
    data = bytes(rng.choices(LETTERS, k=rng.choice([0, 3, 4, 7, 8, 9, 500, 5_000])))
    search = ValueSearch(values)
    assert search._windows, "enough values for windows"
    assert search.found_in(data) == one_by_one(values, data)
    assert search.found_in(memoryview(data)) == one_by_one(values, data)
    size = rng.randint(1, 40)
    assert search.found_in_chunks(data[at : at + size] for at in range(0, len(data), size)) == one_by_one(values, data)
    few = ValueSearch(values[:3])
    assert not few._windows
    assert few.found_in(data) == one_by_one(values[:3], data)
    assert few.found_in_chunks(data[at : at + size] for at in range(0, len(data), size)) == one_by_one(values[:3], data)


@pytest.mark.parametrize("end", range(9))
def test_a_value_at_the_edge_of_a_part_is_found(end, monkeypatch):
    monkeypatch.setattr("omnigraph.versioning.purge.value_search._PART_BYTES", 16)
    values = [b"the-value-%02d" % number for number in range(30)]
    data = bytes(16 - end) + values[7] + bytes(16) + values[8]
    assert ValueSearch(values).found_in(data) == {values[7].hex(), values[8].hex()}


@pytest.mark.parametrize("others", [0, 40])
@pytest.mark.parametrize(
    ("array", "found"),
    [
        (pa.array(["the secret text", None, "x"]), {"secret"}),
        (pa.array(["the sec", "ret text"]), set()),
        (pa.array(["secret", "x", "y"]).slice(1), set()),
        (pa.array(["x", "secret", "y"], pa.large_utf8()).slice(1, 1), {"secret"}),
        (pa.array([b"\xffsecret", b"sec"], pa.binary()), {"secret"}),
        (pa.array([b"sec", b"ret!"], pa.binary()), set()),
        (pa.array([["a"], ["b", "secret"], None]), {"secret"}),
        (pa.array([["secret"], ["b"]]).slice(1), set()),
        (pa.array([{"a": "x", "b": {"c": "secret"}}]), {"secret"}),
        (pa.array(["x", "secret", "x"]).dictionary_encode(), {"secret"}),
        (pa.array([[("k", "secret")]], pa.map_(pa.utf8(), pa.utf8())), {"secret"}),
        (pa.array([7, 0x1122334455667788, None], pa.int64()), {"8877665544332211"}),
        (pa.array([0x1122334455667788, 7], pa.int64()).slice(1), set()),
        (pa.array([[1.5, 2.5]], pa.list_(pa.float32(), 2)), {"0000c03f00002040"}),
        (pa.array([None, None]), set()),
        (pa.array([None, None], pa.utf8()), set()),
        (pa.array([True, False]), set()),
        (pa.array([], pa.utf8()), set()),
    ],
)
def test_values_of_columns(array, found, others):
    values = ["secret", bytes.fromhex("8877665544332211"), bytes.fromhex("0000c03f00002040")]
    search = ValueSearch([*values, *(f"other-value-{number}" for number in range(others))])
    assert search.found_in_array(array) == found


def test_many_values_are_searched_in_a_graph(tmp_path):
    graph = og.init(tmp_path / "graph", "node P {\n  name: String @key\n  note: String?\n}\n", sync=False)
    graph.load([{"type": "P", "data": {"name": "a", "note": "the-needle-77 is here"}}], mode="append")
    wanted = [f"the-needle-{number}" for number in range(100)]
    assert {finding.value for finding in graph.purge_verify(wanted).findings} == {"the-needle-7", "the-needle-77"}
    seen = []
    assert graph.purge_verify(["absent-value"], watch=seen.append).findings == ()
    assert [(step.step, step.total) for step in seen][-1:] == [("search", seen[-1].done)]
    assert len(seen) > 3


def test_a_search_has_checkpoints(tmp_path):
    graph = og.init(tmp_path / "graph", "node P {\n  name: String @key\n}\n", sync=False)
    graph.load([{"type": "P", "data": {"name": f"p{number}"}} for number in range(20_000)], mode="append")

    class Stop(Exception):
        pass

    class Counted:
        limited = True
        seen = 0

        def check(self) -> None:
            self.seen += 1
            if self.seen == 5:
                raise Stop

    token = current.set(Counted())
    try:
        with pytest.raises(Stop):
            graph.purge_verify(["absent-value"])
    finally:
        current.reset(token)
