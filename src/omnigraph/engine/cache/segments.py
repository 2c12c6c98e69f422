"""Derived structures in segments, which later table versions reuse.

A commit adds rows in new fragments and marks replaced or removed rows as deleted; all other rows stay in their
fragments. A structure computed row by row (an inverted index, vector codes) is kept in segments, each built from some
fragments. A version uses the segments that contain its fragments, finds their rows through a row mapping, and computes
only the rows that no segment contains. Many new rows form a new segment, which absorbs segments that are not larger, so
that there are few; a few new rows are computed again by the next version. A bulk load and `optimize` build the segments
of large tables in advance (`keep_segments`). A bulk load on several workers divides the missing rows into a few
segments (`divide_missing`), which the workers build at the same time (`write_segment`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.build_turn import build_turn
from omnigraph.engine.cache.entry_writer import EntryWriter
from omnigraph.engine.cache.remote_cache import covered_rows
from omnigraph.engine.cache.row_mapping import FragmentLayout, RowPositions
from omnigraph.engine.cache.table_cache import DataCache, Mask, Numbers, TableData
from omnigraph.engine.exec.cancellation import add_note
from omnigraph.fast_dataclass import dataclass

Body = TypeVar("Body")


@dataclass(frozen=True)
class Segment(Generic[Body]):
    """A structure computed for all rows of some fragments, and the version it was computed at."""

    layout: FragmentLayout
    version: int
    body: Body

    @property
    def nbytes(self) -> int:
        """The size in memory."""
        return self.layout.nbytes + int(getattr(self.body, "nbytes", 0))


@dataclass(frozen=True)
class SegmentView(Generic[Body]):
    """The segments of a version. The stored rows are the rows of all segments, one segment after another.

    `stored_of` maps a row of the version to its stored row. `row_of` is the inverse, -1 for a stored row that was
    deleted. Both are None if the stored rows are the rows of the version, in order.
    """

    bodies: tuple[Body, ...]
    starts: tuple[int, ...]
    """The first stored row of each segment."""
    stored_of: RowPositions | None = None
    row_of: RowPositions | None = None

    @property
    def nbytes(self) -> int:
        """The size of the mappings in memory."""
        return sum(places.nbytes for places in (self.stored_of, self.row_of) if places is not None)


def without_rows(view: SegmentView[Body], seen: Mask) -> SegmentView[Body]:
    """Return the segments with the rows that are not in a mask as deleted ones. They keep their numbers."""
    stored_of = np.arange(len(seen), dtype=np.int32) if view.stored_of is None else view.stored_of
    row_of = np.arange(len(seen), dtype=np.int32) if view.row_of is None else view.row_of.copy()
    row_of[stored_of[~seen]] = -1
    return SegmentView(view.bodies, view.starts, stored_of, row_of)


@dataclass(frozen=True)
class SegmentBuilder(Generic[Body]):
    """The functions that compute, write and read a structure of some fragments of a column (None: all)."""

    kind: str
    kept_from: int
    """A segment of fewer rows is computed faster than it is read from disk."""
    make: Callable[[Sequence[int] | None], Body]
    write: Callable[[Sequence[int] | None, EntryWriter], None]
    """Computes and writes a segment in parts; it may be larger than memory."""
    read: Callable[[disk_cache.CacheEntry, int], Body]
    """Reads and checks an entry with a number of rows; raises `entry_checks.BadEntry`."""
    new_rows_min: int | None = None
    """More new rows than this form a segment of their own; None is the common bound."""
    ranged: tuple[str, ...] = ()
    """The arrays that `read` can take by range if the entry is on an object store."""


def segments_of(data: TableData, name: str, builder: SegmentBuilder[Body]) -> SegmentView[Body]:
    """Return a structure for a column of a version, computed from existing segments as far as possible."""
    return _view(list_segments(data, name, builder), data)


def list_segments(data: TableData, name: str, builder: SegmentBuilder[Body]) -> list[Segment[Body]]:
    """Return the segments that contain the rows of a version. Missing ones are computed."""
    cache = data.cache
    subject = _subject(data, name, builder)
    segments: list[Segment[Body]] = list(cache.base(subject) or load_segments(cache, subject, builder))
    segments = _fetched(segments, data, subject, builder)
    if cache.turn_folder is None or not _is_kept(_plan(segments, data, builder), data, builder):
        return _extended(data, name, builder, segments)
    with build_turn(cache.turn_folder) as shared:
        return _extended(data, name, builder, load_segments(cache, subject, builder) if shared else segments)


def keep_segments(data: TableData, name: str, builder: SegmentBuilder[Body]) -> int:
    """Build the segments of a large table that the disk cache lacks; return the number of rows that were computed.

    Few new rows are left to the queries. Raises `OSError` if the disk cache cannot be written.
    """
    cache = data.cache
    if cache.keep_in is None or data.row_count < builder.kept_from:
        return 0
    subject = _subject(data, name, builder)
    with build_turn(cache.turn_folder):
        segments = _fetched(load_segments(cache, subject, builder), data, subject, builder)
        plan = _plan(segments, data, builder)
        if plan.number is None or not plan.fragments:
            return 0
        _extended(data, name, builder, segments, must_keep=True)
    return _rows_of(plan, data)


@dataclass(frozen=True)
class SegmentPart:
    """Fragments of a version, by position, that form a segment, and the number of the segment in the disk cache."""

    number: int
    fragments: tuple[int, ...]


def divide_missing(data: TableData, name: str, builder: SegmentBuilder[Body], parts: int) -> list[SegmentPart]:
    """Divide the rows that no segment of the disk cache contains into segments for `parts` workers.

    Returns an empty list if there are too few rows for more than one segment. Half of the numbers are left to later
    commits.
    """
    if data.row_count < builder.kept_from:
        return []
    subject = _subject(data, name, builder)
    known = _fetched(load_segments(data.cache, subject, builder), data, subject, builder)
    plan = _plan(known, data, builder)
    if plan.number is None:
        return []
    sizes = [data.rows_in(at) for at in plan.fragments]
    least = max(builder.kept_from, tuning.current.segment_part_rows_min)
    count = min(parts, tuning.current.segments_max // 2 - plan.number, sum(sizes) // least)
    if count < 2:
        return []
    # A fragment belongs to the part that contains its middle row.
    middles = np.cumsum(sizes) - np.array(sizes) / 2
    part_of = np.minimum((middles * count / sum(sizes)).astype(np.int64), count - 1)
    groups = [tuple(np.array(plan.fragments)[part_of == part].tolist()) for part in range(count)]
    return [SegmentPart(plan.number + at, group) for at, group in enumerate(filter(None, groups))]


def write_segment(data: TableData, name: str, builder: SegmentBuilder[Body], part: SegmentPart) -> None:
    """Compute one segment and write it to the disk cache. Raises `OSError` if it cannot be written."""
    assert data.cache.keep_in is not None
    _write_entry(data, data.cache.keep_in, _subject(data, name, builder), part.number, part.fragments, builder)


def use_written_segments(data: TableData, name: str, builder: SegmentBuilder[Body], last: int) -> None:
    """Use the segments that workers wrote, and remove those with a number above `last`, which they replace."""
    cache = data.cache
    assert cache.keep_in is not None
    subject = _subject(data, name, builder)
    for later in range(last + 1, tuning.current.segments_max + 1):
        disk_cache.remove(cache.keep_in, (*subject, str(later)))
    cache.set_base(subject, tuple(load_segments(cache, subject, builder)))


def _subject(data: TableData, name: str, builder: SegmentBuilder[Body]) -> disk_cache.Subject:
    return (builder.kind, data.folder, str(data.field_id(name)))


def _fetched(
    segments: list[Segment[Body]], data: TableData, subject: disk_cache.Subject, builder: SegmentBuilder[Body]
) -> list[Segment[Body]]:
    """Return the segments of the object store if they contain more rows than the local ones, else the local ones."""
    remote = data.cache.remote
    if remote is None or not _is_large(segments, data, builder):
        return segments
    rows_of = data.rows_by_file
    covered = covered_rows((segment.layout.fragments for segment in segments), rows_of)
    subjects = [(*subject, str(number)) for number in range(tuning.current.segments_max)]
    found = remote.fetch(
        subjects,
        lambda abouts: covered_rows((about["rows"]["pieces"] for about in abouts), rows_of) > covered,
        builder.ranged,
    )
    return load_segments(data.cache, subject, builder) if found else segments


def _is_large(segments: list[Segment[Body]], data: TableData, builder: SegmentBuilder[Body]) -> bool:
    """Return True if so many rows are in no segment that a new one is kept on disk."""
    return sum(map(data.rows_in, _choose(segments, data)[1])) >= builder.kept_from


@dataclass(frozen=True)
class _Plan:
    """The segment that is computed for a version."""

    kept: int
    """The number of leading segments that stay beside it."""
    fragments: tuple[int, ...]
    """The fragments that it is computed from."""
    number: int | None
    """Its number in the disk cache; None if it is not kept."""


def _plan(segments: list[Segment[Body]], data: TableData, builder: SegmentBuilder[Body]) -> _Plan:
    chosen, new = _choose(segments, data)
    held = sum(segment.layout.row_count for segment in chosen)
    fresh = sum(map(data.rows_in, new))
    latest = all(segment.version <= data.version for segment in segments)
    wasted = data.row_count - fresh < tuning.current.segment_live_share_min * held
    # Stored rows have numbers too, also those that were deleted.
    if not chosen or wasted or held + fresh > tuning.current.row_numbers_max:
        return _Plan(0, tuple(range(len(data.fragments))), 0 if latest else None)
    least = tuning.current.segment_rows_min if builder.new_rows_min is None else builder.new_rows_min
    if fresh <= least or not latest:
        return _Plan(len(segments), tuple(new), None)
    kept, size = len(segments), fresh
    while kept and segments[kept - 1].layout.row_count <= size:
        kept -= 1
        size += segments[kept].layout.row_count
    if kept >= tuning.current.segments_max:
        kept = 0
    missing = _choose(segments[:kept], data)[1]
    return _Plan(kept, tuple(missing), kept)


def _is_kept(plan: _Plan, data: TableData, builder: SegmentBuilder[Body]) -> bool:
    """Return True if the segment of a plan is kept on disk."""
    return plan.number is not None and _rows_of(plan, data) >= builder.kept_from


def _rows_of(plan: _Plan, data: TableData) -> int:
    """Return the number of rows that a plan computes."""
    return sum(map(data.rows_in, plan.fragments))


def _extended(
    data: TableData,
    name: str,
    builder: SegmentBuilder[Body],
    segments: list[Segment[Body]],
    *,
    must_keep: bool = False,
) -> list[Segment[Body]]:
    """Return the segments of a version: existing ones and, as far as they do not suffice, a new one."""
    cache = data.cache
    subject = _subject(data, name, builder)
    plan = _plan(segments, data, builder)
    title = f"{builder.kind} of '{name}'"
    if not plan.fragments and plan.kept:
        add_note(f"{title} reused")
        cache.set_base(subject, tuple(segments))
        return _choose(segments, data)[0]
    rows = _rows_of(plan, data)
    add_note(f"{title} extended by {rows:,} rows" if plan.kept else f"{title} built from {rows:,} rows")
    added = _build(data, subject, plan, builder, must_keep=must_keep)
    if plan.number is not None:
        cache.set_base(subject, (*segments[: plan.kept], added))
    elif plan.kept:
        cache.set_base(subject, tuple(segments))
    return [*_choose(segments[: plan.kept], data)[0], added]


def _choose(segments: list[Segment[Body]], data: TableData) -> tuple[list[Segment[Body]], list[int]]:
    """Return the segments that contain fragments of a version, and the fragments that no segment contains."""
    found = [find_fragment(segments, data, at) for at in range(len(data.fragments))]
    used = {place[0] for place in found if place is not None}
    return [segment for number, segment in enumerate(segments) if number in used], [
        at for at, place in enumerate(found) if place is None
    ]


def find_fragment(
    segments: Sequence[Segment[Body]], data: TableData, at: int
) -> tuple[int, int, Numbers | None] | None:
    """Return (segment number, position of the fragment in it, its live rows); None if no segment has it.

    The live rows are None if all rows are live.
    """
    files, _, gone = data.fragments[at]
    for number, segment in enumerate(segments):
        for place, (other, _, gone_then) in enumerate(segment.layout.fragments):
            if other != files:
                continue
            if gone == gone_then:
                return number, place, None
            left, before = data.live_offsets(at), segment.layout.live.get(place)
            if before is None:
                return number, place, left
            rows = np.searchsorted(before, left)
            if len(before) and np.array_equal(before[np.minimum(rows, len(before) - 1)], left):
                return number, place, rows
    return None


def _view(segments: list[Segment[Body]], data: TableData) -> SegmentView[Body]:
    bodies = tuple(segment.body for segment in segments)
    sizes = [segment.layout.row_count for segment in segments]
    starts = tuple(int(start) for start in np.cumsum([0, *sizes[:-1]]))
    if tuple(fragment for segment in segments for fragment in segment.layout.fragments) == data.fragments:
        return SegmentView(bodies, starts)
    begins = [np.cumsum([0, *map(segment.layout.rows, range(len(segment.layout.fragments)))]) for segment in segments]
    blocks: list[Numbers] = []
    for at in range(len(data.fragments)):
        found = find_fragment(segments, data, at)
        assert found is not None, "every fragment is in a segment"
        number, place, rows = found
        start = starts[number] + int(begins[number][place])
        blocks.append(start + (np.arange(segments[number].layout.rows(place)) if rows is None else rows))
    stored_of = np.concatenate([*blocks, np.zeros(0, np.int64)]).astype(np.int32)
    row_of = np.full(sum(sizes), -1, np.int32)
    row_of[stored_of] = np.arange(len(stored_of), dtype=np.int32)
    return SegmentView(bodies, starts, stored_of, row_of)


# -- on disk -----------------------------------------------------------------------------------------


def _build(
    data: TableData,
    subject: disk_cache.Subject,
    plan: _Plan,
    builder: SegmentBuilder[Body],
    *,
    must_keep: bool,
) -> Segment[Body]:
    """Compute a new segment. A large one with a number is written to the disk cache and mapped from there.

    With `must_keep`, an error of the disk is raised; otherwise the segment is computed in memory.
    """
    fragments = None if len(plan.fragments) == len(data.fragments) else plan.fragments
    layout = FragmentLayout.of(data, fragments)
    version, number = data.version, plan.number
    folder = data.cache.keep_in
    if folder is not None and number is not None and layout.row_count >= builder.kept_from:
        try:
            _write_entry(data, folder, subject, number, fragments, builder)
        except OSError as error:
            if must_keep:
                raise
            # The disk is read-only or full: the next process computes the segment again.
            add_note(f"not kept: {error.strerror}")
        else:
            for later in range(number + 1, tuning.current.segments_max + 1):
                disk_cache.remove(folder, (*subject, str(later)))
            segment = _load_segment(data.cache, subject, number, builder)
            if segment is not None and segment.layout.fragments == layout.fragments:
                return segment
    return Segment(layout, version, builder.make(fragments))


def _write_entry(
    data: TableData,
    folder: Path,
    subject: disk_cache.Subject,
    number: int,
    fragments: Sequence[int] | None,
    builder: SegmentBuilder[Body],
) -> None:
    about: dict[str, Any] = {"version": data.version}
    arrays: dict[str, Any] = {}
    FragmentLayout.of(data, fragments).write("rows", about, arrays)
    with disk_cache.writing_entry(folder, (*subject, str(number)), about) as writer:
        builder.write(fragments, writer)
        for label, array in arrays.items():
            writer.put(label, array)


def load_segments(cache: DataCache, subject: disk_cache.Subject, builder: SegmentBuilder[Body]) -> list[Segment[Body]]:
    """Return the segments of a subject on disk."""
    segments: list[Segment[Body]] = []
    for number in range(tuning.current.segments_max):
        segment = _load_segment(cache, subject, number, builder)
        if segment is None:
            break
        segments.append(segment)
    return segments


def _load_segment(
    cache: DataCache, subject: disk_cache.Subject, number: int, builder: SegmentBuilder[Body]
) -> Segment[Body] | None:
    def read(entry: disk_cache.CacheEntry) -> Segment[Body]:
        layout = FragmentLayout.read(entry, "rows")
        return Segment(layout, int(entry.about["version"]), builder.read(entry, layout.row_count))

    discard = cache.keep_in is not None
    return disk_cache.load(cache.folder, (*subject, str(number)), read, discard=discard, source=cache.remote)
