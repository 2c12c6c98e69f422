"""Integrity rules of valid time: a period is not empty, and a key or unique tuple holds once at every instant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.write.delta import Delta, IntegrityRule, RuleCheck, Violation
from omnigraph.engine.write.key_tuples import column_type, selective_column, tuples_of, wanted_values
from omnigraph.scalar_types.columns import as_numbers
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.types import PropertyType
from omnigraph.values import spell_key, write_json

_OPEN = "…"
_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
Int64s = np.ndarray[tuple[int], np.dtype[np.int64]]


def period_bounds(start: pa.Array | pa.ChunkedArray, end: pa.Array | pa.ChunkedArray) -> tuple[Int64s, Int64s]:
    """Return the starts and ends of periods as numbers; an open side is the least or the greatest number."""
    return _numbers(start, _LEAST), _numbers(end, _MOST)


def _numbers(column: pa.Array | pa.ChunkedArray, absent: int) -> Int64s:
    values: Int64s = pc.fill_null(as_numbers(column).cast(pa.int64()), absent).to_numpy(zero_copy_only=False)
    return values


def empty_periods(type_: NodeType | EdgeType, rows: pa.Table) -> Iterator[Violation]:
    """Yield the rows whose start is not before their end."""
    valid = type_.valid
    assert valid is not None
    start, end = rows[valid.start], rows[valid.end]
    for position in pc.indices_nonzero(pc.fill_null(pc.greater_equal(start, end), False)).to_pylist():
        period = _spell(type_, start[position], end[position])
        message = f"@valid violation on {type_.name}: {period} is empty: '{valid.start}' is not before '{valid.end}'"
        id_ = rows["id"][position].as_py()
        yield Violation("valid", type_.table_key, id_, message, valid.end, position=position)


def overlap_rule(type_: NodeType | EdgeType, columns: tuple[str, ...], word: str) -> IntegrityRule:
    """The rows of one tuple have periods that do not overlap, within the write and with the rows that remain."""
    valid = type_.valid
    assert valid is not None
    read = list(dict.fromkeys(["id", *columns, valid.start, valid.end]))

    def check(delta: Delta) -> Iterator[Violation]:
        table = delta.tables.get(type_.table_key)
        if table is None or not table.rows.num_rows:
            return
        written = table.rows
        first = selective_column(type_, columns)
        stored = None
        if not table.replaces:
            stored = delta.surviving(type_.table_key, read, first, wanted_values(written[first]))
        for position, other, period, others in _overlaps(type_, columns, written, stored):
            found = _violation(type_, columns, word, written.slice(position, 1), position, other, (period, others))
            yield found if delta.guard is None else _concealed(type_, columns, word, found, delta)

    key = type_.table_key
    by: dict[str, tuple[str, ...]] = {key: columns}
    return IntegrityRule(key, ((RuleCheck(check, key, by, frozenset({key})),),))


def _overlaps(
    type_: NodeType | EdgeType, columns: tuple[str, ...], written: pa.Table, stored: pa.Table | None
) -> Iterator[tuple[int, str, str, str]]:
    """Yield the position of a written row, the id of a row that it overlaps, and both periods; each row once."""
    valid = type_.valid
    assert valid is not None
    new = tuples_of(written, columns)
    parts = [(new, written)]
    if stored is not None and stored.num_rows:
        parts.append((tuples_of(stored, columns), stored))
    keys = pa.concat_arrays([one_array(tuples["key"]) for tuples, _ in parts])
    if not len(keys):
        return
    places = [one_array(tuples["position"]) for tuples, _ in parts]
    columns_of = [
        [one_array(rows[name]).take(at) for (_, rows), at in zip(parts, places, strict=True)]
        for name in (valid.start, valid.end)
    ]
    starts, ends = (pa.concat_arrays(some) for some in columns_of)
    low, high = period_bounds(starts, ends)
    codes = keys.dictionary_encode().indices.to_numpy()
    order = np.lexsort((np.arange(len(codes)), low, codes))
    found: dict[int, tuple[int, int]] = {}
    count = new.num_rows
    for earlier, later in _meeting(codes[order], low[order], high[order]):
        one, two = int(order[earlier]), int(order[later])
        # A row that is written is reported; of two, the later one of the write.
        row, other = (one, two) if two >= count or (one < count and one > two) else (two, one)
        if row < count:
            found.setdefault(row, (row, other))
    ids = pa.concat_arrays([one_array(tuples["id"]) for tuples, _ in parts])
    for row, other in sorted(found.values()):
        spelled = (_spell(type_, starts[at], ends[at]) for at in (row, other))
        yield places[0][row].as_py(), ids[other].as_py(), *spelled


def _meeting(codes: Any, low: Int64s, high: Int64s) -> Iterator[tuple[int, int]]:
    """Yield pairs of overlapping rows, ordered by code and start: each row with the one before it that ends last."""
    if len(codes) < 2:
        return
    same = codes[1:] == codes[:-1]
    # Most writes have no overlap; then neighbours do not meet either.
    if not (same & (low[1:] < high[:-1])).any():
        return
    last = 0
    for at in range(1, len(codes)):
        if codes[at] != codes[last]:
            last = at
            continue
        if low[at] < high[last]:
            yield last, at
        if high[at] > high[last]:
            last = at


def _violation(
    type_: NodeType | EdgeType,
    columns: tuple[str, ...],
    word: str,
    row: pa.Table,
    position: int,
    other: str,
    periods: tuple[str, str],
) -> Violation:
    types = [column_type(type_, column) for column in columns]
    stored = [as_numbers(row[column][0]).as_py() for column in columns]
    values = [spell_key(value, kind) for value, kind in zip(stored, types, strict=True)]
    where = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    value = values[0] if len(values) == 1 else f"({', '.join(values)})"
    message = (
        f"@{word} violation on {type_.name}.{where}: value '{value[:120]}' holds twice: "
        f"{periods[0]} overlaps {periods[1]} of '{other}'"
    )
    return Violation("unique", type_.table_key, row["id"][0].as_py(), message, columns[0], other, position)


def _concealed(
    type_: NodeType | EdgeType, columns: tuple[str, ...], word: str, violation: Violation, delta: Delta
) -> Violation:
    """Return a violation without ids, values and periods if one of the rows or values is not visible."""
    assert delta.guard is not None
    assert violation.position is not None
    rows = delta.tables[type_.table_key].rows
    written = pc.is_in(pa.scalar(violation.other_id), value_set=one_array(rows["id"])).as_py()
    other = None if written else violation.other_id
    if not delta.guard.conceals(delta, type_, rows.slice(violation.position, 1), columns, other):
        return violation
    hidden = any(delta.guard.hides(type_, column) for column in columns)
    where = columns[0] if len(columns) == 1 else f"({', '.join(columns)})"
    message = f"@{word} violation on {type_.name}" + ("" if hidden else f".{where}")
    named = None if hidden else violation.property
    return Violation("unique", type_.table_key, violation.row_id, message, named, None, violation.position)


def _spell(type_: NodeType | EdgeType, start: pa.Scalar, end: pa.Scalar) -> str:
    """Return a period as a message shows it."""
    valid = type_.valid
    assert valid is not None
    kind = type_.properties[valid.start].type
    return f"[{_bound(start, kind)}, {_bound(end, kind)})"


def _bound(value: pa.Scalar, kind: PropertyType) -> str:
    stored = as_numbers(value).as_py()
    return _OPEN if stored is None else str(write_json(stored, kind))
