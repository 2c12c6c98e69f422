"""Random property values from small pools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any
from uuid import UUID

import pyarrow as pa

from omnigraph.types import PropertyType
from support.oracle.values import read_date, read_datetime, round_f32
from support.random_reads import paths as reads_paths

WORDS = [
    "river", "Rivers", "running", "run", "runner", "stone", "stones", "the", "a", "This", "being", "not", "Café",
    "cafe", "naïve", "NAIVE", "Über", "quick", "quickly", "don't", "under_score", "2024", "x" * 40, "y" * 41,
    "résumés", "resume", "stön", "東京", "東京都", "京", "日本語のテキスト" * 3, "ｶﾞｲﾄﾞ", "한국어", "v2版",
]  # fmt: skip


STRINGS = ["", "a", "A", "ab", "abc", "b", "é", "e", "z", "Z", "\ufb00", "\U0001f600", "red", "%", "a_b", "a'b"]


DATES = ["1969-12-31", "1970-01-01", "2000-02-29", "2020-05-05", "2020-05-06", "9999-12-31"]


MOMENTS = [
    "1969-12-31T23:59:59.999Z", "1970-01-01T00:00:00.000Z", "2020-05-05T10:00:00.000Z", "2020-05-05T10:00:00.001Z",
    "2020-05-05T12:00:00+02:00", "2999-01-01T00:00:00.000Z",
]  # fmt: skip


UUIDS = [
    "00000000-0000-0000-0000-000000000000", "123e4567-e89b-12d3-a456-426614174000",
    "123E4567-E89B-12D3-A456-426614174000", "123e4567-e89b-12d3-a456-426614174001",
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "ffffffff-ffff-ffff-ffff-ffffffffffff",
]  # fmt: skip
"""Two of them are one value in different case."""


POOLS: Mapping[str, Sequence[Any]] = {
    "String": STRINGS,
    "Bool": [True, False],
    "I32": [-(2**31), -3, -1, 0, 1, 2, 3, 2**31 - 1],
    "I64": [-(2**63), -(2**53) - 1, -1, 0, 1, 2, 3, 2**53, 2**53 + 1, 2**53 + 2, 2**53 + 2**29 + 1, 2**63 - 1],
    "U32": [0, 1, 2, 3, 2**32 - 1],
    "U64": [0, 1, 2, 3, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1],
    "F32": [-0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 2.7, -2.7, 16777217.0, 1e10, 9007199254740993.0, 2.0**53 + 2.0**30],
    "F64": [-0.0, 0.0, 0.1, 0.5, 1.0, 2.0, 2.7, -2.7, 0.10000000149011612, 9007199254740992.0, 1e300],
    "Date": DATES,
    "DateTime": MOMENTS,
    "Uuid": UUIDS,
}


VECTORS = [
    [1.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 2.0, 0.0], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0],
    [-1.0, 0.0, 0.0], [0.1234567, -0.7654321, 0.3333333], [0.9876543, 0.1111111, -0.2222222], [1.0, 2.0, 3.0],
]  # fmt: skip


_crooked = Random(7)


LONG_VECTORS = [[_crooked.uniform(-1, 1) for _ in range(17)] for _ in range(5)]
"""Few vectors, so that rows share them, with digits whose sums depend on the order."""


class Values:
    """A few values of each pool, shared by a graph and its queries."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.few = {scalar: random.sample(pool, min(len(pool), 4)) for scalar, pool in POOLS.items()}
        self.words = random.sample(WORDS, 9)
        self.vectors = {3: random.sample(VECTORS, 5), 17: random.sample(LONG_VECTORS, 3)}

    def one(self, random: Random, scalar: str) -> Any:
        return random.choice(self.few[scalar] if random.random() < 0.9 else POOLS[scalar])

    def vector(self, random: Random, dim: int | None) -> list[float]:
        assert dim is not None
        return random.choice(self.vectors[dim])

    def text(self, random: Random) -> str:
        """Some words with punctuation."""
        words = [random.choice(self.words) for _ in range(random.choice((0, 1, 2, 2, 3, 4, 6)))]
        return random.choice((" ", ", ", "--", " _ ")).join(words)

    def json(self, random: Random, type_: PropertyType, name: str) -> Any:
        """A JSON value, occasionally null if allowed."""
        if type_.nullable and random.random() < 0.15:
            return None
        if reads_paths.WEIGHTS.get(name, "").removesuffix("?") == f"{name}: {type_.scalar}" and not type_.is_list:
            return reads_paths.worth(random, name)
        if type_.scalar == "Vector":
            return self.vector(random, type_.dim)
        if type_.is_list:
            return [self.one(random, type_.scalar) for _ in range(random.randint(0, 3))]
        if type_.enum_values:
            return random.choice(type_.enum_values)
        return self.text(random) if _is_prose(type_, name) else self.one(random, type_.scalar)


def _is_prose(type_: PropertyType, name: str) -> bool:
    return type_.is_text and name.startswith("text")


def key_uuid(number: int) -> str:
    """The UUID that stands for a number in a key."""
    return str(UUID(int=number * 0x1111_1111_1111_1111_1111))


def stored(json: Any, type_: PropertyType) -> Any:
    """The stored form of a value."""
    if json is None:
        return None
    if type_.scalar == "Vector":
        return [round_f32(item) for item in json]
    if type_.is_list:
        return [stored(item, type_.item) for item in json]
    match type_.scalar:
        case "F32":
            return round_f32(json)
        case "Date":
            return read_date(json)
        case "DateTime":
            return read_datetime(json)
        case "Uuid":
            return json.lower()
        case _:
            return json


def plain(array: pa.Array | pa.ChunkedArray) -> list[Any]:
    """Arrow values in the form of the oracle: dates as days, datetimes as milliseconds."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks != 1 else array.chunk(0)
    if pa.types.is_date32(array.type):
        return list(array.cast(pa.int32()).to_pylist())
    if pa.types.is_date64(array.type):
        return list(array.cast(pa.int64()).to_pylist())
    if pa.types.is_struct(array.type):
        fields = {field.name: plain(array.field(at)) for at, field in enumerate(array.type)}
        rows = [dict(zip(fields, row, strict=True)) for row in zip(*fields.values(), strict=True)]
        return [row if known else None for row, known in zip(rows, array.is_valid().to_pylist(), strict=True)]
    if pa.types.is_list(array.type):
        items = plain(array.values)
        ends = array.offsets.to_pylist()
        known = array.is_valid().to_pylist()
        return [items[ends[at] : ends[at + 1]] if known[at] else None for at in range(len(array))]
    return list(array.to_pylist())
