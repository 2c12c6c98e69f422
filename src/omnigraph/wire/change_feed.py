"""Documents of the change feed of a server: a row is an image of properties and endpoints.

They show the changes of `omnigraph.wire.changes` in the form of the HTTP interface.
"""

from __future__ import annotations

from typing import Literal

from msgspec import UNSET, UnsetType, field

from omnigraph.wire.changes import (
    CauseDocument,
    ChangeOp,
    CommitBlockDocument,
    CommitChangesDocument,
    FeedChangeDocument,
    FeedPageDocument,
    FeedTypeDocument,
    RowValues,
)
from omnigraph.wire.document import Document


class ImageEndpointsDocument(Document):
    """The ids of the nodes that an edge connects."""

    from_: str = field(name="from")
    to: str


class ImageDocument(Document, kw_only=True):
    """A row before or after a change; an edge has `endpoints`."""

    properties: RowValues
    endpoints: ImageEndpointsDocument | UnsetType = UNSET


class ImageChangeDocument(Document, kw_only=True):
    """One changed row of a commit: an insert has `after`, a delete `before`, an update both."""

    kind: Literal["node", "edge"]
    type: FeedTypeDocument
    id: str
    op: ChangeOp
    before: ImageDocument | UnsetType = UNSET
    after: ImageDocument | UnsetType = UNSET


class ChangeBlockDocument(Document):
    """A commit and its changes, or those that fit into a page."""

    cause: CauseDocument
    changes: list[ImageChangeDocument]


class CommitChangesAnswerDocument(ChangeBlockDocument):
    """The changes of one commit; `next_page_token` continues them."""

    next_page_token: str | UnsetType = UNSET


class ChangesDocument(Document, kw_only=True):
    """A poll of the change feed: `next_page_token` continues within it, else `cursor` continues after it.

    `cut_commit_id`, the head at the time of the poll, is in typed answers only.
    """

    blocks: list[ChangeBlockDocument]
    next_page_token: str | UnsetType = UNSET
    cursor: str | UnsetType = UNSET
    caught_up: bool
    cut_commit_id: str | UnsetType = UNSET


def changes_document(page: FeedPageDocument) -> ChangesDocument:
    """Return a poll in the form of the HTTP interface."""
    return ChangesDocument(
        blocks=[change_block(block) for block in page.blocks],
        next_page_token=UNSET if page.page is None else page.page,
        cursor=UNSET if page.cursor is None or page.page is not None else page.cursor,
        caught_up=page.caught_up,
    )


def commit_changes_document(changes: CommitChangesDocument) -> CommitChangesAnswerDocument:
    """Return the changes of a commit in the form of the HTTP interface."""
    token = UNSET if changes.page is None else changes.page
    return CommitChangesAnswerDocument(changes.cause, [image_change(change) for change in changes.changes], token)


def change_block(block: CommitBlockDocument) -> ChangeBlockDocument:
    """Return a commit and its changes in the form of the HTTP interface."""
    return ChangeBlockDocument(block.cause, [image_change(change) for change in block.changes])


def image_change(change: FeedChangeDocument) -> ImageChangeDocument:
    """Return one change in the form of the HTTP interface."""
    return ImageChangeDocument(
        kind=change.kind,
        type=change.type,
        id=change.id,
        op=change.op,
        before=UNSET if change.before is UNSET else _image(change.before, change.kind),
        after=UNSET if change.after is UNSET else _image(change.after, change.kind),
    )


def _image(row: RowValues, kind: Literal["node", "edge"]) -> ImageDocument:
    system = ("id", "src", "dst") if kind == "edge" else ("id",)
    properties = {name: value for name, value in row.items() if name not in system}
    if kind == "node":
        return ImageDocument(properties=properties)
    return ImageDocument(properties=properties, endpoints=ImageEndpointsDocument(row["src"], row["dst"]))
