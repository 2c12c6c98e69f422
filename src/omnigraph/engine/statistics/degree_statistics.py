"""Degrees of the nodes at one end of an edge type."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

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

    @property
    def rows(self) -> int:
        """The number of rows that the statistics describe."""
        return self.edges

    @property
    def mean(self) -> float:
        """The mean degree."""
        return self.edges / self.nodes if self.nodes else 0.0

    @property
    def skew(self) -> float:
        """The ratio of the size-biased degree to the mean."""
        return max(self.biased / self.mean, 1.0) if self.edges else 1.0

    @classmethod
    def counted(cls, ends: np.ndarray[Any, Any], nodes: int) -> DegreeStatistics:
        """Count the degrees from the node of each edge."""
        degrees = np.bincount(ends[ends >= 0], minlength=nodes)
        edges = int(degrees.sum())
        square = float(np.dot(degrees.astype(np.float64), degrees))
        return cls(
            nodes,
            edges,
            float(np.count_nonzero(degrees)) / max(nodes, 1),
            square / edges if edges else 0.0,
            int(degrees.max(initial=0)),
        )

    @classmethod
    def assumed(cls, edges: int, nodes: int) -> DegreeStatistics:
        """Derive the statistics from row counts alone."""
        mean = edges / nodes if nodes else 0.0
        return cls(nodes, edges, min(mean, 1.0), _SKEW * mean, edges)
