"""Documents of single nodes and edges."""

from __future__ import annotations

from typing import Any

from omnigraph.wire.document import Document


class EntityDocument(Document):
    """One node or edge; `data` maps its properties to JSON values."""

    type: str
    id: str
    data: dict[str, Any]
    graph_commit_id: str
