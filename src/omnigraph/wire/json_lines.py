"""First and last lines of a stream of JSON lines. A stream without its last line is not complete."""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, field

from omnigraph.wire.document import Document


class StreamMetadataDocument(Document, kw_only=True):
    """The first line of a list, such as commits or a diff; a query has `QueryMetadataDocument`."""

    kind: Literal["metadata"] = "metadata"
    content: Literal["commits", "diff", "changes", "table", "audit"]
    branch: str | UnsetType = UNSET
    type_name: str | UnsetType = UNSET
    from_: str | UnsetType | None = field(name="from", default=UNSET)
    to: str | UnsetType | None = UNSET
    schema_steps: list[str] | UnsetType = UNSET
    graph_commit_id: str | UnsetType | None = UNSET
    from_commit_id: str | UnsetType = UNSET
    to_commit_id: str | UnsetType = UNSET


class EndDocument(Document, kw_only=True):
    """The last line; `rows` is the number of lines between the first and the last."""

    kind: Literal["end"] = "end"
    rows: int
    graph_commit_id: str | None
    next: str | UnsetType = UNSET
    next_page_token: str | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    caught_up: bool | UnsetType = UNSET
