"""A request for a graph algorithm, and its result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from omnigraph.engine.algorithms.registry import AlgorithmSpec, check_parameters, find_algorithm
from omnigraph.errors import InputError


@dataclass(frozen=True)
class AnalysisRequest:
    """An algorithm, the part of the graph it runs on, and its parameters."""

    algorithm: str
    nodes: Sequence[str] | None = None
    """Node types; by default the end types of the edge types."""
    edges: Sequence[str] | None = None
    """Edge types; by default all between the node types."""
    weight: str | None = None
    """Edge property with the weight of an edge."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that differ from their defaults."""

    @classmethod
    def of(
        cls,
        algorithm: str,
        nodes: Sequence[str] | None,
        edges: Sequence[str] | None,
        weight: str | None,
        damping: float | None,
        parameters: Mapping[str, Any] | None,
    ) -> AnalysisRequest:
        """Return a request with the arguments of `Graph.analyze`."""
        given = dict(parameters or {})
        if damping is not None:
            given["damping"] = damping
        return cls(algorithm, nodes, edges, weight, given)

    @property
    def spec(self) -> AlgorithmSpec:
        """The algorithm; an unknown name raises `InputError`."""
        return find_algorithm(self.algorithm)

    def check(self) -> dict[str, Any]:
        """Return all parameters; an unknown algorithm, or a value that it does not accept, raises `InputError`."""
        if self.weight is not None and not self.spec.takes_weight:
            raise InputError(f"'{self.algorithm}' takes no weight", hint="leave weight out, or run 'pagerank'")
        return check_parameters(self.algorithm, self.parameters)


@dataclass(frozen=True)
class Analysis:
    """The values of an algorithm: a table per node type, for a spanning tree per edge type."""

    algorithm: str
    tables: Mapping[str, pa.Table]
    """Type → ids and values. The tables of similar nodes have the columns `from`, `to` and `similarity`."""
    stats: Mapping[str, int | float]
    commit_id: str | None
    """The commit that wrote the values; without a write, the commit they were computed at."""
    rows_written: int = 0

    def top(self, name: str, count: int) -> list[dict[str, Any]]:
        """Return the rows of a type with the largest values; of components, communities and orders, the smallest."""
        table, spec = self.tables[name], find_algorithm(self.algorithm)
        first, last = table.column_names[0], table.column_names[-1]
        if pa.types.is_fixed_size_list(table.schema.field(last).type):
            ranked = table.sort_by(first)
        else:
            ranked = table.sort_by([(last, "ascending" if spec.ascending else "descending"), (first, "ascending")])
        return [dict(row) for row in ranked.slice(0, count).to_pylist()]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, with counts instead of rows."""
        return {
            "algorithm": self.algorithm,
            "nodes": {name: table.num_rows for name, table in self.tables.items()},
            "stats": dict(self.stats),
            "rows_written": self.rows_written,
            "commit_id": self.commit_id,
        }
