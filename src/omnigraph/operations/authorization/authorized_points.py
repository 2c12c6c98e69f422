"""Points of history that a caller may use.

A decision concerns the branch on which the resolved commit was made, not the parameter that names the commit: a tag, an
id, a version or a cursor of one branch can denote a commit of another. A prefix of several ids denotes those that the
caller may use; the others do not make it ambiguous. A branch is judged by its name before it is looked up, so a denial
does not show whether the branch exists. An error names no branch to a caller without the right to list branches, except
those of its request.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from omnigraph.errors import Denied, InputError, NotFound, OmniGraphError
from omnigraph.versioning.model.points import no_point
from omnigraph.versioning.write.ref_names import is_internal
from omnigraph.versioning.write.repository import At, Point, Repository, read_snapshot_id

if TYPE_CHECKING:
    from omnigraph.operations.authorization.access import Access
    from omnigraph.versioning.model.snapshot import Snapshot

E = TypeVar("E", bound=OmniGraphError)
Judge = Callable[[str], object]
"""Raises `Denied` if the caller may not perform its action on a branch."""

_OTHER_BRANCH = "the action is not allowed on the branch on which the commit was made"


def authorized_snapshot(
    repository: Repository, access: Access, branch: str, at: At, action: str, target: str | None = None
) -> Snapshot:
    """Return the snapshot of a point, or raise `Denied` if the caller may not perform an action there.

    A text in `at` names its own branch, so `branch` is unused. `target` is the target branch of the action.
    """
    judge = partial(access.check, action, target=target)
    if isinstance(at, str) and at.startswith("manifest:"):
        branch, at = read_snapshot_id(at)
    try:
        if isinstance(at, str):
            return _named_point(repository, access, at, action, target)
        judge(branch)
        snapshot = repository.read_snapshot(branch.strip(), at)
    except (NotFound, InputError) as error:
        raise without_names(error, access) from None
    _refuse_internal(repository, snapshot, str(branch if at is None else at))
    if snapshot.made_on != snapshot.branch:
        point = "the head" if at is None else f"the commit at {at}"
        judge_silently(access, judge, snapshot.made_on, f"{point} of branch '{snapshot.branch}'")
    return snapshot


def _named_point(repository: Repository, access: Access, name: str, action: str, target: str | None) -> Snapshot:
    """Return the point with a name; a name that denotes nothing is judged like a branch that does not exist."""
    try:
        found = _find_point(repository, access, name, action, target)
    except InputError:
        # The name is the prefix of several ids. Only a caller who may list branches learns that there are some.
        if access.decide("read").allowed:
            raise
        found = None
    judged = (name,) if found is None else dict.fromkeys((found.branch, found.made_on))
    for branch in judged:
        judge_silently(access, partial(access.check, action, target=target), branch, f"the point '{name}'")
    if found is None:
        raise no_point(name, repository.state())
    _refuse_internal(repository, found, name)
    return found


def find_readable(repository: Repository, access: Access | None, name: str) -> Snapshot | None:
    """Return the point with a name; None if there is none, if the caller may not read it, or if it is ambiguous."""
    try:
        found = repository.find_point(name) if access is None else _find_point(repository, access, name, "read", None)
    except InputError:
        return None
    if found is None or access is None:
        return found
    return found if all(_permits(access, "read", None, branch) for branch in (found.branch, found.made_on)) else None


def _find_point(repository: Repository, access: Access, name: str, action: str, target: str | None) -> Snapshot | None:
    """Return the point with a name. A prefix of several ids is that of commits which the caller may use."""
    try:
        return repository.find_point(name)
    except InputError:
        return repository.find_point(name, permits=partial(_permits, access, action, target))


def _permits(access: Access, action: str, target: str | None, branch: str) -> bool:
    return not is_internal(branch) and access.decide(action, branch, target).allowed


def _refuse_internal(repository: Repository, snapshot: Snapshot, name: str) -> None:
    """Refuse a point of an internal branch, such as the trial of a proposal: rules name no such branch."""
    if is_internal(snapshot.branch) or is_internal(snapshot.made_on):
        raise no_point(name, repository.state())


def judge_silently(access: Access, judge: Judge, branch: str, what: str) -> None:
    """Judge a branch that the caller did not name. `what` stands for it in the denial."""
    try:
        judge(branch)
    except Denied:
        if access.decide("read").allowed:
            raise
        caller = "a caller without an actor" if access.actor is None else f"actor '{access.actor}'"
        limit = access.only.branch_limit if access.only is not None else None
        reason = _OTHER_BRANCH if limit is None else f"{_OTHER_BRANCH}; {limit}"
        raise Denied(f"{what} is denied to {caller}: {reason}", (reason,)) from None


def hidden_commit(repository: Repository, access: Access, resolve: Callable[[], Snapshot], id: Point) -> Snapshot:
    """Return the snapshot of a commit; one that the caller may not read does not differ from one that is unknown."""
    try:
        return resolve()
    except Denied:
        raise without_names(no_point(str(id), repository.state()), access) from None


def without_names(error: E, access: Access) -> E:
    """Return an error without its hint, which suggests names, if the caller may not list branches and tags."""
    if not access.decide("read").allowed:
        error.hint = None
    return error
