"""What was computed for the rows of a table serves its later versions as well.

A commit adds rows in pieces of their own and marks the rows it replaced or removed as gone; every other row stays in
its piece. So something computed row by row (an index of words, codes of vectors) is kept in parts, each made of some
pieces, and a version is put together from the parts that hold its pieces: their rows are looked up through a map, and
only rows no part holds are computed. Many new rows make a new part; a few are computed again by the next version.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.row_mapping import Layout, Places
from omnigraph.engine.cache.table_cache import DataCache, Numbers, TableData
from omnigraph.engine.exec.cancellation import say

Body = TypeVar("Body")

_FEW = 5_000
"""More new rows than this become a part."""
_PARTS_MAX = 8
_USED_MIN = 0.5
"""Parts of which less is still there are made anew."""


@dataclass(frozen=True)
class Part(Generic[Body]):
    """Something computed for all rows of some pieces, and the version they were seen in."""

    layout: Layout
    version: int
    body: Body

    @property
    def nbytes(self) -> int:
        """Its size in memory."""
        return self.layout.nbytes + int(getattr(self.body, "nbytes", 0))


@dataclass(frozen=True)
class Cover(Generic[Body]):
    """How parts make up a version. Known are the rows of all parts, one part after the other.

    `known_of` gives for each row its place among the known, `row_of` the way back, -1 where a known row is no more.
    Both are None when the known rows are the version's rows, in order.
    """

    bodies: tuple[Body, ...]
    starts: tuple[int, ...]
    """Where the rows of each part begin among the known."""
    known_of: Places | None = None
    row_of: Places | None = None

    @property
    def nbytes(self) -> int:
        """What the maps take in memory."""
        return sum(places.nbytes for places in (self.known_of, self.row_of) if places is not None)


@dataclass(frozen=True)
class Recipe(Generic[Body]):
    """How something is computed for some pieces of a column (None: all), kept, and read again."""

    kind: str
    kept_from: int
    """Parts of fewer rows are made faster than they are found on disk."""
    make: Callable[[Sequence[int] | None], Body]
    write: Callable[[Sequence[int] | None, disk_cache.Maker], None]
    """The same, written as it is made: it need not fit memory."""
    read: Callable[[Mapping[str, disk_cache.AnyArray], int], Body]
    """Reads and checks the arrays of an entry with a number of rows; raises `disk_cache.BadEntry`."""


def covered(data: TableData, name: str, recipe: Recipe[Body]) -> Cover[Body]:
    """Something computed for a column of a version, as far as possible from what earlier versions left."""
    cache = data.cache
    what = (recipe.kind, data.folder, str(data.field_id(name)))
    parts: list[Part[Body]] = list(cache.base(what) or _load(cache, what, recipe))
    chosen, new = _choose(parts, data)
    held = sum(part.layout.row_count for part in chosen)
    fresh = sum(map(data.rows_in, new))
    wasted = data.row_count - fresh < _USED_MIN * held
    latest = all(part.version <= data.version for part in parts)
    subject = f"{recipe.kind} of '{name}'"
    if not chosen or wasted or (len(parts) >= _PARTS_MAX and fresh > _FEW):
        say(f"{subject} built from {data.row_count:,} rows")
        made = _made(data, what, 0 if latest else None, None, recipe)
        if latest:
            cache.set_base(what, (made,))
        return _cover([made], data)
    if new:
        say(f"{subject} grown by {fresh:,} rows")
        many = fresh > _FEW and latest
        added = _made(data, what, len(parts) if many else None, new, recipe)
        cache.set_base(what, tuple([*parts, added] if many else parts))
        return _cover([*chosen, added], data)
    say(f"{subject} as kept")
    cache.set_base(what, tuple(parts))
    return _cover(chosen, data)


def _choose(parts: list[Part[Body]], data: TableData) -> tuple[list[Part[Body]], list[int]]:
    """The parts that hold pieces of a version, and the pieces none holds."""
    found = [_find(parts, data, at) for at in range(len(data.fragments))]
    used = {place[0] for place in found if place is not None}
    return [part for number, part in enumerate(parts) if number in used], [
        at for at, place in enumerate(found) if place is None
    ]


def _find(parts: list[Part[Body]], data: TableData, at: int) -> tuple[int, int, Numbers | None] | None:
    """The part that holds a piece, the place of the piece in it, and which of its rows are left (None: all)."""
    files, _, gone = data.fragments[at]
    for number, part in enumerate(parts):
        for place, (other, _, gone_then) in enumerate(part.layout.pieces):
            if other != files:
                continue
            if gone == gone_then:
                return number, place, None
            left, before = data.left(at), part.layout.left.get(place)
            if before is None:
                return number, place, left
            rows = np.searchsorted(before, left)
            if len(before) and np.array_equal(before[np.minimum(rows, len(before) - 1)], left):
                return number, place, rows
    return None


def _cover(parts: list[Part[Body]], data: TableData) -> Cover[Body]:
    bodies = tuple(part.body for part in parts)
    sizes = [part.layout.row_count for part in parts]
    starts = tuple(int(start) for start in np.cumsum([0, *sizes[:-1]]))
    if tuple(piece for part in parts for piece in part.layout.pieces) == data.fragments:
        return Cover(bodies, starts)
    begins = [np.cumsum([0, *map(part.layout.rows, range(len(part.layout.pieces)))]) for part in parts]
    blocks: list[Numbers] = []
    for at in range(len(data.fragments)):
        found = _find(parts, data, at)
        assert found is not None, "every piece is in a part by now"
        number, place, rows = found
        start = starts[number] + int(begins[number][place])
        blocks.append(start + (np.arange(parts[number].layout.rows(place)) if rows is None else rows))
    known_of = np.concatenate([*blocks, np.zeros(0, np.int64)]).astype(np.int32)
    row_of = np.full(sum(sizes), -1, np.int32)
    row_of[known_of] = np.arange(len(known_of), dtype=np.int32)
    return Cover(bodies, starts, known_of, row_of)


# -- on disk -----------------------------------------------------------------------------------------


def _made(
    data: TableData, what: disk_cache.What, number: int | None, pieces: Sequence[int] | None, recipe: Recipe[Body]
) -> Part[Body]:
    """A new part; a large one with a number is kept on disk and used from there."""
    layout = Layout.of(data, pieces)
    version = data.version
    folder = data.cache.keep_in
    if folder is not None and number is not None and layout.row_count >= recipe.kept_from:
        about: dict[str, Any] = {"version": version}
        arrays: dict[str, Any] = {}
        layout.write("rows", about, arrays)
        try:
            with disk_cache.making(folder, (*what, str(number)), about) as maker:
                recipe.write(pieces, maker)
                for label, array in arrays.items():
                    maker.put(label, array)
        except OSError as error:
            # A read-only or full disk: the next process computes it again, and nothing else is lost.
            say(f"not kept: {error.strerror}")
        else:
            for later in range(number + 1, _PARTS_MAX + 1):
                disk_cache.forget(folder, (*what, str(later)))
            part = _load_part(data.cache, what, number, recipe)
            if part is not None and part.layout.pieces == layout.pieces:
                return part
    return Part(layout, version, recipe.make(pieces))


def _load(cache: DataCache, what: disk_cache.What, recipe: Recipe[Body]) -> list[Part[Body]]:
    parts: list[Part[Body]] = []
    while len(parts) < _PARTS_MAX and (part := _load_part(cache, what, len(parts), recipe)) is not None:
        parts.append(part)
    return parts


def _load_part(cache: DataCache, what: disk_cache.What, number: int, recipe: Recipe[Body]) -> Part[Body] | None:
    def read(kept: disk_cache.Kept) -> Part[Body]:
        layout = Layout.read(kept, "rows")
        return Part(layout, int(kept.about["version"]), recipe.read(kept.arrays, layout.row_count))

    return disk_cache.load(cache.folder, (*what, str(number)), read, discard=cache.keep_in is not None)
