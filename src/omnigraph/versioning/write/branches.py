"""Creation, change and deletion of branches.

A branch is one head row of the manifest. Creating one copies no data, and deleting one leaves its commits readable by
id until a cleanup. Each of these changes is one publish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from omnigraph.errors import BranchExists, Conflict, Hint, InputError, PreconditionFailed
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.storage.manifest.manifest_version import Change
from omnigraph.versioning.model.ancestry import only_reachable
from omnigraph.versioning.model.ids import new_ulid
from omnigraph.versioning.model.manifest_objects import MAIN, Head, microseconds
from omnigraph.versioning.model.manifest_rows import head_from_json, head_object_id, head_to_json, head_to_log_row
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.model.state import State
from omnigraph.versioning.write.idempotency import once, refuse_repetition
from omnigraph.versioning.write.ref_changes import NO_REQUEST, RefRequest
from omnigraph.versioning.write.ref_names import check_branch_name, check_text
from omnigraph.versioning.write.repository import At, Repository

_LONGEST = timedelta(days=365_250)


@dataclass(frozen=True, slots=True)
class BranchAttributes:
    """Attributes of a branch that its users set; None leaves one as it is."""

    description: str | None = None
    """A text; the empty text removes the description."""
    expires_us: int | Literal["never"] | None = None
    """The time after which a cleanup deletes the branch, in microseconds since 1970."""

    @classmethod
    def of(
        cls, clock: Callable[[], int], description: str | None, expires: timedelta | datetime | Literal["never"] | None
    ) -> BranchAttributes:
        """Return validated attributes; a duration counts from the time of a clock, in microseconds since 1970."""
        text: object = description
        if text is not None and not (isinstance(text, str) and is_unicode(text)):
            raise InputError("the description of a branch is a str of valid Unicode text", hint="give a str")
        match expires:
            case None:
                return cls(description)
            case "never":
                return cls(description, "never")
            case timedelta() if timedelta(0) < expires < _LONGEST:
                return cls(description, clock() + expires // timedelta(microseconds=1))
            case datetime():
                return cls(description, microseconds(expires))
            case _:
                raise InputError(
                    f"a branch cannot expire at {str(expires)[:40]!r}",
                    code="bad_expiry",
                    hint="give a datetime, 'never', or a positive timedelta of at most 1,000 years",
                )

    def set_on(self, head: Head) -> Head:
        """Return the head with these attributes."""
        description = head.description if self.description is None else self.description or None
        expires_us = head.expires_us if self.expires_us is None else self.expires_us
        return replace(head, description=description, expires_us=None if expires_us == "never" else expires_us)


def create_branch(
    repository: Repository,
    name: str,
    *,
    from_branch: str = MAIN,
    at: At | Snapshot | Callable[[], At | Snapshot] = None,
    if_commit: str | None = None,
    attributes: BranchAttributes | None = None,
    request: RefRequest = NO_REQUEST,
) -> Head:
    """Create a branch at the head of another one or at any point of history; no data is copied.

    `at` is a point, or a function that returns one. With `if_commit`, the branch is created only if it starts at that
    commit.
    """
    name = check_branch_name(name)

    def create() -> Head:
        point = at() if callable(at) else at
        start = point if point is None or isinstance(point, Snapshot) else repository.snapshot(from_branch, point)
        new = _NewBranch(name, from_branch, start, if_commit, attributes or BranchAttributes())
        return _create(repository, new, request)

    return once(repository, request.key, create, lambda earlier: head_from_json(name, earlier.result["head"]))


@dataclass(frozen=True, slots=True)
class _NewBranch:
    name: str
    from_branch: str
    start: Snapshot | None
    """The point of history at which it starts; None for the head of `from_branch`."""
    if_commit: str | None
    attributes: BranchAttributes

    def head(self, state: State, incarnation: str, now: int, owner: str | None) -> Head:
        """Return its head at the creation."""
        start = self.start
        if start is None:
            head = replace(state.get_head(self.from_branch), fork_branch=self.from_branch)
        else:
            head = Head(
                branch=self.name,
                incarnation=incarnation,
                commit_id=start.commit_id,
                parent_commit_id=start.commit.parent_id,
                manifest_version=start.version,
                schema_hash=start.schema_hash,
                created_us=now,
                fork_branch=start.branch,
                pins=tuple(table.pin for table in start.tables.values()),
                queries_hash=start.queries_hash,
                aliases_hash=start.aliases_hash,
            )
        if self.if_commit not in (None, head.commit_id):
            raise PreconditionFailed(self.name, expected=self.if_commit, actual=head.commit_id)
        head = replace(head, branch=self.name, incarnation=incarnation, created_us=now, owner=owner)
        head = replace(head, fork_commit_id=head.commit_id, since=state.version + 1)
        return self.attributes.set_on(replace(head, description=None, expires_us=None))


def _create(repository: Repository, new: _NewBranch, request: RefRequest) -> Head:
    name, now = new.name, repository.clock()
    incarnation = new_ulid(now)
    made: Head | None = None

    def decide(state: State) -> Change | None:
        nonlocal made
        existing = state.find_head(name)
        if existing is not None and existing.incarnation == incarnation:
            return None
        refuse_repetition(repository, request.key, state)
        if existing is not None:
            raise BranchExists(f"branch '{name}' already exists", hint="choose another name, or delete it first")
        if state.find_tag(name) is not None:
            raise BranchExists(f"tag '{name}' already exists", hint="choose another name, or delete the tag")
        if new.start is not None:
            repository.check_whole(new.start, state)
        made = new.head(state, incarnation, now, request.actor)
        result = {"head": head_to_json(made)}
        rows = request.rows("branch_create", name, made.commit_id, now, state.version + 1, result)
        return Change(put=(head_to_log_row(made),), add=rows)

    repository.publish(decide)
    assert made is not None
    return made


def update_branch(
    repository: Repository,
    name: str,
    attributes: BranchAttributes,
    *,
    if_commit: str | None = None,
    request: RefRequest = NO_REQUEST,
) -> Head:
    """Set attributes of a branch; its commit stays. `main` cannot expire."""
    check_text(name, "branch")
    name, now = name.strip(), repository.clock()
    if name == MAIN and isinstance(attributes.expires_us, int):
        raise InputError("the branch 'main' cannot expire", code="bad_expiry", hint="set an expiry on another branch")
    made: Head | None = None

    def decide(state: State) -> Change | None:
        nonlocal made
        head = state.get_head(name)
        if made is not None and attributes.set_on(head) == head:
            # The answer of the first attempt was lost.
            made = head
            return None
        refuse_repetition(repository, request.key, state)
        if if_commit not in (None, head.commit_id):
            raise PreconditionFailed(name, expected=if_commit, actual=head.commit_id)
        made = attributes.set_on(head)
        result = {"head": head_to_json(made)}
        rows = request.rows("branch_update", name, made.commit_id, now, state.version + 1, result)
        return Change(put=(head_to_log_row(made),), add=rows)

    def update() -> Head:
        repository.publish(decide)
        assert made is not None
        return made

    return once(repository, request.key, update, lambda earlier: head_from_json(name, earlier.result["head"]))


def delete_expired(repository: Repository, now_us: int, request: RefRequest = NO_REQUEST) -> list[str]:
    """Delete every branch whose time is over, and return their names; internal heads expire like branches."""
    deleted: list[str] = []

    def decide(state: State) -> Change | None:
        deleted[:] = expired(state, now_us)
        heads = [state.get_head(name) for name in deleted]
        now, version = repository.clock(), state.version + 1
        rows = [request.rows("branch_expire", head.branch, head.commit_id, now, version) for head in heads]
        drop = tuple(head_object_id(name) for name in deleted)
        return Change(drop=drop, add=tuple(row for some in rows for row in some)) if deleted else None

    if expired(repository.state(), now_us):
        repository.publish(decide)
    return deleted


def expired(state: State, now_us: int) -> list[str]:
    """Return the heads whose time is over."""
    return [head.branch for head in state.heads() if head.expires_us is not None and head.expires_us <= now_us]


def delete_branch(
    repository: Repository,
    name: str,
    *,
    force: bool = True,
    if_commit: str | None = None,
    request: RefRequest = NO_REQUEST,
    result: Mapping[str, Any] | None = None,
) -> None:
    """Delete a branch; its commits remain readable by id until a cleanup.

    Without `force`, a branch with commits that are reachable from no other branch or tag is not deleted. `result` is
    recorded with the idempotency key.
    """
    check_text(name, "branch")
    name = name.strip()
    if name == MAIN:
        raise InputError("the branch 'main' cannot be deleted")
    now = repository.clock()
    meant: str | None = None

    def decide(state: State) -> Change | None:
        nonlocal meant
        found = state.find_head(name)
        if meant is not None and (found is None or found.incarnation != meant):
            # Deleted since the first attempt, by this call or another one. A new branch of that name must not be
            # deleted.
            return None
        refuse_repetition(repository, request.key, state)
        head = state.get_head(name)
        meant = head.incarnation
        if if_commit not in (None, head.commit_id):
            raise PreconditionFailed(name, expected=if_commit, actual=head.commit_id)
        if not force:
            _check_kept(repository, state, head)
        rows = request.rows("branch_delete", name, head.commit_id, now, state.version + 1, result)
        return Change(drop=(head_object_id(name),), add=rows)

    def delete() -> None:
        repository.publish(decide)

    once(repository, request.key, delete, lambda _: None)


def _check_kept(repository: Repository, state: State, head: Head) -> None:
    """Refuse to delete a branch whose commits a cleanup would then remove."""
    commits = repository.all_commits(state)
    others = [other.commit_id for other in state.heads() if other.branch != head.branch]
    others += [tag.commit_id for tag in state.tags()]
    lost = len(only_reachable(head.commit_id, others, commits))
    if lost:
        what = "1 commit that is" if lost == 1 else f"{lost} commits that are"
        raise Conflict(
            f"branch '{head.branch}' has {what} on no other branch and under no tag; it was not deleted",
            code="unmerged_branch",
            hint=Hint(
                "merge the branch first, or delete it with force=True",
                cli="merge the branch first, or delete it with --force",
            ),
        )
