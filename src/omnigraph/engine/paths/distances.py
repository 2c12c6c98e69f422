"""Distances between nodes, without the paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from omnigraph.engine import tuning
from omnigraph.engine.adjacency.bfs import levels_from, new_neighbours
from omnigraph.engine.adjacency.csr import Neighbours
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.exec.cancellation import checkpoint
from omnigraph.engine.paths.path_table import Floats


@dataclass(frozen=True)
class Targets:
    """The ends to find: the same nodes for all sources, or different ones for each source."""

    nodes: Mask | None = None
    pairs: tuple[Numbers, Numbers] | None = None
    """Arrays of (source position, node)."""

    def keys(self, first: int, sources: int, count: int) -> Numbers | None:
        """Return the keys of the ends of a batch of sources; None if all nodes are wanted."""
        if self.pairs is not None:
            at = self.pairs[0] - first
            here = (at >= 0) & (at < sources)
            return at[here] * count + self.pairs[1][here]
        if self.nodes is None:
            return None
        return (np.arange(sources)[:, None] * count + np.flatnonzero(self.nodes)).ravel()

    def mask(self, source: int, count: int) -> Mask | None:
        """Return a mask of the ends of one source; None if all nodes are wanted."""
        if self.pairs is None:
            return self.nodes
        asked = np.zeros(count, bool)
        asked[self.pairs[1][self.pairs[0] == source]] = True
        return asked

    def few_pairs(self, sources: int) -> list[tuple[int, int]] | None:
        """Return the pairs (source position, end) if there are few; else None."""
        pairs_max = tuning.current.bidirectional_pairs_max
        if self.pairs is not None:
            at, ends = self.pairs
            return list(zip(at.tolist(), ends.tolist(), strict=True)) if len(at) <= pairs_max else None
        if self.nodes is None or sources > pairs_max:
            return None
        ends = np.flatnonzero(self.nodes)
        return list(product(range(sources), ends.tolist())) if sources * len(ends) <= pairs_max else None


@dataclass(frozen=True)
class Distances:
    """Ends that were found: source position, node, number of edges and weight."""

    at: Numbers
    ends: Numbers
    lengths: Numbers
    weights: Floats | None = None


def distances(
    onward: Neighbours, backward: Neighbours, sources: Numbers, wanted: Targets, most: int
) -> Iterator[Distances]:
    """Yield the least number of edges from each source to its ends."""
    few_pairs = wanted.few_pairs(len(sources))
    if few_pairs is not None:
        met = [meeting(onward, backward, int(sources[at]), end, most) for at, end in few_pairs]
        found = [(*pair, one.distance) for pair, one in zip(few_pairs, met, strict=True) if one is not None]
        yield Distances(*np.array(found, np.int64).reshape(-1, 3).T)
        return
    for at, source in enumerate(sources.tolist()):
        asked = wanted.mask(at, onward.count)
        for number, level in enumerate(levels_from(onward, source, most, asked), 1):
            ends = level if asked is None else level[asked[level]]
            yield Distances(np.full(len(ends), at), ends.astype(np.int64), np.full(len(ends), number))


def _beyond(left: np.ndarray[Any, np.dtype[np.int32]], known: int, nodes: Numbers) -> Mask:
    """Return a mask of the nodes that are farther away than `known`."""
    beyond: Mask = left[nodes] > known
    return beyond


@dataclass(frozen=True)
class Meeting:
    """The distance of two nodes, and for each node a lower bound of its distance to the second."""

    distance: int
    left: np.ndarray[Any, np.dtype[np.int32]]


def meeting(onward: Neighbours, backward: Neighbours, source: int, target: int, most: int) -> Meeting | None:
    """Search from both ends, the smaller frontier first; None if they are not connected within `most` edges."""
    if source == target:
        return None
    left = np.full(onward.count, most + 1, np.int32)
    left[target] = 0
    seen = np.zeros(onward.count, bool)
    seen[source] = True
    ahead, behind = np.array([source]), np.array([target])
    steps, known = 0, 0
    while steps + known < most and len(ahead) and len(behind):
        checkpoint()
        if int(onward.degrees(ahead).sum()) <= int(backward.degrees(behind).sum()):
            ahead = new_neighbours(onward, ahead, lambda far: ~seen[far])
            seen[ahead] = True
            steps += 1
            met = bool((left[ahead] <= known).any())
        else:
            known += 1
            behind = new_neighbours(backward, behind, partial(_beyond, left, known))
            left[behind] = known
            met = bool(seen[behind].any())
        if met:
            left[left > known] = known + 1
            return Meeting(steps + known, left)
    return None
