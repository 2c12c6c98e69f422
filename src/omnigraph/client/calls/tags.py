"""Calls of tags."""

from __future__ import annotations

from typing import TYPE_CHECKING

from omnigraph.client.call import Call
from omnigraph.client.calls.handle import CallHandle, at_text
from omnigraph.client.messages import TYPED_JSON
from omnigraph.client.results.history import tag_of
from omnigraph.errors import InputError
from omnigraph.listing import Listing, describe_tag
from omnigraph.versioning.model.manifest_objects import Tag
from omnigraph.versioning.write.ref_names import check_tag_name, check_text
from omnigraph.wire.branches import TagCreatedDocument, TagListDocument
from omnigraph.wire.requests.branches import TagCreateRequest, TagDeleteQuery

if TYPE_CHECKING:
    from omnigraph.versioning.write.repository import At


class TagCalls(CallHandle):
    """Calls of tags."""

    def tag_create(
        self,
        name: str,
        at: At = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[Tag]:
        """Name a point of history, by default this branch's head. A cleanup keeps the data of every tag.

        `idempotency_key` is as in `mutate`.
        """
        self._check_actor("tag_create", actor)
        input = TagCreateRequest(name=check_tag_name(name), branch=self.branch, at=at_text(at), message=message)
        request = self._write("tags", input=input, key=idempotency_key, accept=TYPED_JSON)
        return tag_of((yield request).document(TagCreatedDocument))

    def tags(self) -> Call[list[Tag]]:
        """Return every tag, by name. The list prints as a table."""
        answer = yield self._get("tags", accept=TYPED_JSON)
        return Listing(map(tag_of, answer.document(TagListDocument).tags), describe_tag)

    def tag_delete(
        self,
        name: str,
        *,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> Call[None]:
        """Delete a tag; its commit can be read by its id until a cleanup.

        A repeated call with the same `idempotency_key` succeeds, and deletes no tag that was created since.
        """
        self._check_actor("tag_delete", actor)
        _check_name(name)
        input = TagDeleteQuery(message=message)
        yield self._write("tags", name, input=input, method="DELETE", key=idempotency_key, accept=TYPED_JSON)


def _check_name(name: str) -> None:
    """Refuse a name that cannot be a part of a path."""
    check_text(name, "tag")
    if not name.strip():
        raise InputError("the name of a tag must not be empty")
