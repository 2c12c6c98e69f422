"""Decides a three-way merge, row by row; writes nothing.

    B = base, T = target ("ours"), S = source ("theirs"):
    S = B → T;   T = B → S;   S = T → T;   otherwise a conflict.

Whole rows are compared. A conflict can be resolved by taking a side, or, where both sides only updated the
row, column by column: then only a column changed on both sides to different values is a conflict.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.versioning.diff import RowChange
from omnigraph.versioning.equality import same_row

Resolution = Literal["ours", "theirs", "columns"]
ConflictKind = Literal[
    "divergent_insert",
    "divergent_update",
    "delete_vs_update",
    "orphan_edge",
    "unique_violation",
    "cardinality_violation",
    "value_constraint_violation",
    "schema_conflict",
]
Row = dict[str, Any]


@dataclass(frozen=True)
class Conflict:
    """Something both branches changed, or a rule the merged graph would break."""

    table_key: str
    row_id: str | None
    kind: ConflictKind
    message: str
    base: Row | None = None
    ours: Row | None = None
    theirs: Row | None = None

    def to_json(self) -> dict[str, Any]:
        """The form surfaces show."""
        return {"table_key": self.table_key, "row_id": self.row_id, "kind": self.kind, "message": self.message}


@dataclass
class TableMerge:
    """What to do to one table of the target."""

    put: list[Row] = field(default_factory=list)
    delete: list[str] = field(default_factory=list)
    conflicts: list[Conflict] = field(default_factory=list)


OtherBases = Callable[[str], list[Row | None]]
"""Id → the row in the other lowest common ancestors, when there are several."""


def decide_table(
    key: str,
    ours: Mapping[str, RowChange],
    theirs: Mapping[str, RowChange],
    resolution: Resolution | None = None,
    other_bases: OtherBases | None = None,
) -> TableMerge:
    """Merge the changes of both sides since the base; the result is relative to ours."""
    merge = TableMerge()
    for id_, change in theirs.items():
        mine = ours.get(id_)
        if mine is None:
            _take(merge, id_, change.after)
            continue
        t, s = mine.after, change.after
        if same_row(t, s):
            continue
        bases = other_bases(id_) if other_bases is not None else []
        if any(same_row(s, base) for base in bases):
            continue
        if any(same_row(t, base) for base in bases):
            _take(merge, id_, s)
            continue
        _settle(merge, key, id_, change.before, t, s, resolution)
    return merge


def _take(merge: TableMerge, id_: str, row: Row | None) -> None:
    if row is None:
        merge.delete.append(id_)
    else:
        merge.put.append(row)


def _settle(
    merge: TableMerge, key: str, id_: str, base: Row | None, t: Row | None, s: Row | None, resolution: Resolution | None
) -> None:
    if resolution == "ours":
        return
    if resolution == "theirs":
        _take(merge, id_, s)
        return
    if resolution == "columns" and base is not None and t is not None and s is not None:
        combined, clashing = _by_column(base, t, s)
        if not clashing:
            merge.put.append(combined)
            return
        message = f"both sides changed {_listed(clashing, t, s)}"
        merge.conflicts.append(Conflict(key, id_, "divergent_update", message, base, t, s))
        return
    if base is None:
        kind: ConflictKind = "divergent_insert"
        message = f"both sides inserted it, with different {_listed(_differing(t, s), t, s)}"
    elif t is None or s is None:
        kind = "delete_vs_update"
        who, other = ("the target", "the source") if t is None else ("the source", "the target")
        changed = _differing(base, s if t is None else t)
        message = f"{who} deleted it, {other} changed {', '.join(changed)}"
    else:
        kind = "divergent_update"
        message = f"the sides changed it differently: {_listed(_differing(t, s), t, s)}"
    merge.conflicts.append(Conflict(key, id_, kind, message, base, t, s))


def _by_column(base: Row, t: Row, s: Row) -> tuple[Row, list[str]]:
    """The row with each side's own changes, and the columns both changed to different values."""
    combined: Row = {}
    clashing: list[str] = []
    for name in {**base, **t, **s}:
        b, x, y = base.get(name), t.get(name), s.get(name)
        combined[name] = y if x == b else x
        if x != b and y != b and x != y:
            clashing.append(name)
    return combined, clashing


def _differing(a: Row | None, b: Row | None) -> list[str]:
    a, b = a or {}, b or {}
    return [name for name in {**a, **b} if a.get(name) != b.get(name)]


def _listed(names: list[str], t: Row | None, s: Row | None) -> str:
    shown = [f"{name} ({_short((t or {}).get(name))} here, {_short((s or {}).get(name))} there)" for name in names[:3]]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
