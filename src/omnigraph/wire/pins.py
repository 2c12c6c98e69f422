"""Documents of pinned table versions, for clients that make the objects of an embedded graph."""

from __future__ import annotations

from omnigraph.wire.document import Document


class EmbeddingSpaceDocument(Document):
    """The origin of the vectors of a column."""

    provider: str
    model: str
    dimensions: int


class PinDocument(Document):
    """A visible table version; `embeddings` has pairs of a column and its embedding space."""

    table_id: int
    incarnation: int
    key: str
    table_version: int
    lance_version: int
    row_count: int
    transaction: str
    embeddings: list[tuple[str, EmbeddingSpaceDocument]]
