"""Two snapshots → what changed between them, row by row.

Tables pinned at the same version are skipped. Otherwise only rows stored in different places are read, and
compared by value, so a rewrite of equal values is no change. Tables are matched by identity: a renamed type is
the same table. A column one side does not have counts as null there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa

from omnigraph.storage.tables import Table
from omnigraph.versioning.rows import to_dicts
from omnigraph.versioning.snapshot import PinnedTable, Snapshot

Op = Literal["insert", "update", "delete"]


@dataclass(frozen=True)
class RowChange:
    """One row before and after; the image a side does not have is None."""

    table_key: str
    id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None

    @property
    def op(self) -> Op:
        """What happened to the row."""
        if self.before is None:
            return "insert"
        return "delete" if self.after is None else "update"

    @property
    def properties(self) -> list[str]:
        """The columns whose values differ."""
        names = dict.fromkeys([*(self.before or {}), *(self.after or {})])
        return [name for name in names if (self.before or {}).get(name) != (self.after or {}).get(name)]

    def to_json(self) -> dict[str, Any]:
        """The form surfaces show."""
        kind, _, type_name = self.table_key.partition(":")
        data: dict[str, Any] = {
            "table_key": self.table_key,
            "kind": kind,
            "type_name": type_name,
            "id": self.id,
            "op": self.op,
            "before": self.before,
            "after": self.after,
        }
        if kind == "edge":
            row = self.after or self.before or {}
            data["endpoints"] = {"src": row.get("src"), "dst": row.get("dst")}
        return data


def table_pairs(a: Snapshot, b: Snapshot) -> Iterator[tuple[str, PinnedTable | None, PinnedTable | None]]:
    """(key, the table in `a`, the table in `b`), matched by identity, by key; the key is `b`'s where it has one."""
    ours = {(t.pin.table_id, t.pin.incarnation): (key, t) for key, t in a.tables.items()}
    theirs = {(t.pin.table_id, t.pin.incarnation): (key, t) for key, t in b.tables.items()}
    pairs: list[tuple[str, PinnedTable | None, PinnedTable | None]] = []
    for identity in {**ours, **theirs}:
        x, y = ours.get(identity), theirs.get(identity)
        key = y[0] if y is not None else x[0] if x is not None else ""
        pairs.append((key, x[1] if x else None, y[1] if y else None))
    yield from sorted(pairs, key=lambda pair: pair[0])


def diff_snapshots(before: Snapshot, after: Snapshot, keys: Sequence[str] | None = None) -> Iterator[RowChange]:
    """Every row that differs, tables by key, rows by id."""
    for key, a, b in table_pairs(before, after):
        if keys is None or key in keys:
            yield from diff_tables(key, before.open(a) if a else None, after.open(b) if b else None)


def diff_tables(key: str, before: Table | None, after: Table | None) -> Iterator[RowChange]:
    """Every row that differs between two versions of a table; a missing version has no rows."""
    if before is not None and after is not None:
        if before.version == after.version:
            return
        gone, come = before.difference(after)
    else:
        gone = before.read() if before is not None else pa.table({"id": pa.array([], pa.utf8())})
        come = after.read() if after is not None else pa.table({"id": pa.array([], pa.utf8())})
    old = {row["id"]: row for row in to_dicts(gone)}
    new = {row["id"]: row for row in to_dicts(come)}
    for id_ in sorted({**old, **new}):
        x, y = old.get(id_), new.get(id_)
        if not same_row(x, y):
            yield RowChange(key, id_, x, y)


def same_row(a: dict[str, Any] | None, b: dict[str, Any] | None) -> bool:
    """Whether two rows are equal, value by value; a column only one has must be null there."""
    if a is None or b is None:
        return a is b
    return a == b or all(a.get(name) == b.get(name) for name in {**a, **b})
