"""Which known name somebody probably meant."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

_LONGEST = 40
_MOST_CANDIDATES = 1_000
_MOST_COMPARED = 32
"""A text can hold thousands of unknown names and thousands of candidates: the work per name is bounded."""


def closest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the candidate nearest to `name`, or None when nothing is near enough to be a slip.

    Near means equal but for case and underscores, or within one edit per three letters (at most
    three), a swap of neighbours counting as one. Ties go to the alphabetically first. Of very many
    candidates only the first are looked at.
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
        # One edit takes at most one letter away and brings at most one.
        if compared >= _MOST_COMPARED or len(letters.symmetric_difference(folded)) > 2 * limit:
            continue
        compared += 1
        distance = _edits(wanted, folded, limit)
        if distance <= limit and (best is None or (distance, candidate) < best):
            best = (distance, candidate)
            limit = distance
    return best[1] if best else None


def within_edits(name: str, candidates: Iterable[str], most: int) -> str | None:
    """Return the candidate nearest to `name`, if at most `most` edits away; a swap of neighbours is one edit."""
    if len(name) > _LONGEST:
        return None
    near = [(_edits(name, candidate, most), candidate) for candidate in candidates]
    return min(((edits, candidate) for edits, candidate in near if edits <= most), default=(0, None))[1]


def did_you_mean(name: str, candidates: Iterable[str], *, prefix: str = "") -> str | None:
    """Return the hint sentence for `closest`, or None."""
    found = closest(name, candidates)
    return f"did you mean '{prefix}{found}'?" if found is not None else None


def listing(names: Iterable[str], *, most: int = 8) -> str:
    """Return names quoted and joined, cut after `most`: what an error shows as the choices."""
    ordered = sorted(names)
    shown = ", ".join(f"'{name}'" for name in ordered[:most])
    return shown if len(ordered) <= most else f"{shown} and {len(ordered) - most} more"


def _fold(name: str) -> str:
    return name.replace("_", "").lower()


def _edits(a: str, b: str, most: int) -> int:
    """Optimal string alignment distance; any number above `most` when it is more than that."""
    beyond = most + 1
    before: list[int] = []
    previous = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        # What is further than `most` off the diagonal costs more than `most`.
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
