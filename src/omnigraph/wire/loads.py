"""Documents of loads and embeddings."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import Document


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


class EmbedDocument(Document):
    """The result of computing the missing vectors of a graph; `types` counts rows by type."""

    uri: str
    branch: str
    embedded_rows: int
    types: dict[str, int]
    commit_id: str | None
    actor_id: str | None
