"""Runs a graph algorithm on a snapshot, in this process or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.engine.algorithms.orders import CycleFound
from omnigraph.engine.algorithms.registry import Outcome
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.errors import Denied, InputError
from omnigraph.operations.analysis.input_graph import AnalysisTables, chosen_types, edge_list
from omnigraph.operations.analysis.request import Analysis, AnalysisRequest
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.period_graphs import refuse_periods
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.versioning.model.snapshot import Snapshot

_SHOWN_MAX = 8
"""Number of nodes of a cycle that an error shows."""


class Solver(Protocol):
    """Runs algorithms on one graph, whose nodes are numbered by type and row."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""

    @property
    def edges(self) -> int:
        """Number of edges."""

    def run(self, algorithm: str, parameters: Mapping[str, Any]) -> Outcome:
        """Run an algorithm."""


Solve = Callable[[Snapshot, list[NodeType], list[EdgeType], str | None], Solver]
"""(snapshot, node types, edge types, weight) → a solver on Spark."""


def analyze(
    context: GraphContext, snapshot: Snapshot, request: AnalysisRequest, solve: Solve | None = None
) -> Analysis:
    """Run an algorithm on a snapshot; nothing is written."""
    parameters = request.check()
    nodes, edges = chosen_types(context.catalog(snapshot), request)
    refuse_periods(context.catalog(snapshot), edges)
    tables = AnalysisTables(context, snapshot)
    try:
        if solve is not None:
            outcome, counts = _on_spark(tables, request, solve(snapshot, nodes, edges, request.weight), parameters)
        else:
            graph = edge_list(tables, nodes, edges, request.weight)
            counts = {"nodes": graph.count, "edges": len(graph.sources)}
            outcome = interruptible(partial(request.spec.run, graph, parameters), len(graph.sources))
    except CycleFound as found:
        raise _cycle_error(tables, nodes, found.nodes) from None
    found_tables = _tables(tables, request, nodes, edges, outcome)
    return Analysis(request.algorithm, found_tables, {**counts, **outcome.stats}, snapshot.commit_id)


def _on_spark(
    tables: AnalysisTables, request: AnalysisRequest, solver: Solver, parameters: Mapping[str, Any]
) -> tuple[Outcome, dict[str, int]]:
    if tables.view is not None:
        raise Denied("an analysis on Spark applies no rules for rows and properties, and rules limit what you may see")
    return solver.run(request.algorithm, parameters), {"nodes": solver.nodes, "edges": solver.edges}


def _tables(
    tables: AnalysisTables, request: AnalysisRequest, nodes: list[NodeType], edges: list[EdgeType], outcome: Outcome
) -> dict[str, pa.Table]:
    """Return the values by type."""
    if request.spec.subject == "pairs":
        return _pair_tables(tables, request, nodes, outcome)
    found, first = {}, 0
    for of_type in nodes if request.spec.subject == "nodes" else edges:
        ids = tables.ids(of_type)
        parts = [_column(values[first : first + len(ids)]) for values in outcome.values]
        found[of_type.name] = pa.table([ids, *parts], names=["id", *request.spec.columns])
        first += len(ids)
    return found


def _pair_tables(
    tables: AnalysisTables, request: AnalysisRequest, nodes: list[NodeType], outcome: Outcome
) -> dict[str, pa.Table]:
    """Return the pairs of nodes of the same type."""
    firsts, others, values = outcome.values
    found, start = {}, 0
    for node in nodes:
        ids = tables.ids(node)
        own = (firsts >= start) & (firsts < start + len(ids)) & (others >= start) & (others < start + len(ids))
        ends = [ids.take(pa.array(numbers[own] - start)) for numbers in (firsts, others)]
        found[node.name] = pa.table([*ends, pa.array(values[own])], names=list(request.spec.columns))
        start += len(ids)
    return found


def _column(values: np.ndarray[Any, Any]) -> pa.Array:
    if values.ndim == 1:
        return pa.array(values)
    return pa.FixedSizeListArray.from_arrays(pa.array(values.reshape(-1)), values.shape[1])


def _cycle_error(tables: AnalysisTables, nodes: list[NodeType], cycle: list[int]) -> InputError:
    starts = np.cumsum([0, *(tables.count(node) for node in nodes)])
    names = []
    for number in cycle[:_SHOWN_MAX]:
        at = int(np.searchsorted(starts, number, side="right")) - 1
        names.append(f"{nodes[at].name} '{tables.ids(nodes[at])[number - int(starts[at])].as_py()}'")
    more = f" → {len(cycle) - _SHOWN_MAX} more" if len(cycle) > _SHOWN_MAX else ""
    return InputError(
        f"the edges form a cycle, so there is no order: {' → '.join(names)}{more} → {names[0]}",
        hint="leave out the edge type that closes the cycle, or remove one of these edges",
    )
