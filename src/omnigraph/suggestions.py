"""Suggestions for misspelled names, by edit distance."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice

_LONGEST = 40
_MOST_CANDIDATES = 1_000
_MOST_COMPARED = 32
"""A text can contain thousands of unknown names, each with thousands of candidates; this bounds the work per name."""


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate nearest to `name`, or None if none is near enough to be a misspelling.

    A candidate is near if it is equal apart from case and underscores, or within one edit per three letters (at most
    three edits). A swap of adjacent letters is one edit. Ties go to the alphabetically first. Only the first
    `_MOST_CANDIDATES` candidates are considered.
    """
    if len(name) > _LONGEST:
        return None
    wanted = _fold(name)
    limit = min(3, max(1, len(wanted) // 3))
    letters = set(wanted)
    compared = 0
    best: tuple[int, str] | None = None
    for candidate in islice(candidates, _MOST_CANDIDATES):
        folded = _fold(candidate)
        if folded == wanted:
            return candidate
        if abs(len(folded) - len(wanted)) > limit or len(folded) > _LONGEST:
            continue
        # One edit removes at most one letter and adds at most one.
        if compared >= _MOST_COMPARED or len(letters.symmetric_difference(folded)) > 2 * limit:
            continue
        compared += 1
        distance = _edits(wanted, folded, limit)
        if distance <= limit and (best is None or (distance, candidate) < best):
            best = (distance, candidate)
            limit = distance
    return best[1] if best else None


def within_edits(name: str, candidates: Iterable[str], most: int) -> str | None:
    """Return the candidate nearest to `name` within `most` edits; a swap of adjacent letters is one edit."""
    if len(name) > _LONGEST:
        return None
    near = [(_edits(name, candidate, most), candidate) for candidate in candidates]
    return min(((edits, candidate) for edits, candidate in near if edits <= most), default=(0, None))[1]


def did_you_mean(name: str, candidates: Iterable[str], *, prefix: str = "") -> str | None:
    """Return a hint that names the candidate of `closest`, or None."""
    found = closest(name, candidates)
    return f"did you mean '{prefix}{found}'?" if found is not None else None


def listing(names: Iterable[str], *, most: int = 8) -> str:
    """Return names quoted and joined, at most `most` of them, for the list of choices in an error."""
    ordered = sorted(names)
    shown = ", ".join(f"'{name}'" for name in ordered[:most])
    return shown if len(ordered) <= most else f"{shown} and {len(ordered) - most} more"


def known_types(what: str, names: Collection[str]) -> str:
    """Return a hint that lists the types of a kind, such as 'node type'; a policy can hide all of them."""
    return f"the {what}s are {listing(names)}" if names else f"no {what} is declared or visible"


def _fold(name: str) -> str:
    return name.replace("_", "").lower()


def _edits(a: str, b: str, most: int) -> int:
    """Return the optimal string alignment distance, or any number above `most` if it exceeds `most`."""
    beyond = most + 1
    before: list[int] = []
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        # Cells more than `most` off the diagonal have a distance above `most`.
        current = [beyond] * (len(b) + 1)
        if i <= most:
            current[0] = i
        for j in range(max(1, i - most), min(len(b), i + most) + 1):
            y = b[j - 1]
            if x == y:
                current[j] = previous[j - 1]
                continue
            cost = 1 + min(previous[j - 1], previous[j], current[j - 1])
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            current[j] = cost
        before, previous = previous, current
        if min(previous) > most:
            return beyond
    return previous[-1]
