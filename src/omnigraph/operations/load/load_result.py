"""The result of a load, and the part of it that the commit records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.display import html_of
from omnigraph.errors import RecordError
from omnigraph.operations.load.load_request import LoadRequest, Mode
from omnigraph.table_key import TableKey
from omnigraph.text_table import brief_repr
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.write.idempotency import Earlier
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import Written


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
    """The original record (`operations.load.reject_records`)."""
    column: str | None = None
    """The column of a table file that contains the property; None if there is none."""

    @classmethod
    def of(cls, error: RecordError) -> Reject:
        """The reject of an error."""
        e = error
        return cls(e.source, e.line, e.type_name, e.property_name, e.rule, e.reason, e.record, e.column)

    def to_json(self) -> dict[str, Any]:
        """The JSON form, as written to files of rejects."""
        return {
            "source": self.source,
            "line": self.line,
            "type": self.type_name,
            "property": self.property,
            "column": self.column,
            "rule": self.rule,
            "reason": self.reason,
            "record": self.record,
        }


@dataclass(frozen=True)
class LoadResult:
    """The result of a load. Counts are numbers of input records."""

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
    """True if an earlier load had the same job id. The result is that of the earlier load, and nothing was loaded."""

    def __repr__(self) -> str:
        return brief_repr(self, ("rejected",))

    def _repr_html_(self) -> str:
        return html_of(self)

    def to_json(self) -> dict[str, Any]:
        """The JSON form."""
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
    """Record the counts of a load in its commit. A load without records commits only if a table changes."""
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


def load_options(request: LoadRequest, *, created: bool) -> WriteOptions:
    """The options of the write of a load. Its job id records whether the load created the branch."""
    return replace(request.keyed_options, result={"branch_created": True} if created else {})


def finished(made: LoadResult | None, written: Written, request: LoadRequest, *, created: bool) -> LoadResult:
    """The final result of a load; if its job id was used before, the result of that load."""
    commit = written.commit
    if written.earlier is not None:
        return repeated_result(written.earlier, request)
    assert made is not None, "a published load was prepared"
    if commit is None:
        made = replace(made, notes=(*made.notes, "no record was loaded; nothing was committed"))
    commit_id = commit.id if commit is not None else None
    return replace(made, commit_id=commit_id, base_branch=request.from_branch, branch_created=created)


def repeated_result(earlier: Earlier, request: LoadRequest) -> LoadResult:
    """The result of an earlier load with the same job id."""
    assert earlier.commit is not None, "a recorded load made a commit"
    created = bool(earlier.result.get("branch_created"))
    return replace(
        _recorded_result(earlier.commit, request.mode), base_branch=request.from_branch, branch_created=created
    )


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
    """Notes on tables with records that a second load would add again."""
    names = {key for key, rows in loaded if rows}
    notes: list[str] = []
    for key in sorted(names.intersection(again)):
        remedy = "declare @unique(src, dst)" if TableKey.parse(key).kind == "edge" else "declare a @key"
        notes.append(
            f"{key}: records without an id were added, and a second load adds them again; give ids or {remedy}"
        )
    return tuple(notes)


def merge_notes(existing: Mapping[str, Sequence[str]], counts: Mapping[str, int]) -> tuple[str, ...]:
    """Notes of a trial of a merge on the existing nodes that it changes, by table: their number, and three of them."""
    notes: list[str] = []
    for key, ids in sorted(existing.items()):
        rows = counts[key]
        if rows:
            verbs = ("row has", "changes") if rows == 1 else ("rows have", "change")
            names = ", ".join(f"'{id_}'" for id_ in sorted(ids)[:3])
            more = f" and {rows - 3:,} more" if rows > 3 else ""
            notes.append(f"{key}: {rows:,} existing {verbs[0]} the key of a record and {verbs[1]}: {names}{more}")
    return tuple(notes)
