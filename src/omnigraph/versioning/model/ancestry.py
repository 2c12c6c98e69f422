"""Ancestry of commits: reachability and merge bases.

All functions take commits, or their ids and a function that returns parents, and never access storage, so they can be
tested on small hand-made graphs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from heapq import heappop, heappush
from operator import or_

from omnigraph.checkpoints import paced
from omnigraph.fast_dataclass import dataclass
from omnigraph.versioning.model.manifest_objects import Commit

Parents = Callable[[str], Sequence[str]]
_OURS, _THEIRS, _SHARED = 1, 2, 4
"""Marks of commits in a traversal: the starts that reach them, or that their ancestors are of no interest."""
_COMMON = _OURS | _THEIRS


def reachable(start: str, parents: Parents) -> Iterator[str]:
    """Yield `start` and every commit reachable from it, each once, in no guaranteed order."""
    seen: set[str] = set()
    pending = [start]
    while pending:
        commit = pending.pop()
        if commit not in seen:
            seen.add(commit)
            yield commit
            pending.extend(parents(commit))


def newest_first(starts: Iterable[Commit], get: Callable[[str], Commit]) -> Iterator[Commit]:
    """Yield every commit reachable from `starts`, newest first; a commit is got when it is needed."""
    queue = sorted((_age(start), start) for start in {commit.id: commit for commit in starts}.values())
    seen = {start.id for _, start in queue}
    while queue:
        _, commit = heappop(queue)
        yield commit
        for parent_id in commit.parents:
            if parent_id not in seen:
                seen.add(parent_id)
                parent = get(parent_id)
                heappush(queue, (_age(parent), parent))


def _age(commit: Commit) -> tuple[int, int, _Descending]:
    """Return a key that is unique and lower for newer commits."""
    return -commit.manifest_version, -commit.created_us, _Descending(commit.id)


@dataclass(frozen=True)
class _Descending:
    """A text that is ordered in reverse."""

    text: str

    def __lt__(self, other: _Descending) -> bool:
        return other.text < self.text


def only_reachable(start: str, others: Iterable[str], commits: Mapping[str, Commit]) -> set[str]:
    """Return the commits that are reachable from `start` and from none of `others`."""
    marks = {start: _OURS, **dict.fromkeys(others, _SHARED)}
    return {commit_id for commit_id, _ in _unshared(marks, commits)}


def merge_bases(ours: str, theirs: str, commits: Mapping[str, Commit]) -> frozenset[str]:
    """Return the common ancestors that are not ancestors of another common ancestor.

    Unrelated histories have none, and a fast-forward has the older of the two commits. A criss-cross has several. All
    of them are returned, because choosing one could hide a conflict from the caller.
    """
    marks = {ours: _OURS, theirs: _THEIRS} if ours != theirs else {ours: _COMMON}
    return frozenset(commit_id for commit_id, mark in _unshared(marks, commits) if mark == _COMMON)


def _unshared(marks: dict[str, int], commits: Mapping[str, Commit]) -> Iterator[tuple[str, int]]:
    """Yield the ancestors of marked commits, with the marks that reach them, as far as they are not shared.

    The ancestors of a shared or common commit are shared. A commit is older than its children, so that newest first
    its marks are complete; the commits before the fork points of the marked ones are not visited.
    """
    queue = sorted((_age(commit), commit) for commit in map(commits.__getitem__, marks))
    unshared = {commit_id for commit_id, mark in marks.items() if not mark & _SHARED}
    while unshared:
        _, commit = heappop(queue)
        mark = marks.pop(commit.id)
        if commit.id in unshared:
            unshared.remove(commit.id)
            yield commit.id, mark
        if mark == _COMMON:
            mark = _SHARED
        for parent_id in commit.parents:
            if parent_id not in marks:
                parent = commits[parent_id]
                heappush(queue, (_age(parent), parent))
            marks[parent_id] = marks.get(parent_id, 0) | mark
            if marks[parent_id] & _SHARED:
                unshared.discard(parent_id)
            else:
                unshared.add(parent_id)


def ahead_and_behind(heads: Mapping[str, str], base: str, commits: Iterable[Commit]) -> dict[str, tuple[int, int]]:
    """Return for each named head the commits that only it reaches, and those that only `base` reaches.

    `commits` are all commits. One pass marks each commit with the heads that reach it; many commits share a mark, so
    counting takes one step per mark and head.
    """
    bits = {name: 1 << number for number, name in enumerate(heads, 1)}
    marks: dict[str, int] = {base: 1}
    for name, commit_id in heads.items():
        marks[commit_id] = marks.get(commit_id, 0) | bits[name]
    counted: Counter[int] = Counter()
    for commit in paced(sorted(commits, key=_age)):
        mark = marks.pop(commit.id, 0)
        if mark:
            counted[mark] += 1
            for parent in commit.parents:
                marks[parent] = marks.get(parent, 0) | mark
    return {
        name: (
            sum(count for mark, count in counted.items() if mark & bit and not mark & 1),
            sum(count for mark, count in counted.items() if mark & 1 and not mark & bit),
        )
        for name, bit in bits.items()
    }


def meeting_points(heads: Iterable[str], parents: Parents) -> frozenset[str]:
    """Return a superset of the commits that are a merge base of some two of `heads`.

    A commit cannot be a merge base if one of its children reaches all the heads that the commit reaches. With this
    criterion, one traversal of history covers every pair of branches.
    """
    leads_to = {head: 1 << number for number, head in enumerate(dict.fromkeys(heads))}
    children: dict[str, list[str]] = {head: [] for head in leads_to}
    pending = list(leads_to)
    while pending:
        commit = pending.pop()
        for parent in parents(commit):
            if parent not in children:
                children[parent] = []
                pending.append(parent)
            children[parent].append(commit)
    unseen = {commit: len(above) for commit, above in children.items()}
    ready = [commit for commit, count in unseen.items() if not count]
    found: set[str] = set()
    while ready:
        commit = ready.pop()
        above = [leads_to[child] for child in children[commit]]
        leads_to[commit] = reduce(or_, above, leads_to.get(commit, 0))
        if above and leads_to[commit] not in above:
            found.add(commit)
        for parent in parents(commit):
            unseen[parent] -= 1
            if not unseen[parent]:
                ready.append(parent)
    return frozenset(found)
