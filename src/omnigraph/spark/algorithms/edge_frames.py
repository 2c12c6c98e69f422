"""The input of the algorithms on Spark: edges between numbered nodes, as DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from omnigraph.engine.algorithms.edge_list import EdgeList
from omnigraph.engine.cache.table_cache import Numbers
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

Array = np.ndarray[Any, Any]


@dataclass
class EdgeFrames:
    """The nodes and edges of given types at a snapshot."""

    spark: SparkSession
    job: Job
    node_types: Sequence[NodeType]
    edge_types: Sequence[EdgeType]
    weight: str | None = None
    watch: Watch | None = None

    def __post_init__(self) -> None:
        from pyspark.sql import functions  # noqa: PLC0415

        self.f: Any = functions
        counts = [self._rows(node.table_key) for node in self.node_types]
        self.count = sum(counts)
        """The number of nodes."""
        starts = np.cumsum([0, *counts]).tolist()
        self._first = dict(zip((node.name for node in self.node_types), starts, strict=False))

    def _rows(self, key: str) -> int:
        return sum(rows for _, rows in stored_fragments(self.job.table(key)))

    # -- frames ----------------------------------------------------------------------------------

    @cached_property
    def edge_count(self) -> int:
        """The number of edges."""
        return sum(self._rows(edge.table_key) for edge in self.edge_types)

    def nodes(self, *names: str, **values: Array) -> DataFrame:
        """Return the nodes as column `n`, with columns of one value per node; those in `names` hold the number."""
        f = self.f
        if not values:
            return self.spark.range(self.count).select(f.col("id").alias("n"), *(f.col("id").alias(x) for x in names))
        columns = {"n": np.arange(self.count), **{name: np.arange(self.count) for name in names}, **values}
        return self.frame(**columns)

    def frame(self, **columns: Array) -> DataFrame:
        """Return arrays of this process as a DataFrame."""
        frame: DataFrame = self.spark.createDataFrame(pa.table({name: pa.array(v) for name, v in columns.items()}))
        return frame

    def _numbered(self, type_name: str) -> DataFrame:
        """Return the number and id of every node of a type."""
        scan = Scan(self.job, TableKey.node(type_name), {"id": "id"}, numbers=("number", self._first[type_name]))
        return scan.frame(self.spark)

    @cached_property
    def edges(self) -> DataFrame:
        """Number `e`, source `s`, target `d` and weight `w` of every edge."""
        f = self.f
        parts, first = [], 0
        for edge in self.edge_types:
            columns = {"src": "src", "dst": "dst"}
            if self.weight is not None:
                check_weight(edge, self.weight)
                columns[self.weight] = "weight"
            rows = Scan(self.job, edge.table_key, columns, numbers=("e", first)).frame(self.spark)
            sources = self._numbered(edge.from_type).toDF("src_id", "s")
            targets = self._numbered(edge.to_type).toDF("dst_id", "d")
            weight = f.coalesce(f.col("weight").cast("double"), f.lit(0.0)) if self.weight else f.lit(1.0)
            joined = rows.join(sources, rows["src"] == sources["src_id"]).join(
                targets, rows["dst"] == targets["dst_id"]
            )
            parts.append(joined.select("e", "s", "d", weight.alias("w")))
            first += self._rows(edge.table_key)
        if not parts:
            return self.spark.createDataFrame([], "e bigint, s bigint, d bigint, w double")
        frame = self.checkpoint(reduce(lambda a, b: a.unionAll(b), parts), "edges")
        wrong = frame.filter("isnan(w) or w < 0 or w = double('infinity')")
        if self.weight is not None and self.any(wrong, "weights"):
            raise wrong_weights(self.edge_types, self.weight)
        return frame

    def neighbors(self, direction: Literal["out", "in", "both"]) -> DataFrame:
        """Return the distinct pairs of a node `s` and a neighbour `d`, without loops."""
        f = self.f
        back = self.edges.select(f.col("d").alias("s"), f.col("s").alias("d"))
        out = self.edges.select("s", "d")
        pairs = {"out": out, "in": back, "both": out.unionAll(back)}[direction]
        return self.checkpoint(pairs.filter("s <> d").distinct(), "neighbours")

    def symmetric(self) -> DataFrame:
        """Return every edge in both directions with the sum `w` of parallel ones; a loop has twice its weight."""
        f = self.f
        ends = self.edges.select("s", "d", "w")
        both = ends.unionAll(ends.select(f.col("d").alias("s"), f.col("s").alias("d"), "w"))
        return self.checkpoint(both.groupBy("s", "d").agg(f.sum("w").alias("w")), "edges")

    def edge_list(self) -> EdgeList:
        """Collect the edges, in order of their numbers."""
        table = self.table(self.edges, "edges").sort_by("e")
        sources, targets, weights = (table[name].to_numpy() for name in ("s", "d", "w"))
        return EdgeList(self.count, sources, targets, weights if self.weight is not None else None)

    # -- actions ---------------------------------------------------------------------------------

    def checkpoint(self, frame: DataFrame, step: str) -> DataFrame:
        """Compute a DataFrame and drop its lineage."""
        return Actions(self.spark, step, self.watch).checkpoint(frame)

    def rows(self, frame: DataFrame, step: str) -> int:
        """Return the number of rows."""
        return Actions(self.spark, step, self.watch).count(frame)

    def any(self, frame: DataFrame, step: str) -> bool:
        """True if there are rows."""
        return not Actions(self.spark, step, self.watch).is_empty(frame)

    def table(self, frame: DataFrame, step: str) -> pa.Table:
        """Collect the rows."""
        return Actions(self.spark, step, self.watch).to_arrow(frame)

    def first(self, frame: DataFrame, step: str) -> Any:
        """Collect the only row."""
        (row,) = run_action(self.spark, step, frame.collect, watch=self.watch)
        return row

    def array(self, frame: DataFrame, step: str, dtype: type[np.generic]) -> Array:
        """Collect a DataFrame of node numbers and values into an array by number; missing values are 0."""
        numbers, values = (column.to_numpy() for column in self.table(frame, step).columns)
        found = np.zeros(self.count, dtype)
        found[numbers] = values
        return found

    # -- pointers --------------------------------------------------------------------------------

    def compressed(self, points: DataFrame, step: str) -> DataFrame:
        """Follow pointers from `node` to `at` to their ends by pointer doubling: each round halves the chains."""
        f = self.f
        while True:
            further = points.select(f.col("node").alias("over"), f.col("at").alias("beyond"))
            joined = points.join(further, f.col("at") == f.col("over"), "left")
            moved = self.checkpoint(joined.select("node", "at", "beyond"), step)
            points = moved.select("node", f.coalesce("beyond", "at").alias("at"))
            if not self.any(moved.filter("beyond is not null"), step):
                return points

    def replaced(self, frame: DataFrame, column: str, points: DataFrame) -> DataFrame:
        """Replace a column by the targets of its pointers."""
        f = self.f
        joined = frame.join(points, f.col(column) == f.col("node"), "left")
        kept = [name for name in frame.columns if name != column]
        return joined.select(*kept, f.coalesce("at", column).alias(column))

    def numbers(self, frame: DataFrame, step: str) -> Numbers:
        """Collect whole numbers by node."""
        found: Numbers = self.array(frame, step, np.int64)
        return found
