"""The result of a load: what it reports, and what its commit keeps of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.errors import RecordError
from omnigraph.operations.load_request import LoadRequest, Mode
from omnigraph.table_key import TableKey
from omnigraph.text_table import brief_repr
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.write.transaction import Transaction


@dataclass(frozen=True)
class Reject:
    """A record that was set aside."""

    source: str | None
    line: int | None
    type_name: str | None
    property: str | None
    rule: str
    reason: str
    record: Any = None
    """The record as it was given (`operations.originals`)."""

    @classmethod
    def of(cls, error: RecordError) -> Reject:
        """What is wrong with a record, and the record."""
        e = error
        return cls(e.source, e.line, e.type_name, e.property_name, e.rule, e.reason, e.record)

    def to_json(self) -> dict[str, Any]:
        """The form rejects are written in."""
        return {
            "source": self.source,
            "line": self.line,
            "type": self.type_name,
            "property": self.property,
            "rule": self.rule,
            "reason": self.reason,
            "record": self.record,
        }


@dataclass(frozen=True)
class LoadResult:
    """What a load did; counts are records of the input."""

    branch: str
    mode: Mode
    commit_id: str | None
    tables: tuple[tuple[str, int], ...]
    rejected: tuple[Reject, ...] = ()
    embedded_rows: int = 0
    pending_embeddings: int = 0
    base_branch: str | None = None
    branch_created: bool = False
    rejected_count: int = 0
    notes: tuple[str, ...] = ()
    repeated: bool = False
    """Whether a load with the same job id was made before; then this is its result, and nothing was loaded now."""

    def __repr__(self) -> str:
        return brief_repr(self, ("rejected",))

    def to_json(self) -> dict[str, Any]:
        """The form surfaces show."""
        return {
            "branch": self.branch,
            "base_branch": self.base_branch,
            "branch_created": self.branch_created,
            "mode": self.mode,
            "tables": [{"table_key": key, "rows_loaded": rows} for key, rows in self.tables],
            "commit_id": self.commit_id,
            "rejected": self.rejected_count,
            "embedded_rows": self.embedded_rows,
            "pending_embeddings": self.pending_embeddings,
            "notes": list(self.notes),
            "repeated": self.repeated,
        }


def record_result(transaction: Transaction, result: LoadResult, **more: Any) -> None:
    """Keep in the commit what was loaded; without a record a load commits only if a table changes."""
    counts = {
        "rejected": result.rejected_count,
        "embedded_rows": result.embedded_rows,
        "pending_embeddings": result.pending_embeddings,
    }
    metadata = {
        **transaction.options.metadata,
        "rows": dict(result.tables),
        **{name: count for name, count in counts.items() if count},
        **more,
    }
    has_records = any(rows for _, rows in result.tables)
    transaction.options = replace(transaction.options, metadata=metadata, always_commit=has_records)


def finished(made: LoadResult | None, commit: Commit | None, request: LoadRequest, *, created: bool) -> LoadResult:
    """The result of a load; `made` is None if its job id was used before, and then that load's result is returned."""
    if made is None:
        assert commit is not None
        made = _recorded_result(commit, request.mode)
    elif commit is None:
        made = replace(made, notes=(*made.notes, "no record was loaded; nothing was committed"))
    commit_id = commit.id if commit is not None else None
    return replace(made, commit_id=commit_id, base_branch=request.from_branch, branch_created=created)


def _recorded_result(commit: Commit, mode: Mode) -> LoadResult:
    data = commit.metadata
    return LoadResult(
        commit.branch,
        mode,
        commit.id,
        tuple(sorted(data.get("rows", {}).items())),
        embedded_rows=data.get("embedded_rows", 0),
        pending_embeddings=data.get("pending_embeddings", 0),
        rejected_count=data.get("rejected", 0),
        notes=(f"a load with this job id made commit {commit.id} before; nothing was loaded now",),
        repeated=True,
    )


def load_notes(loaded: Iterable[tuple[str, int]], again: Iterable[str]) -> tuple[str, ...]:
    """What the summary says about tables with records that a second load adds again."""
    names = {key for key, rows in loaded if rows}
    notes: list[str] = []
    for key in sorted(names.intersection(again)):
        remedy = "declare @unique(src, dst)" if TableKey.parse(key).kind == "edge" else "declare a @key"
        notes.append(
            f"{key}: records without an id were added, and a second load adds them again; give ids or {remedy}"
        )
    return tuple(notes)
