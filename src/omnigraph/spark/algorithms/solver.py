"""The algorithms on Spark by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.engine.algorithms.registry import Outcome, find_algorithm
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Watch
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.spark.algorithms.centrality import betweenness, closeness
from omnigraph.spark.algorithms.communities import label_propagation, louvain
from omnigraph.spark.algorithms.components import components
from omnigraph.spark.algorithms.cores import core_numbers
from omnigraph.spark.algorithms.degrees import degrees
from omnigraph.spark.algorithms.edge_frames import EdgeFrames
from omnigraph.spark.algorithms.embeddings import walk_embeddings
from omnigraph.spark.algorithms.orders import topological_order
from omnigraph.spark.algorithms.pagerank import pagerank
from omnigraph.spark.algorithms.similarity import similar_nodes
from omnigraph.spark.algorithms.trees import spanning_forest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FORMS: Mapping[str, Callable[..., Any]] = {
    "pagerank": pagerank,
    "components": components,
    "degrees": degrees,
    "label_propagation": label_propagation,
    "betweenness": betweenness,
    "closeness": closeness,
    "communities": louvain,
    "cores": core_numbers,
    "topological_order": topological_order,
    "spanning_tree": spanning_forest,
    "similarity": similar_nodes,
    "embeddings": walk_embeddings,
}
"""Functions of `EdgeFrames` that return the same as those of the registry."""


class SparkSolver:
    """Runs algorithms on the nodes and edges of given types at a snapshot."""

    def __init__(
        self,
        spark: SparkSession,
        job: Job,
        node_types: Sequence[NodeType],
        edge_types: Sequence[EdgeType],
        weight: str | None = None,
        watch: Watch | None = None,
    ) -> None:
        self._graph = EdgeFrames(spark, job, node_types, edge_types, weight, watch)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return self._graph.count

    @property
    def edges(self) -> int:
        """The number of edges."""
        return self._graph.edge_count

    def run(self, algorithm: str, parameters: Mapping[str, Any]) -> Outcome:
        """Run an algorithm; an unknown name raises `InputError`."""
        return find_algorithm(algorithm).outcome(FORMS[algorithm](self._graph, **parameters))
