"""PageRank, components and degrees of `engine.algorithms` on DataFrames, for graphs whose edges do not fit one machine.

Nodes have the same numbers as in process, so the results are equal. Every round is checkpointed: otherwise the query
plan grows with each round and soon costs more than the computation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from omnigraph.engine.algorithms.components import name_components
from omnigraph.engine.algorithms.edge_list import Floats
from omnigraph.engine.algorithms.registry import ALGORITHMS, Outcome, component_outcome, degree_outcome
from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.errors import InputError
from omnigraph.operations.analysis.input_graph import check_weight, wrong_weights
from omnigraph.pipeline.job import Job
from omnigraph.pipeline.runner import Watch
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.spark.cancellable_action import Actions, run_action
from omnigraph.spark.scans import Scan
from omnigraph.storage.lance.fragments import stored_fragments
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class SparkSolver:
    """Runs algorithms on the nodes and edges of given types at a snapshot."""

    spark: SparkSession
    job: Job
    node_types: Sequence[NodeType]
    edge_types: Sequence[EdgeType]
    weight: str | None = None
    watch: Watch | None = None

    def __post_init__(self) -> None:
        from pyspark.sql import functions  # noqa: PLC0415

        self._f: Any = functions
        counts = [sum(rows for _, rows in stored_fragments(self.job.table(node.table_key))) for node in self.node_types]
        self.nodes = sum(counts)
        starts = np.cumsum([0, *counts]).tolist()
        self._first = dict(zip((node.name for node in self.node_types), starts, strict=False))

    # -- graph -----------------------------------------------------------------------------------

    @cached_property
    def edges(self) -> int:
        """The number of edges."""
        return sum(self.job.table(edge.table_key).row_count for edge in self.edge_types)

    def _numbered(self, type_name: str) -> DataFrame:
        """Return the number and id of every node of a type."""
        scan = Scan(self.job, TableKey.node(type_name), {"id": "id"}, numbers=("number", self._first[type_name]))
        return scan.frame(self.spark)

    @cached_property
    def _edges(self) -> DataFrame:
        """Source number, target number and weight of every edge."""
        f = self._f
        parts = []
        for edge in self.edge_types:
            columns = {"src": "src", "dst": "dst"}
            if self.weight is not None:
                check_weight(edge, self.weight)
                columns[self.weight] = "weight"
            rows = Scan(self.job, edge.table_key, columns).frame(self.spark)
            sources = self._numbered(edge.from_type).toDF("src_id", "s")
            targets = self._numbered(edge.to_type).toDF("dst_id", "d")
            weight = f.coalesce(f.col("weight").cast("double"), f.lit(0.0)) if self.weight else f.lit(1.0)
            joined = rows.join(sources, rows["src"] == sources["src_id"]).join(
                targets, rows["dst"] == targets["dst_id"]
            )
            parts.append(joined.select("s", "d", weight.alias("w")))
        if not parts:
            return self.spark.createDataFrame([], "s bigint, d bigint, w double")
        frame = self._checkpoint(reduce(lambda a, b: a.unionAll(b), parts), "edges")
        wrong = frame.filter("isnan(w) or w < 0 or w = double('infinity')").limit(1)
        if self.weight is not None and self._count(wrong, "weights"):
            raise wrong_weights(self.edge_types, self.weight)
        return frame

    def _checkpoint(self, frame: DataFrame, step: str) -> DataFrame:
        return Actions(self.spark, step, self.watch).checkpoint(frame)

    def _count(self, frame: DataFrame, step: str) -> int:
        return Actions(self.spark, step, self.watch).count(frame)

    def _array(self, frame: DataFrame, step: str, dtype: type[np.generic]) -> np.ndarray[Any, Any]:
        """Collect a DataFrame of node numbers and values into an array by number; missing values are 0."""
        table = Actions(self.spark, step, self.watch).to_arrow(frame)
        numbers, values = (column.to_numpy() for column in table.columns)
        found = np.zeros(self.nodes, dtype)
        found[numbers] = values
        return found

    # -- algorithms ------------------------------------------------------------------------------

    def run(self, algorithm: str, parameters: Mapping[str, Any]) -> Outcome:
        """Run an algorithm; one that has no form for Spark raises `InputError`."""
        if algorithm == "pagerank":
            ranks, rounds = self.pagerank(**parameters)
            return Outcome((ranks,), {"rounds": rounds})
        if algorithm == "components":
            return component_outcome(self.components())
        if algorithm == "degrees":
            return degree_outcome(*self.degrees())
        able = ", ".join(name for name, spec in ALGORITHMS.items() if spec.on_spark)
        raise InputError(f"'{algorithm}' does not run on Spark", hint=f"leave 'engine' out; on Spark run {able}")

    def degrees(self) -> tuple[Numbers, Numbers]:
        """Return the in-degree and out-degree of each node."""
        incoming, outgoing = (self._array(self._edges.groupBy(end).count(), "degrees", np.int64) for end in ("d", "s"))
        return incoming, outgoing

    def pagerank(self, *, damping: float, tolerance: float, rounds_max: int) -> tuple[Floats, int]:
        """Return the PageRank of each node and the number of rounds."""
        if not self.nodes:
            return np.zeros(0), 0
        f = self._f
        leaving = self._edges.groupBy(f.col("s").alias("from")).agg(f.sum("w").alias("leaving"))
        leaving = self._checkpoint(leaving.filter("leaving > 0"), "weights")
        shares = self._edges.join(leaving, f.col("s") == f.col("from"))
        shares = self._checkpoint(shares.select("s", "d", (f.col("w") / f.col("leaving")).alias("share")), "shares")
        nodes = self.spark.range(self.nodes).toDF("n")
        nodes = nodes.join(leaving, f.col("n") == f.col("from"), "left")
        nodes = self._checkpoint(nodes.select("n", f.col("from").isNull().alias("stuck")), "nodes")
        ranks = nodes.withColumn("r", f.lit(1.0 / self.nodes))
        stuck = self._count(nodes.filter("stuck"), "nodes") / self.nodes
        rounds = 0
        for rounds in range(1, rounds_max + 1):
            arriving = shares.join(ranks.select("n", "r"), f.col("s") == f.col("n"))
            arriving = arriving.groupBy(f.col("d").alias("to")).agg(f.sum(f.col("r") * f.col("share")).alias("a"))
            anywhere = (1.0 - damping + damping * stuck) / self.nodes
            value = f.lit(damping) * f.coalesce(f.col("a"), f.lit(0.0)) + f.lit(anywhere)
            step = f"round {rounds}"
            joined = ranks.join(arriving, f.col("n") == f.col("to"), "left")
            after = self._checkpoint(joined.select("n", "stuck", "r", value.alias("after")), step)
            sums = after.select(
                f.sum("after").alias("total"),
                f.sum(f.abs(f.col("after") - f.col("r"))).alias("moved"),
                f.sum(f.when(f.col("stuck"), f.col("after")).otherwise(0.0)).alias("stuck"),
            )
            (sum_row,) = run_action(self.spark, step, sums.collect, watch=self.watch)
            ranks = after.select("n", "stuck", (f.col("after") / f.lit(sum_row["total"])).alias("r"))
            stuck = sum_row["stuck"] / sum_row["total"]
            if sum_row["moved"] < tolerance:
                break
        return self._array(ranks.select("n", "r"), "ranks", np.float64), rounds

    def components(self) -> Numbers:
        """Return the connected component of each node: join the pointers of edge ends, then compress them."""
        f = self._f
        ends = self._edges.select(f.least("s", "d").alias("low"), f.greatest("s", "d").alias("high"))
        left = self._checkpoint(ends.filter("low < high").distinct(), "components")
        roots = self.spark.range(self.nodes).toDF("n").withColumn("root", f.col("n"))
        while self._count(left.limit(1), "components"):
            points = left.groupBy(f.col("high").alias("node")).agg(f.min("low").alias("at"))
            points = self._compressed(self._checkpoint(points, "components"))
            roots = self._checkpoint(self._replaced(roots, "root", points), "components")
            ends = self._replaced(self._replaced(left, "low", points), "high", points)
            ends = ends.select(f.least("low", "high").alias("low"), f.greatest("low", "high").alias("high"))
            left = self._checkpoint(ends.filter("low < high").distinct(), "components")
        return name_components(self._array(roots.select("n", "root"), "components", np.int64))

    def _compressed(self, points: DataFrame) -> DataFrame:
        """Follow pointers to their ends by pointer doubling: each round halves the chains."""
        f = self._f
        while True:
            further = points.select(f.col("node").alias("over"), f.col("at").alias("beyond"))
            joined = points.join(further, f.col("at") == f.col("over"), "left")
            moved = self._checkpoint(joined.select("node", "at", "beyond"), "components")
            points = moved.select("node", f.coalesce("beyond", "at").alias("at"))
            if not self._count(moved.filter("beyond is not null").limit(1), "components"):
                return points

    def _replaced(self, frame: DataFrame, column: str, points: DataFrame) -> DataFrame:
        """Replace a column by the targets of its pointers."""
        f = self._f
        joined = frame.join(points, f.col(column) == f.col("node"), "left")
        kept = [name for name in frame.columns if name != column]
        return joined.select(*kept, f.coalesce("at", column).alias(column))
