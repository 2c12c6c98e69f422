"""Documents of single nodes and edges."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, UnsetType

from omnigraph.wire.changes import PropertyBlameDocument
from omnigraph.wire.document import Document
from omnigraph.wire.exploration import DegreeDocument


class EntityDocument(Document):
    """One node or edge; `data` maps its properties to JSON values."""

    type: str
    id: str
    data: dict[str, Any]
    graph_commit_id: str
    blame: list[PropertyBlameDocument] | UnsetType = UNSET
    """If requested by `include`."""
    degrees: list[DegreeDocument] | UnsetType = UNSET
    """If requested by `include`; none for an edge."""
