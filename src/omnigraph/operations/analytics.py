"""Runs a graph algorithm and optionally writes its values to node properties, as one commit.

The input is a set of node types and edge types. Nodes of all types share one numbering, so a rank flows across types.
Only rows whose value changed are written, so a second run on the same graph writes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.adjacency import algorithms
from omnigraph.engine.adjacency.adjacency import EdgeAdjacency
from omnigraph.engine.adjacency.algorithms import EdgeList, Floats
from omnigraph.engine.cache.table_cache import Mask, Numbers
from omnigraph.engine.cache.visibility import StoredTable, base_of
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.engine.write.constraints import check_delta
from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.errors import Denied, InputError, TypeNotFound
from omnigraph.operations.graph_context import GraphContext
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.idempotency import hash_request
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write_once

if TYPE_CHECKING:
    from omnigraph.engine.write.row_guard import GuardedWrite

RowsOfNodes = np.ndarray[Any, np.dtype[np.int32]]
"""Row numbers of nodes, one for each edge."""
Algorithm = Literal["pagerank", "components", "degrees"]
Type = TypeVar("Type", NodeType, EdgeType)
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "pagerank": ("pagerank",),
    "components": ("component",),
    "degrees": ("in_degree", "out_degree", "degree"),
}


@dataclass(frozen=True)
class AnalysisRequest:
    """An algorithm, the part of the graph it runs on, and its parameters."""

    algorithm: str
    """"pagerank", "components" or "degrees"."""
    nodes: Sequence[str] | None = None
    """Node types; by default the end types of the edge types."""
    edges: Sequence[str] | None = None
    """Edge types; by default all between the node types."""
    weight: str | None = None
    """Edge property with the weight of an edge; PageRank only."""
    damping: float = 0.85
    tolerance: float = 1e-9
    rounds_max: int = 100


@dataclass(frozen=True)
class Analysis:
    """Values of an algorithm: a table of ids and values per node type."""

    algorithm: Algorithm
    tables: Mapping[str, pa.Table]
    stats: Mapping[str, int]
    commit_id: str | None
    """The commit that wrote the values; without a write, the commit they were computed at."""
    rows_written: int = 0

    def top(self, name: str, count: int) -> list[dict[str, Any]]:
        """Return the nodes of a type with the largest values; for components, those of the first components."""
        table = self.tables[name]
        order = "ascending" if self.algorithm == "components" else "descending"
        ranked = table.sort_by([(table.column_names[-1], order), ("id", "ascending")]).slice(0, count)
        return [dict(row) for row in ranked.to_pylist()]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form, with counts instead of rows."""
        return {
            "algorithm": self.algorithm,
            "nodes": {name: table.num_rows for name, table in self.tables.items()},
            "stats": dict(self.stats),
            "rows_written": self.rows_written,
            "commit_id": self.commit_id,
        }


class Solver(Protocol):
    """Runs algorithms on one graph, whose nodes are numbered by type and row."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""

    @property
    def edges(self) -> int:
        """Number of edges."""

    def pagerank(self, *, damping: float, tolerance: float, rounds_max: int) -> tuple[Floats, int]:
        """Return the PageRank of every node and the number of rounds."""

    def components(self) -> Numbers:
        """Return the number of the connected component of every node."""

    def degrees(self) -> tuple[Numbers, Numbers]:
        """Return the in-degree and the out-degree of every node."""


Solve = Callable[[Snapshot, list[NodeType], list[EdgeType], str | None], Solver]
"""(snapshot, node types, edge types, weight) → a solver; by default one on arrays in this process."""


class _ArraySolver:
    """Solver on arrays in this process."""

    def __init__(self, graph: EdgeList) -> None:
        self._graph = graph
        self.nodes = graph.count
        self.edges = len(graph.sources)

    def pagerank(self, *, damping: float, tolerance: float, rounds_max: int) -> tuple[Floats, int]:
        run = partial(algorithms.pagerank, damping=damping, tolerance=tolerance, rounds_max=rounds_max)
        return interruptible(partial(run, self._graph), self.edges)

    def components(self) -> Numbers:
        return interruptible(partial(algorithms.components, self._graph), self.edges)

    def degrees(self) -> tuple[Numbers, Numbers]:
        return interruptible(partial(algorithms.degrees, self._graph), self.edges)


def analyze(
    context: GraphContext, snapshot: Snapshot, request: AnalysisRequest, solve: Solve | None = None
) -> Analysis:
    """Run an algorithm on a snapshot; nothing is written."""
    algorithm = check_analysis(request)
    nodes, edges = _chosen(context.catalog(snapshot), request)
    tables = _AnalysisTables(context, snapshot)
    if solve is None:
        solver: Solver = _ArraySolver(_edge_list(tables, nodes, edges, request.weight))
    elif tables.view is not None:
        raise Denied("an analysis on Spark applies no rules for rows and properties, and rules limit what you may see")
    else:
        solver = solve(snapshot, nodes, edges, request.weight)
    stats = {"nodes": solver.nodes, "edges": solver.edges}
    values: tuple[Numbers | Floats, ...]
    if algorithm == "pagerank":
        ranks, stats["rounds"] = solver.pagerank(
            damping=request.damping, tolerance=request.tolerance, rounds_max=request.rounds_max
        )
        values = (ranks,)
    elif algorithm == "components":
        found = solver.components()
        stats["components"] = int(found.max()) + 1 if len(found) else 0
        values = (found,)
    else:
        incoming, outgoing = solver.degrees()
        stats["largest_degree"] = int((incoming + outgoing).max(initial=0))
        values = (incoming, outgoing, incoming + outgoing)
    found_tables, first = {}, 0
    for node in nodes:
        ids = tables.ids(node)
        parts = [pa.array(column[first : first + len(ids)]) for column in values]
        found_tables[node.name] = pa.table([ids, *parts], names=["id", *COLUMNS[algorithm]])
        first += len(ids)
    return Analysis(algorithm, found_tables, stats, snapshot.commit_id)


class _AnalysisTables:
    """The tables of a snapshot, or what the caller may see of them; visible nodes are numbered from 0."""

    def __init__(self, context: GraphContext, snapshot: Snapshot) -> None:
        self.view = context.view(snapshot)
        self._cache = context.cache
        self._snapshot = snapshot

    def _table(self, key: str) -> StoredTable:
        if self.view is not None:
            return self.view.context.type_table(key)
        return self._cache.table(self._snapshot.table(key))

    def count(self, node: NodeType) -> int:
        """Return the number of visible nodes."""
        data = self._table(node.table_key)
        return data.row_count if data.visible is None else int(np.count_nonzero(data.visible))

    def ids(self, node: NodeType) -> pa.Array:
        """Return the ids of the visible nodes."""
        data = self._table(node.table_key)
        return data.column("id") if data.visible is None else data.column("id").filter(pa.array(data.visible))

    def ends(self, edge: EdgeType) -> tuple[RowsOfNodes, RowsOfNodes]:
        """Return the numbers of the sources and targets of the visible edges."""
        data = self._table(edge.table_key)
        tables = [self._table(TableKey.node(name)) for name in (edge.from_type, edge.to_type)]
        ends = EdgeAdjacency(base_of(data), base_of(tables[0]), base_of(tables[1]), self._cache).ends()
        seen = data.visible
        source, target = (
            _renumbered(of_edge if seen is None else of_edge[seen], table.visible)
            for of_edge, table in zip(ends, tables, strict=True)
        )
        return source, target

    def values(self, edge: EdgeType, name: str) -> pa.Array:
        """Return the values of a property of the visible edges."""
        data = self._table(edge.table_key)
        return data.column(name) if data.visible is None else data.column(name).filter(pa.array(data.visible))


def _renumbered(rows: RowsOfNodes, seen: Mask | None) -> RowsOfNodes:
    """Return the positions of rows among the visible ones."""
    return rows if seen is None else (np.cumsum(seen, dtype=np.int32) - np.int32(1))[rows]


def check_analysis(request: AnalysisRequest) -> Algorithm:
    """Return the requested algorithm; an unknown one, or a parameter out of range, raises `InputError`."""
    algorithm = request.algorithm
    if algorithm not in get_args(Algorithm):
        raise InputError(
            f"there is no algorithm '{algorithm}'",
            hint=did_you_mean(algorithm, COLUMNS) or f"the algorithms are {', '.join(COLUMNS)}",
        )
    if request.weight is not None and algorithm != "pagerank":
        raise InputError(f"'{algorithm}' takes no weight", hint="leave weight out, or run 'pagerank'")
    if not 0 <= request.damping < 1:
        raise InputError(f"the damping {request.damping} is not between 0 and 1", hint="0.85 is usual")
    return cast(Algorithm, algorithm)


def analyze_and_write(
    context: GraphContext,
    request: AnalysisRequest,
    into: str | Mapping[str, str],
    options: WriteOptions,
    solve: Solve | None = None,
) -> Analysis:
    """Run an algorithm on a branch's head and set the properties that `into` names, as one commit.

    `into` is the property for an algorithm with one result column, else a mapping of column to property.
    A repetition with the same idempotency key writes nothing; the values are computed again on the commit of the first
    call. A call that changes no value is evaluated again.
    """
    arguments = request.algorithm, request.nodes, request.edges, request.weight, request.damping, into
    options = replace(options, request_hash=hash_request("analyze", options.branch, *arguments))
    analysis: Analysis | None = None
    rows_written = 0

    def prepare(transaction: Transaction) -> None:
        nonlocal analysis, rows_written
        catalog = context.catalogs.of(transaction.snapshot)
        analysis = analyze(context, transaction.snapshot, request, solve)
        targets = _targets(analysis.algorithm, into)
        pending = WriteOverlay(transaction.snapshot)
        guard = _guarded(context, transaction.snapshot, pending)
        visible = context.catalog(transaction.snapshot)
        rows_written = 0
        for name, values in analysis.tables.items():
            node = catalog.nodes[name]
            _check_targets(visible.nodes[name], values, targets)
            # Values that the caller cannot read are not compared.
            masked = guard is not None and guard.withholds(node, targets.values())
            rows = _changed(node, pending, values, targets, every=masked)
            rows_written += rows.num_rows
            if rows.num_rows:
                pending.table(TableKey.node(name)).put(rows)
                if guard is not None:
                    guard.assigned(node, targets.values(), rows)
        check_delta(catalog, pending.delta(guard=guard))
        for table in pending.changed_tables():
            transaction.change(table.key, table.change())
        transaction.options = replace(transaction.options, result={"rows_written": rows_written})

    commit, earlier = write_once(context.repository, prepare, replace(options, kind="analysis"))
    if earlier is not None and commit is not None:
        analysis = analyze(context, context.repository.snapshot(at=commit.id), request, solve)
        rows_written = earlier.result["rows_written"]
    assert analysis is not None
    return replace(analysis, rows_written=rows_written, commit_id=commit.id if commit else None)


def _guarded(context: GraphContext, snapshot: Snapshot, pending: WriteOverlay) -> GuardedWrite | None:
    rules = context.guard_of(snapshot)
    if rules is None:
        return None
    from omnigraph.engine.write.row_guard import GuardedWrite  # noqa: PLC0415 (only for a guard)

    return GuardedWrite(rules, context.catalogs.of(snapshot), pending)


def _chosen(catalog: Catalog, request: AnalysisRequest) -> tuple[list[NodeType], list[EdgeType]]:
    nodes = _named(request.nodes, catalog.nodes, "node")
    edges = _named(request.edges, catalog.edges, "edge")
    if nodes is None and edges is None:
        return [*catalog.nodes.values()], [*catalog.edges.values()]
    if edges is None:
        names = {node.name for node in nodes or ()}
        return nodes or [], [e for e in catalog.edges.values() if {e.from_type, e.to_type} <= names]
    ends = [end for edge in edges for end in (edge.from_type, edge.to_type)]
    if nodes is None:
        return [catalog.nodes[end] for end in dict.fromkeys(ends)], edges
    names = {node.name for node in nodes}
    for edge in edges:
        for end in (edge.from_type, edge.to_type):
            if end not in names:
                raise InputError(
                    f"edge '{edge.name}' ends at '{end}', which is not among the node types", hint=f"add '{end}'"
                )
    return nodes, edges


def _named(names: Sequence[str] | None, known: Mapping[str, Type], kind: str) -> list[Type] | None:
    if names is None:
        return None
    for name in names:
        if name not in known:
            raise TypeNotFound(f"the schema has no {kind} type '{name}'", hint=did_you_mean(name, known))
    return [known[name] for name in dict.fromkeys(names)]


def _edge_list(tables: _AnalysisTables, nodes: list[NodeType], edges: list[EdgeType], weight: str | None) -> EdgeList:
    counts = [tables.count(node) for node in nodes]
    first = dict(zip((node.name for node in nodes), np.cumsum([0, *counts]).tolist(), strict=False))
    sources, targets, weights = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0)]
    for edge in edges:
        src, dst = tables.ends(edge)
        sources.append(src + first[edge.from_type])
        targets.append(dst + first[edge.to_type])
        if weight is not None:
            check_weight(edge, weight)
            weights.append(_weights(edge, tables.values(edge, weight), weight))
    weighting = np.concatenate(weights) if weight is not None else None
    return EdgeList(sum(counts), np.concatenate(sources), np.concatenate(targets), weighting)


def check_weight(edge: EdgeType, name: str) -> None:
    """Raise `InputError` if a property of an edge type cannot be a weight."""
    if name not in edge.properties:
        raise InputError(f"edge '{edge.name}' has no property '{name}'", hint=did_you_mean(name, edge.properties))
    if not (edge.properties[name].type.is_integer or edge.properties[name].type.is_float):
        raise InputError(f"'{edge.name}.{name}' is {edge.properties[name].type}; a weight must be a number")


def wrong_weights(edges: Sequence[EdgeType], name: str) -> InputError:
    """Return the error for weights that are negative or not finite."""
    names = " or ".join(f"'{edge.name}.{name}'" for edge in edges)
    return InputError(f"{names} has values below zero or not finite", hint="weights are 0 or more; null is 0")


def _weights(edge: EdgeType, column: pa.Array, name: str) -> Floats:
    values: Floats = pc.fill_null(column, 0).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    if not (np.isfinite(values) & (values >= 0)).all():
        raise wrong_weights([edge], name)
    return values


def _targets(algorithm: Algorithm, into: str | Mapping[str, str]) -> Mapping[str, str]:
    columns = COLUMNS[algorithm]
    if isinstance(into, str):
        if len(columns) > 1:
            raise InputError(
                f"'{algorithm}' has {len(columns)} result columns",
                hint=f"name the property of each: {{'{columns[0]}': '{into}'}}",
            )
        return {columns[0]: into}
    for column in into:
        if column not in columns:
            raise InputError(
                f"'{algorithm}' has no result column '{column}'", hint=f"the columns are {', '.join(columns)}"
            )
    return into


def _check_targets(node: NodeType, values: pa.Table, targets: Mapping[str, str]) -> None:
    for column, name in targets.items():
        _check_target(node, name, values.schema.field(column).type)


def _changed(
    node: NodeType, pending: WriteOverlay, values: pa.Table, targets: Mapping[str, str], *, every: bool
) -> pa.Table:
    """Return the rows of a table whose values change, with the new values; with `every`, all that have values."""
    table = pending.table(node.table_key)
    now = table.committed.read(["id", *targets.values()])
    place = pc.index_in(now["id"], value_set=one_array(values["id"]))
    columns = {name: values[column].take(place) for column, name in targets.items()}
    columns = {name: column.cast(arrow_type(node.properties[name].type)) for name, column in columns.items()}
    differs: Any = pa.chunked_array([np.full(now.num_rows, every)])
    for name, column in columns.items():
        differs = pc.or_(differs, pc.fill_null(pc.not_equal(now[name], column), True))
    differs = pc.and_(differs, pc.is_valid(place))
    if not pc.any(differs).as_py():
        return table.schema.empty_table()
    rows = table.committed.read(table.schema.names)
    for name, column in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), table.schema.field(name), column)
    return rows.filter(differs)


def _check_target(node: NodeType, name: str, found: pa.DataType) -> None:
    kind = "F64" if pa.types.is_floating(found) else "I64"
    property_ = node.properties.get(name)
    if property_ is None:
        raise InputError(
            f"node '{node.name}' has no property '{name}' to write to",
            hint=did_you_mean(name, node.properties) or f"add '{name}: {kind}?' to '{node.name}' and apply the schema",
        )
    fits = property_.type.is_float if kind == "F64" else property_.type.is_integer
    if not fits or name in node.key:
        what = "a key" if name in node.key else f"of type {property_.type}"
        raise InputError(f"'{node.name}.{name}' is {what}; the values are {kind}", hint=f"declare '{name}: {kind}?'")
