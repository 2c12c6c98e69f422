"""The changes between two points as a graph: changed nodes and edges, and one ring of unchanged neighbours.

All changes are counted; the graph holds the first ones. Unchanged edges and neighbours are those of the second point.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from omnigraph.checkpoints import paced
from omnigraph.errors import InputError
from omnigraph.fast_dataclass import dataclass
from omnigraph.operations.exploration.neighbors import NeighborRequest, some_neighbors
from omnigraph.operations.exploration.rows_by_id import rows_by_id
from omnigraph.operations.graph_context import GraphContext
from omnigraph.schema.catalog import Catalog
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.diff import RowChange
from omnigraph.versioning.compare.rows import ToJson
from omnigraph.versioning.model.snapshot import Snapshot

GRAPH_LIMIT_MAX = 1_000
_NEAR_MAX = 20
"""Unchanged edges that are read of one changed node."""

NodeName = tuple[str, str]
"""Type and id."""
ChangeOp = Literal["insert", "update", "delete"]


@dataclass(frozen=True)
class DiffSummary:
    """The numbers of changes between two points, by table and operation."""

    tables: dict[str, dict[str, int]]
    schema_steps: tuple[str, ...]
    commits: tuple[str, str]

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "tables": self.tables,
            "schema_steps": list(self.schema_steps),
            "from_commit_id": self.commits[0],
            "to_commit_id": self.commits[1],
        }


@dataclass(frozen=True)
class DiffNode:
    """A node of the graph; `op` is None for an unchanged neighbour. A deleted node has its last values."""

    type: str
    id: str
    op: ChangeOp | None
    row: dict[str, Any]


@dataclass(frozen=True)
class DiffEdge:
    """An edge of the graph; `op` is None for an unchanged one."""

    type: str
    id: str
    op: ChangeOp | None
    source: NodeName
    target: NodeName


@dataclass(frozen=True)
class DiffGraph:
    """Changed nodes and edges, the edges among them, and one ring of unchanged neighbours."""

    nodes: tuple[DiffNode, ...]
    edges: tuple[DiffEdge, ...]
    summary: DiffSummary
    changes_omitted: int
    """Changes that are counted in the summary and not shown."""
    neighbors_omitted: bool
    """True if some unchanged neighbours are not shown."""

    def to_json(self, value: ToJson = lambda value: value) -> dict[str, Any]:
        """Return the JSON form; `value` converts the values of properties."""
        return {
            "nodes": [
                {
                    "type": node.type,
                    "id": node.id,
                    "op": node.op,
                    "data": {name: value(each) for name, each in node.row.items() if name != "id"},
                }
                for node in self.nodes
            ],
            "edges": [
                {
                    "type": edge.type,
                    "id": edge.id,
                    "op": edge.op,
                    "source": {"type": edge.source[0], "id": edge.source[1]},
                    "target": {"type": edge.target[0], "id": edge.target[1]},
                }
                for edge in self.edges
            ],
            "changes_omitted": self.changes_omitted,
            "neighbors_omitted": self.neighbors_omitted,
            **self.summary.to_json(),
        }


def check_graph_limit(limit: int) -> int:
    """Return the largest number of changes of a graph; `InputError` if it is not valid."""
    if type(limit) is not int or not 1 <= limit <= GRAPH_LIMIT_MAX:
        raise InputError(f"the limit must be an integer from 1 to {GRAPH_LIMIT_MAX} (got {limit!r})", code="bad_page")
    return limit


class DiffGraphBuilder:
    """Collects the first changes and counts all of them."""

    def __init__(self, context: GraphContext, after: Snapshot, limit: int) -> None:
        self._context = context
        self._after = after
        self._catalog: Catalog = context.catalog(after)
        self._limit = limit
        self.counts: dict[str, dict[str, int]] = {}
        self._nodes: dict[NodeName, DiffNode] = {}
        self._edges: dict[NodeName, DiffEdge] = {}
        self._omitted = 0
        self._cut = False

    def add(self, changes: Iterable[RowChange]) -> None:
        """Count changes, and keep the first ones."""
        for change in paced(changes):
            ops = self.counts.setdefault(change.table_key, {"insert": 0, "update": 0, "delete": 0})
            ops[change.op] += 1
            if not self._keep(change):
                self._omitted += 1

    def _keep(self, change: RowChange) -> bool:
        """Keep a change; False if there are enough, or if the second schema does not have the type of an edge."""
        kind, name = TableKey.parse(change.table_key).parts
        row = change.after or change.before or {}
        if len(self._nodes if kind == "node" else self._edges) >= self._limit:
            return False
        if kind == "node":
            self._nodes[name, change.id] = DiffNode(name, change.id, change.op, _shown(row))
            return True
        edge = self._catalog.edges.get(name)
        if edge is None:
            return False
        ends = (edge.from_type, row["src"]), (edge.to_type, row["dst"])
        self._edges[name, change.id] = DiffEdge(name, change.id, change.op, *ends)
        return True

    def finish(self, summary: DiffSummary) -> DiffGraph:
        """Add the unchanged surroundings and return the graph."""
        changed = list(self._nodes.values())
        for node in changed:
            if node.op != "delete" and node.type in self._catalog.nodes:
                self._surround(node)
        self._fill_ends()
        nodes = tuple(self._nodes.values())
        return DiffGraph(nodes, tuple(self._edges.values()), summary, self._omitted, self._cut)

    def _surround(self, node: DiffNode) -> None:
        """Add the edges of a node and the nodes at their other ends."""
        request = NeighborRequest(node.type, node.id)
        found = some_neighbors(self._context, self._after, request, 0, _NEAR_MAX + 1)
        self._cut = self._cut or len(found) > _NEAR_MAX
        for near in found[:_NEAR_MAX]:
            far = (near.type, near.id)
            if far not in self._nodes:
                if len(self._nodes) >= 2 * self._limit:
                    self._cut = True
                    continue
                self._nodes[far] = DiffNode(*far, None, near.row)
            own = (node.type, node.id)
            ends = (own, far) if near.direction == "out" else (far, own)
            self._edges.setdefault(
                (near.edge, near.edge_row["id"]), DiffEdge(near.edge, near.edge_row["id"], None, *ends)
            )

    def _fill_ends(self) -> None:
        """Add the ends of changed edges that are not yet part of the graph; those that are gone stay absent."""
        missing = {end for edge in self._edges.values() for end in (edge.source, edge.target) if end not in self._nodes}
        for name in sorted({type_name for type_name, _ in missing}):
            ids = sorted(id_ for type_name, id_ in missing if type_name == name)
            for row in rows_by_id(self._context, self._after, TableKey.node(name), ids):
                self._nodes[name, row["id"]] = DiffNode(name, row["id"], None, row)


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without vectors and Blobs, which are long lists and bytes."""
    return {
        name: value
        for name, value in row.items()
        if not isinstance(value, bytes) and not (isinstance(value, list) and value and isinstance(value[0], float))
    }
