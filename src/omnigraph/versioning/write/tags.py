"""Tags: immutable names for commits that protect their data from cleanup.

A tag is a state row of the manifest, published by the same compare-and-swap as everything else. It contains the pins of
its commit, so a cleanup can see directly what to keep. A tag never moves; to change it, delete it and create another.
"""

from __future__ import annotations

from collections.abc import Callable

from omnigraph.errors import TagExists, TagNotFound
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.model.manifest_objects import Tag
from omnigraph.versioning.model.manifest_rows import tag_from_json, tag_object_id, tag_to_json, tag_to_row
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.idempotency import once, refuse_repetition
from omnigraph.versioning.write.ref_changes import NO_REQUEST, RefRequest
from omnigraph.versioning.write.ref_names import check_tag_name, check_text
from omnigraph.versioning.write.repository import Repository


def create_tag(repository: Repository, name: str, at: Callable[[], Snapshot], request: RefRequest = NO_REQUEST) -> Tag:
    """Create a tag for the commit of a snapshot; all its data must still exist."""
    name = check_tag_name(name)
    return once(
        repository,
        request.key,
        lambda: _create(repository, name, at(), request),
        lambda earlier: tag_from_json(name, earlier.result["tag"]),
    )


def _create(repository: Repository, name: str, at: Snapshot, request: RefRequest) -> Tag:
    pins = tuple(table.pin for table in at.tables.values())
    now = repository.clock()
    tag = Tag(name, at.commit_id, now, request.actor, request.message, pins)

    def decide(state: State) -> Change | None:
        existing = state.find_tag(tag.name)
        if existing == tag:
            return None
        refuse_repetition(repository, request.key, state)
        if existing is not None:
            raise TagExists(f"tag '{tag.name}' already exists", hint="choose another name, or delete it first")
        if state.find_head(tag.name) is not None:
            raise TagExists(f"branch '{tag.name}' already exists", hint="choose another name")
        repository.check_whole(at, state)
        rows = request.rows("tag_create", tag.name, tag.commit_id, now, state.version + 1, {"tag": tag_to_json(tag)})
        return Change(put=(tag_to_row(tag),), add=rows)

    repository.publish(decide)
    return tag


def delete_tag(repository: Repository, name: str, request: RefRequest = NO_REQUEST) -> None:
    """Delete a tag; the commit remains readable by its id until a cleanup."""
    check_text(name, "tag")
    name = name.strip()
    now = repository.clock()
    meant: Tag | None = None

    def decide(state: State) -> Change | None:
        nonlocal meant
        found = state.find_tag(name)
        if meant is not None and found != meant:
            # Deleted since the first attempt, by this call or another one. A new tag of that name must not be deleted.
            return None
        refuse_repetition(repository, request.key, state)
        if found is None:
            known = [tag.name for tag in state.tags()]
            raise TagNotFound(f"there is no tag '{name}'", hint=did_you_mean(name, known))
        meant = found
        rows = request.rows("tag_delete", name, found.commit_id, now, state.version + 1)
        return Change(drop=(tag_object_id(name),), add=rows)

    def delete() -> None:
        repository.publish(decide)

    once(repository, request.key, delete, lambda _: None)
