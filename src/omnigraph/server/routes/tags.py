"""Tags: names for commits, which a cleanup keeps."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET

from omnigraph.server.caller import Caller, point_of
from omnigraph.server.messages.answers import Answer
from omnigraph.server.messages.details import pin_members
from omnigraph.server.messages.preconditions import expect_commit, expected_start
from omnigraph.versioning.model.manifest_objects import MAIN, Tag
from omnigraph.wire.branches import RefDeletedDocument, TagCreatedDocument, TagDocument, TagListDocument
from omnigraph.wire.requests.branches import ListQuery, TagCreateRequest, TagDeleteQuery


def list_tags(caller: Caller, body: ListQuery) -> TagListDocument:
    """List the tags by name."""
    found = sorted(caller.graph.tags(), key=lambda tag: tag.name)
    tags = [tag for tag in found if body.after is None or tag.name > body.after]
    page = tags if body.limit is None else tags[: body.limit]
    next_ = page[-1].name if len(page) < len(tags) else UNSET
    return TagListDocument([TagDocument.of(_members(caller, tag)) for tag in page], next_)


def create_tag(caller: Caller, body: TagCreateRequest) -> Answer:
    """Name a point of history, by default the newest commit of `main`."""
    exists = caller.if_commit is not None and any(tag.name == body.name.strip() for tag in caller.graph.tags())
    branch = body.branch or MAIN
    tag = caller.graph.on(branch).tag_create(
        body.name,
        expected_start(caller, branch, point_of(body.at), exists=exists),
        message=body.message,
        idempotency_key=caller.idempotency_key,
    )
    document = TagCreatedDocument.of({"uri": caller.uri, **_members(caller, tag)})
    return Answer(document, commit=tag.commit_id)


def delete_tag(caller: Caller, body: TagDeleteQuery, tag: str) -> RefDeletedDocument:
    """Delete a tag; its commit remains readable by id until a cleanup."""
    if caller.if_commit is not None:
        for found in caller.graph.tags():
            if found.name == tag.strip():
                expect_commit(caller, found.name, found.commit_id)
    caller.graph.tag_delete(tag, message=body.message, idempotency_key=caller.idempotency_key)
    return RefDeletedDocument(caller.uri, tag.strip(), caller.actor)


def _members(caller: Caller, tag: Tag) -> dict[str, Any]:
    return {**tag.to_json(), **pin_members(caller, tag.pins)}
