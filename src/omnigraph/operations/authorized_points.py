"""Points of history that a caller may use.

A decision concerns the branch on which the resolved commit was made, not the parameter that names the commit: a tag,
an id, a version or a cursor of one branch can denote a commit of another. A branch is judged by its name before it is
looked up, so a denial does not show whether the branch exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omnigraph.errors import Denied, InputError, NotFound
from omnigraph.operations.access import Access
from omnigraph.versioning.model.points import no_point
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import At, Point, Repository, read_snapshot_id

Judge = Callable[[str], object]
"""Raises `Denied` if the caller may not perform its action on a branch."""


def authorized_snapshot(repository: Repository, access: Access, judge: Judge, branch: str, at: At) -> Snapshot:
    """Return the snapshot of a point, or raise `Denied`. A text in `at` names its own branch, so `branch` is unused."""
    if isinstance(at, str) and at.startswith("manifest:"):
        branch, at = read_snapshot_id(at)
    with _without_names(access):
        if not isinstance(at, str):
            judge(branch)
            snapshot = repository.snapshot(branch.strip(), at)
            checked = snapshot.branch
        else:
            found = repository.find_point(at)
            if found is None:
                # Judged like a branch of that name: the answer is that for a branch which does not exist.
                judge(at)
                raise no_point(at, repository.state())
            snapshot, checked = found, None
        for name in dict.fromkeys((snapshot.branch, snapshot.made_on)):
            if name != checked:
                judge(name)
    return snapshot


def hidden_commit(repository: Repository, access: Access, resolve: Callable[[], Snapshot], id: Point) -> Snapshot:
    """Return the snapshot of a commit; one that the caller may not read does not differ from one that is unknown."""
    try:
        return resolve()
    except Denied:
        with _without_names(access):
            raise no_point(str(id), repository.state()) from None


@contextmanager
def _without_names(access: Access) -> Iterator[None]:
    """Remove the hint of an error, which suggests names, if the caller may not list branches and tags."""
    try:
        yield
    except (NotFound, InputError) as error:
        if not access.decide("read").allowed:
            error.hint = None
        raise
