"""The preview of a merge or a revert: its outcome, the changes of each table, and all conflicts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.versioning.compare.rows import ToJson, to_plain
from omnigraph.versioning.compare.three_way import ConflictDetail

MergeOutcome = Literal["already_up_to_date", "fast_forward", "merged"]


@dataclass(frozen=True, slots=True)
class PreviewTable:
    """The planned changes of one table; an adopted table is taken from the source as a whole."""

    inserted: int
    updated: int
    deleted: int
    adopted: bool

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "inserted": self.inserted,
            "updated": self.updated,
            "deleted": self.deleted,
            "adopted": self.adopted,
        }


@dataclass(frozen=True)
class SettledRow:
    """A row whose conflict `resolve` settles, as the merge leaves it; None is a deleted row."""

    table_key: str
    row_id: str
    row: dict[str, Any] | None

    @property
    def id(self) -> str:
        """The id of the conflict."""
        return f"{self.table_key}:{self.row_id}"

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form; `value` converts the row."""
        return {"id": self.id, "table_key": self.table_key, "row_id": self.row_id, "row": value(self.row)}


@dataclass(frozen=True)
class MergePreview:
    """The plan of a merge, without its rows; nothing was written."""

    outcome: MergeOutcome
    source_commit: str
    tables: Mapping[str, PreviewTable] = field(default_factory=dict)
    """The changed tables by their keys in the target after the merge."""
    dropped: tuple[str, ...] = ()
    """Tables that the merge drops."""
    renamed: Mapping[str, str] = field(default_factory=dict)
    """Tables that the merge renames: old key → new key."""
    schema_changes: bool = False
    """True if the schema of the target changes."""
    schema_steps: tuple[str, ...] = ()
    """The changes of the target's schema, one line each."""
    query_changes: int = field(default=0, kw_only=True)
    """The number of stored queries that the merge stores or deletes."""
    broken_rules: tuple[str, ...] = field(default=(), kw_only=True)
    """Problems that the rules for rows of the policy would have with the merged schema."""
    conflicts: list[ConflictDetail] = field(default_factory=list)
    """The conflicts that the caller may see."""
    hidden_conflicts: int = 0
    """The number of conflicts that rules for rows hide from the caller."""
    hidden_changes: bool = False
    """True if rows change of which the caller may see nothing, or no changed value."""
    settled: tuple[SettledRow, ...] = ()
    """The first rows whose conflicts `resolve` settles; none under rules for rows."""

    def __repr__(self) -> str:
        counts = {
            name: sum(getattr(table, name) for table in self.tables.values())
            for name in ("inserted", "updated", "deleted")
        }
        for count, what in (
            (len(self.schema_steps), "schema step"),
            (self.query_changes, "query change"),
            (len(self.broken_rules), "broken rule"),
            (len(self.conflicts), "conflict"),
        ):
            counts[what if count == 1 else f"{what}s"] = count
        if self.hidden_conflicts:
            counts[f"{'conflict' if self.hidden_conflicts == 1 else 'conflicts'} hidden from you"] = (
                self.hidden_conflicts
            )
        listed = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
        return f"<MergePreview {self.outcome}: {listed or 'no changes'}>"

    def to_json(self, value: ToJson = to_plain) -> dict[str, Any]:
        """Return the JSON form that all interfaces show; `value` converts rows."""
        # Only under rules for rows.
        hidden = {"hidden_conflicts": self.hidden_conflicts, "hidden_changes": self.hidden_changes}
        return {
            "outcome": self.outcome,
            "tables": {key: table.to_json() for key, table in self.tables.items()},
            "dropped_tables": list(self.dropped),
            "schema_changes": self.schema_changes,
            "schema_steps": list(self.schema_steps),
            **({"query_changes": self.query_changes} if self.query_changes else {}),
            **({"broken_rules": list(self.broken_rules)} if self.broken_rules else {}),
            "conflicts": [conflict.to_json(value) for conflict in self.conflicts],
            **{name: found for name, found in hidden.items() if found},
            **({"settled": [row.to_json(value) for row in self.settled]} if self.settled else {}),
        }
