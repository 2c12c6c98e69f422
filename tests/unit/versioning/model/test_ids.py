"""Identifiers that sort by creation time."""

from __future__ import annotations

import re
import time

from omnigraph.versioning.model.ids import new_ulid, new_ulids, system_clock

SHAPE = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def test_the_shape_is_a_ulid():
    for now in (0, 1_000, 1_700_000_000_000_000, (2**48 - 1) * 1000):
        assert SHAPE.fullmatch(new_ulid(now))


def test_the_first_ten_characters_are_the_time():
    # 1469918176385 ms is the example of the ULID specification.
    assert new_ulid(1_469_918_176_385_000).startswith("01ARYZ6S41")
    assert new_ulid(0).startswith("0000000000")
    assert new_ulid((2**48 - 1) * 1000).startswith("7ZZZZZZZZZ")


def test_later_ids_sort_later():
    ids = [new_ulid(1_700_000_000_000_000 + 1_000 * step) for step in range(200)]
    assert ids == sorted(ids)


def test_ids_of_one_moment_differ():
    assert len({new_ulid(1_700_000_000_000_000) for _ in range(2_000)}) == 2_000


def test_the_clock_counts_microseconds():
    before = time.time_ns() // 1000
    assert before <= system_clock() <= time.time_ns() // 1000


def test_many_ids_at_once_are_valid_and_unique():
    now = 1_469_918_176_385_000
    ids = new_ulids(now, 20_000).to_pylist()
    assert all(SHAPE.fullmatch(one) for one in ids)
    assert {one[:10] for one in ids} == {"01ARYZ6S41"}
    assert len(set(ids)) == len(ids)
    for place in range(10, 26):
        assert len({one[place] for one in ids}) == 32, "every letter turns up in every place"
