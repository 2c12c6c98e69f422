"""Documents of loads and embeddings."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, Protocol

from msgspec import UNSET, UnsetType

from omnigraph.table_key import TableKey
from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document

LoadMode = Literal["merge", "append", "overwrite"]

TYPE_RECORD = "OMNIGRAPH.type"
"""The record of an extended header of a tar archive with the type of the rows of a file."""


class LoadCounts(Protocol):
    """The result of a load, as far as its documents show it."""

    @property
    def tables(self) -> tuple[tuple[str, int], ...]:
        """Number of records by table."""

    @property
    def branch_created(self) -> bool:
        """True if the load created the branch."""

    @property
    def rejected_count(self) -> int:
        """Number of records that were set aside."""

    @property
    def repeated(self) -> bool:
        """True if an earlier load with the same job id already did the work."""

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for the user."""

    @property
    def embedded_rows(self) -> int:
        """Number of rows whose vectors were computed."""

    @property
    def pending_embeddings(self) -> int:
        """Number of rows without a vector."""


class LoadTarget(NamedTuple):
    """Graph, branch, mode and actor of a load."""

    uri: str
    branch: str
    mode: str
    actor: str | None


class LoadedTableDocument(Document):
    """The number of records that were loaded into one table."""

    table_key: str
    rows_loaded: int


class _LoadOutcome(Document, kw_only=True):
    """Members that follow those of the subclass."""

    actor_id: str | None
    commit: CommitDocument | None
    rejected: int
    repeated: bool
    notes: list[str]
    embedded_rows: int | UnsetType = UNSET
    pending_embeddings: int | UnsetType = UNSET


class LoadDocument(_LoadOutcome):
    """The result of a load; the counts of embeddings are present if the schema declares embeddings."""

    uri: str
    branch: str
    mode: str
    nodes_loaded: int
    node_types_loaded: int
    edges_loaded: int
    edge_types_loaded: int


class IngestDocument(_LoadOutcome):
    """The result of a load that creates a missing branch."""

    uri: str
    branch: str
    base_branch: str
    branch_created: bool
    mode: str
    tables: list[LoadedTableDocument]


class RejectedRecordDocument(Document, kw_only=True):
    """A record that was set aside, and the rule that it violates."""

    source: str | None
    line: int | None
    type: str | None
    property: str | None
    column: str | None = None
    rule: str
    reason: str
    record: Any


class LoadAnswerDocument(Document, kw_only=True):
    """The answer of a server to a load; `rejected` lists the records that were set aside."""

    uri: str
    branch: str
    base_branch: str | None
    branch_created: bool
    mode: str
    tables: list[LoadedTableDocument]
    actor_id: str | None
    commit: CommitDocument | None
    rejected: list[RejectedRecordDocument]
    repeated: bool
    notes: list[str]
    embedded_rows: int | UnsetType = UNSET
    pending_embeddings: int | UnsetType = UNSET
    rejected_count: int | UnsetType = UNSET
    """The number of records that were set aside; `rejected` lists the first ones."""


class EmbedDocument(Document):
    """The result of computing the missing vectors of a graph; `types` counts rows by type."""

    uri: str
    branch: str
    embedded_rows: int
    types: dict[str, int]
    commit_id: str | None
    actor_id: str | None
    commit: CommitDocument | UnsetType | None = UNSET


def load_document(
    target: LoadTarget, result: LoadCounts, commit: CommitDocument | None, *, embeds: bool
) -> LoadDocument:
    """Return the document of a load; `embeds` if the schema declares embeddings."""
    nodes = [rows for key, rows in result.tables if TableKey.parse(key).kind == "node"]
    edges = [rows for key, rows in result.tables if TableKey.parse(key).kind == "edge"]
    return LoadDocument(
        target.uri,
        target.branch,
        target.mode,
        nodes_loaded=sum(nodes),
        node_types_loaded=len(nodes),
        edges_loaded=sum(edges),
        edge_types_loaded=len(edges),
        actor_id=target.actor,
        commit=commit,
        rejected=result.rejected_count,
        repeated=result.repeated,
        notes=list(result.notes),
        embedded_rows=result.embedded_rows if embeds else UNSET,
        pending_embeddings=result.pending_embeddings if embeds else UNSET,
    )


def ingest_document(
    target: LoadTarget, base_branch: str, result: LoadCounts, commit: CommitDocument | None, *, embeds: bool
) -> IngestDocument:
    """Return the document of a load that creates a missing branch from `base_branch`."""
    return IngestDocument(
        target.uri,
        target.branch,
        base_branch,
        result.branch_created,
        target.mode,
        [LoadedTableDocument(str(key), rows) for key, rows in sorted(result.tables)],
        actor_id=target.actor,
        commit=commit,
        rejected=result.rejected_count,
        repeated=result.repeated,
        notes=list(result.notes),
        embedded_rows=result.embedded_rows if embeds else UNSET,
        pending_embeddings=result.pending_embeddings if embeds else UNSET,
    )


def load_answer(
    target: LoadTarget,
    base_branch: str | None,
    result: LoadCounts,
    commit: CommitDocument | None,
    rejected: list[RejectedRecordDocument],
    *,
    embeds: bool,
) -> LoadAnswerDocument:
    """Return the answer of a server to a load; `base_branch` is None if the load could not create the branch."""
    return LoadAnswerDocument(
        uri=target.uri,
        branch=target.branch,
        base_branch=base_branch,
        branch_created=result.branch_created,
        mode=target.mode,
        tables=[LoadedTableDocument(str(key), rows) for key, rows in sorted(result.tables)],
        actor_id=target.actor,
        commit=commit,
        rejected=rejected,
        repeated=result.repeated,
        notes=list(result.notes),
        embedded_rows=result.embedded_rows if embeds else UNSET,
        pending_embeddings=result.pending_embeddings if embeds else UNSET,
        rejected_count=result.rejected_count,
    )
