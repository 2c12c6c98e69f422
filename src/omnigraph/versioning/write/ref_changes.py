"""Changes of branches and tags: who made them, and the rows that record them.

Creating, changing and deleting a branch or a tag makes no commit. Each such publish adds one `ref_change` row to the
history and, if the request has an idempotency key, the row of the key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from omnigraph.errors import InputError
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.storage.manifest.manifest_schema import Row
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.manifest_rows import ref_change_to_row
from omnigraph.versioning.write.idempotency import RequestKey, hash_request

RefAction = Literal["branch_create", "branch_update", "branch_delete", "branch_expire", "tag_create", "tag_delete"]


@dataclass(frozen=True, slots=True)
class RefRequest:
    """A request to change a branch or tag: its author and its idempotency key."""

    actor: str | None = None
    message: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    key: RequestKey | None = None

    def __post_init__(self) -> None:
        for what, text in (("actor", self.actor), ("message", self.message)):
            if isinstance(text, str) and not is_unicode(text):
                raise InputError(f"the {what} is not valid Unicode text")

    def rows(
        self,
        action: RefAction,
        name: str,
        commit_id: str,
        now: int,
        version: int,
        result: Mapping[str, Any] | None = None,
    ) -> tuple[Row, ...]:
        """Return the history rows of a change in a manifest version; `result` is recorded with the idempotency key."""
        change = {
            "action": action,
            "name": name,
            "commit_id": commit_id,
            "actor_id": self.actor,
            "created_at": now,
            "message": self.message,
            "metadata": dict(self.metadata),
        }
        recorded = (self.key.to_row(result or {}),) if self.key is not None else ()
        return (ref_change_to_row(new_ulid(now), change, version), *recorded)


def keyed(request: RefRequest, action: RefAction, *arguments: Any) -> RefRequest:
    """Return the request with the hash of its arguments in its key, so that another request with the key is refused."""
    if request.key is None:
        return request
    return replace(request, key=replace(request.key, request_hash=hash_request(action, *arguments)))


NO_REQUEST = RefRequest()
"""A request without an author and without a key."""
