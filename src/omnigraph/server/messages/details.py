"""Members of typed answers, from which a client makes the objects of an embedded graph.

Each function returns `UNSET` or a document without these members if the client did not request typed values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec import UNSET, UnsetType

from omnigraph.server.caller import Caller
from omnigraph.server.caller import commit_document as full_commit_document
from omnigraph.versioning.model.manifest_objects import Commit, Head, Pin
from omnigraph.wire.branches import HeadDetailsDocument
from omnigraph.wire.commits import CommitDocument
from omnigraph.wire.document import plain
from omnigraph.wire.pins import PinDocument


def commit_document(caller: Caller, commit: Commit) -> CommitDocument:
    """Return the document of a commit."""
    return full_commit_document(commit, typed=caller.negotiated.typed)


def commit_detail(caller: Caller, commit: Commit) -> CommitDocument | UnsetType:
    """Return the commit that made a change."""
    return commit_document(caller, commit) if caller.negotiated.typed else UNSET


def head_details(caller: Caller, head: Head) -> HeadDetailsDocument | UnsetType:
    """Return the attributes of a branch that its document does not show."""
    return HeadDetailsDocument.of(plain(head)) if caller.negotiated.typed else UNSET


def pin_members(caller: Caller, pins: Iterable[Pin]) -> dict[str, Any]:
    """Return the pinned table versions as a member."""
    return {"pins": [PinDocument.of(plain(pin)) for pin in pins]} if caller.negotiated.typed else {}


def commit_members(caller: Caller, commit: Commit) -> dict[str, Any]:
    """Return the commit that made a change as a member."""
    return {"commit": commit_document(caller, commit)} if caller.negotiated.typed else {}


def typed_members(caller: Caller, **members: Any) -> dict[str, Any]:
    """Return members that only typed answers have."""
    return members if caller.negotiated.typed else {}
