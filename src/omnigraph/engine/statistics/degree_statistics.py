"""Degrees of the nodes at one end of an edge type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.statistics.sampling import estimated_total, frequencies

_SKEW = 2.0
"""Assumed ratio of the size-biased degree to the mean if the degrees were not counted."""


@dataclass(frozen=True)
class DegreeStatistics:
    """The distribution of the degrees of the nodes of one table along one edge type."""

    nodes: int
    edges: int
    linked: float
    """The share of nodes with an edge."""
    biased: float
    """The mean degree of the node at a random edge: the second moment by the first."""
    largest: int
    """The largest degree; a lower estimate if the edges were sampled."""

    @property
    def mean(self) -> float:
        """The mean degree."""
        return self.edges / self.nodes if self.nodes else 0.0

    @property
    def skew(self) -> float:
        """The ratio of the size-biased degree to the mean."""
        return max(self.biased / self.mean, 1.0) if self.edges and self.nodes else 1.0

    @property
    def nbytes(self) -> int:
        """The size in memory; it counts as an entry without arrays."""
        return 0

    @classmethod
    def of(cls, ends: pa.Array, edges: int, nodes: int) -> DegreeStatistics:
        """Return the degrees from the node ids at one end of all edges, or of a sample of them."""
        counts = frequencies(ends).astype(np.float64)
        sample = len(ends)
        if not sample or not edges:
            return cls(nodes, edges, 0.0, 0.0, 0)
        # Two random edges share their node with the probability Σ d(d-1) / e(e-1), in the table as in the sample.
        pairs = float(np.dot(counts, counts - 1))
        biased = 1 + pairs * (edges - 1) / (sample * (sample - 1)) if sample > 1 else 1.0
        once, twice = (int(np.count_nonzero(counts == count)) for count in (1, 2))
        linked = estimated_total(once, twice, len(counts), sample, edges) / max(nodes, 1)
        largest = counts.max()
        if sample < edges:
            largest = max(largest, (largest - math.sqrt(largest)) * edges / sample)
        return cls(nodes, edges, min(linked, 1.0), biased, round(largest))

    @classmethod
    def assumed(cls, edges: int, nodes: int) -> DegreeStatistics:
        """Derive the statistics from row counts alone."""
        mean = edges / nodes if nodes else 0.0
        return cls(nodes, edges, min(mean, 1.0), _SKEW * mean, edges)

    def scaled(self, edges: int, nodes: int) -> DegreeStatistics:
        """Return the statistics of tables of other sizes with the same distribution."""
        if (edges, nodes) == (self.edges, self.nodes) or not self.mean or not nodes:
            return self
        growth = edges / nodes / self.mean
        biased = 1 + (self.biased - 1) * growth
        return replace(self, edges=edges, nodes=nodes, biased=biased, largest=round(self.largest * max(growth, 1.0)))

    # -- stored form -----------------------------------------------------------------------------

    def pack(self) -> list[Any]:
        """Return the statistics as a list of plain values."""
        return [self.nodes, self.edges, self.linked, self.biased, self.largest]

    @classmethod
    def unpack(cls, packed: Sequence[Any]) -> DegreeStatistics:
        """Return the statistics from their stored form; raise `ValueError` or `TypeError` if it is malformed."""
        nodes, edges, linked, biased, largest = packed
        if min(nodes, edges, biased, largest) < 0 or not 0 <= linked <= 1:
            raise ValueError("a degree is out of range")
        return cls(nodes, edges, linked, biased, largest)
