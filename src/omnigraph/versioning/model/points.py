"""Names of points of history: a branch, a tag, or a commit by its id or a prefix of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from omnigraph.errors import CommitNotFound, Hint, InputError
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.versioning.model.state import State

PREFIX_MIN = 8
"""The minimum length of a commit id prefix."""

_FORMS = f"a point is a branch, a tag, a commit id or its first {PREFIX_MIN} or more characters, a version or a time"


def commit_with_prefix(
    prefix: str, commit_ids: Iterable[str], permits: Callable[[str], bool] | None = None
) -> str | None:
    """Return the only permitted commit id that begins with the prefix; None if there is none or it is too short."""
    if len(prefix) < PREFIX_MIN:
        return None
    found = [commit_id for commit_id in commit_ids if commit_id.startswith(prefix.upper())]
    if permits is not None:
        found = [commit_id for commit_id in found if permits(commit_id)]
    if len(found) > 1:
        raise InputError(
            f"'{prefix}' is the prefix of {len(found)} commit ids", hint=f"give more characters: {listing(found)}"
        )
    return found[0] if found else None


def no_point(name: str, state: State) -> CommitNotFound:
    """Return the error for a name that matches no point of history."""
    meant = did_you_mean(name, [*state.branches(), *(tag.name for tag in state.tags())])
    before = f"{meant} " if meant is not None else ""
    return CommitNotFound(
        f"there is no branch, tag or commit '{name}'",
        hint=Hint(
            f"{before}{_FORMS}; a version is an int, a time a datetime",
            cli=f"{before}{_FORMS}; 'omnigraph commit list' lists the commits",
            in_shell=f"{before}{_FORMS}; ':commits' lists the commits",
        ),
    )
