"""Draws the commit graph next to a log, one lane per line of history.

Pure: commit ids and parents in, text out. Commits arrive newest first, every commit before its parents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence


def graph_lines(commits: Iterable[tuple[str, Sequence[str]]]) -> Iterator[tuple[str, str | None]]:
    """Yield `(prefix, commit id)` for the line of each commit and `(prefix, None)` for connecting lines."""
    lanes: list[str] = []
    """The commit that each lane leads to."""
    for id_, parents in commits:
        if id_ not in lanes:
            lanes.append(id_)
        column = lanes.index(id_)
        while id_ in lanes[column + 1 :]:
            other = lanes.index(id_, column + 1)
            yield _joining(len(lanes), column, other), None
            del lanes[other]
        yield " ".join("*" if number == column else "|" for number in range(len(lanes))), id_
        if not parents:
            if column + 1 < len(lanes):
                yield _closing(len(lanes), column), None
            del lanes[column]
            continue
        lanes[column] = parents[0]
        for number, parent in enumerate(parents[1:], column + 1):
            yield _forking(len(lanes), number - 1), None
            lanes.insert(number, parent)


def _cells(count: int) -> list[str]:
    """Lane `n` is at position `2n`; the positions between hold the strokes that connect lanes."""
    return [" "] * (2 * count + 1)


def _joining(count: int, into: int, from_: int) -> str:
    """Lane `from_` ends in lane `into`; the lanes right of it move left."""
    cells = _cells(count)
    for lane in range(from_):
        cells[2 * lane] = "|"
    for position in range(2 * into + 1, 2 * from_ - 1, 2):
        cells[position] = "_"
    for lane in range(from_, count):
        cells[2 * lane - 1] = "/"
    return "".join(cells).rstrip()


def _forking(count: int, column: int) -> str:
    """A new lane starts right of `column`; the lanes right of it move right."""
    cells = _cells(count)
    for lane in range(count):
        if lane <= column:
            cells[2 * lane] = "|"
        if lane >= column:
            cells[2 * lane + 1] = "\\"
    return "".join(cells).rstrip()


def _closing(count: int, column: int) -> str:
    """Lane `column` ended; the lanes right of it move left."""
    cells = _cells(count)
    for lane in range(count):
        if lane < column:
            cells[2 * lane] = "|"
        elif lane > column:
            cells[2 * lane - 1] = "/"
    return "".join(cells).rstrip()
