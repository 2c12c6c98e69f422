"""Questions about the shape of history.

Everything here works on commit ids and a `parents` function, never on storage, so each answer can be
tested on a graph drawn by hand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

Parents = Callable[[str], Sequence[str]]


def reachable(start: str, parents: Parents) -> Iterator[str]:
    """Yield `start` and every commit reachable from it, each once, in no promised order."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        commit = pending.pop()
        if commit not in seen:
            seen.add(commit)
            yield commit
            pending.extend(parents(commit))


def merge_bases(ours: str, theirs: str, parents: Parents) -> frozenset[str]:
    """Return the common ancestors that no other common ancestor descends from.

    Unrelated histories have none, and a fast-forward has the older of the two commits. A criss-cross has
    several; they are all returned, because silently picking one could hide a conflict from the caller.
    """
    common = set(reachable(ours, parents)) & set(reachable(theirs, parents))
    # `common` holds all ancestors of its members, so being a parent of one is enough to tell.
    superseded = {parent for commit in common for parent in parents(commit)}
    return frozenset(common - superseded)
