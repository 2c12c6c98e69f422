"""Points of history that a caller may use.

A decision concerns the branch on which the resolved commit was made, not the parameter that names the commit: a tag,
an id, a version or a cursor of one branch can denote a commit of another. A branch is judged by its name before it is
looked up, so a denial does not show whether the branch exists.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from omnigraph.errors import Denied, InputError, NotFound, OmniGraphError
from omnigraph.operations.access import Access
from omnigraph.versioning.model.points import no_point
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import At, Point, Repository, read_snapshot_id

E = TypeVar("E", bound=OmniGraphError)
Judge = Callable[[str], object]
"""Raises `Denied` if the caller may not perform its action on a branch."""


def authorized_snapshot(repository: Repository, access: Access, judge: Judge, branch: str, at: At) -> Snapshot:
    """Return the snapshot of a point, or raise `Denied`. A text in `at` names its own branch, so `branch` is unused."""
    if isinstance(at, str) and at.startswith("manifest:"):
        branch, at = read_snapshot_id(at)
    try:
        if isinstance(at, str):
            snapshot = _named_point(repository, judge, at)
        else:
            judge(branch)
            snapshot = repository.snapshot(branch.strip(), at)
    except (NotFound, InputError) as error:
        raise without_names(error, access) from None
    if snapshot.made_on != snapshot.branch:
        judge(snapshot.made_on)
    return snapshot


def _named_point(repository: Repository, judge: Judge, name: str) -> Snapshot:
    """Return the point with a name; a name that denotes nothing is judged like a branch that does not exist."""
    found = repository.find_point(name)
    judge(name if found is None else found.branch)
    if found is None:
        raise no_point(name, repository.state())
    return found


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
