"""Scores and distances on Spark: workers compute them while they scan the ranked table.

A distance depends on its row alone. A score also depends on statistics of the whole column, so a first job counts the
texts, their terms and the rows that contain each term of the query; the workers then score their rows with these
numbers. Both have the bits of the in-process engine. Expressions read the results as properties of the variable.
"""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from omnigraph.engine.search.inverted_index import TextStatistics, build_index
from omnigraph.engine.search.searcher import Searcher
from omnigraph.engine.search.vector_codes import VectorQuery
from omnigraph.engine.search.vector_scan import distances_of
from omnigraph.pipeline.job import Job
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog
from omnigraph.spark.cancellable_action import Actions
from omnigraph.spark.runner import prepare_worker
from omnigraph.spark.scans import FragmentRefs, Scan, ScanValue, task_inputs
from omnigraph.storage.lance.fragments import stored_fragments
from omnigraph.table_key import TableKey

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCORE, WHY = "score", "why"
"""The properties of `ir.RANKED`."""


@dataclass(frozen=True)
class VectorDistance:
    """The cosine distance to a vector; null for a row without a vector."""

    prop: str
    dim: int
    vector: np.ndarray[Any, np.dtype[np.float64]]

    @cached_property
    def _query(self) -> VectorQuery:
        return VectorQuery.of(self.vector)

    def compute(self, column: pa.Array) -> pa.Array:
        """Return the distance of every row."""
        distances, known = distances_of(column, self.dim, self._query)
        return pa.array(distances, mask=~known)


@dataclass(frozen=True)
class TextScore:
    """The BM25 score for some terms; 0 for a row without any."""

    prop: str
    words: tuple[str, ...]
    statistics: TextStatistics

    def compute(self, column: pa.Array) -> pa.Array:
        """Return the score of every row."""
        return pa.array(build_index(column, self.statistics).bm25(self.words))


@dataclass(frozen=True)
class Ranking:
    """The rank by which a query is ordered: the columns of its rankers."""

    rank: ir.Rank
    columns: tuple[str, ...]
    """The property of the ranked variable that holds the distance or score of each ranker."""

    @property
    def arms(self) -> tuple[ir.Nearest | ir.Bm25, ...]:
        """The rankers."""
        return self.rank.arms if isinstance(self.rank, ir.Rrf) else (self.rank,)

    @property
    def var(self) -> str:
        """The ranked variable."""
        return self.arms[0].prop.var


@dataclass(frozen=True)
class RankedPlan:
    """A plan whose distances and scores are properties of their variables."""

    plan: ir.QueryIR
    rankings: Mapping[str, Ranking]
    """The ranks that order rows, by the variable of their stage; an empty text for the part that returns."""
    ranks: tuple[ir.Nearest | ir.Bm25, ...] = ()


def rank_column(number: int) -> str:
    """Return the property that holds the values of a rank."""
    return f"#rank:{number}"


def separate_ranks(plan: ir.QueryIR) -> RankedPlan:
    """Replace distances and scores by properties; the order by a rank is separated from the other sort keys."""
    ranks: list[ir.Nearest | ir.Bm25] = []
    rankings: dict[str, Ranking] = {}

    def column(rank: ir.Nearest | ir.Bm25) -> str:
        if rank not in ranks:
            ranks.append(rank)
        return rank_column(ranks.index(rank))

    def replaced(node: Any) -> Any:
        match node:
            case ir.Nearest() | ir.Bm25():
                return ir.Prop(node.prop.var, column(node), node.type)
            case ir.Rrf():
                return ir.Prop(ir.RANKED, SCORE, ir.F64)
            case ir.Why():
                return ir.Prop(ir.RANKED, WHY, cast(Any, ir.WHY))
            case ir.Stage():
                return dataclasses.replace(node, query=separated(node.query, node.var))
        return _with_parts(node, replaced)

    def separated(query: ir.QueryIR, stage: str) -> ir.QueryIR:
        first = query.order_by[0].expr if query.order_by else None
        if isinstance(first, ir.Nearest | ir.Bm25 | ir.Rrf):
            arms = first.arms if isinstance(first, ir.Rrf) else (first,)
            rankings[stage] = Ranking(first, tuple(map(column, arms)))
            query = dataclasses.replace(query, order_by=query.order_by[1:])
        return cast(ir.QueryIR, _with_parts(query, replaced))

    return RankedPlan(separated(plan, ""), rankings, tuple(ranks))


def _with_parts(node: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(node, tuple):
        return tuple(map(change, node))
    if dataclasses.is_dataclass(node) and not isinstance(node, type) and type(node).__module__.startswith(ir.__name__):
        parts = {one.name: change(getattr(node, one.name)) for one in dataclasses.fields(node)}
        return dataclasses.replace(node, **parts)
    return node


def rank_values(
    spark: SparkSession,
    ranks: Sequence[ir.Nearest | ir.Bm25],
    types: Mapping[str, str],
    catalog: Catalog,
    job: Job,
    searcher: Searcher,
    actions: Actions,
) -> dict[str, ScanValue]:
    """Return the value of each rank, by the name of its property; scores need one job each."""
    found: dict[str, ScanValue] = {}
    for number, rank in enumerate(ranks):
        name = rank.prop.name
        if isinstance(rank, ir.Nearest):
            found[rank_column(number)] = VectorDistance(name, rank.prop.type.dim or 0, searcher.query_vector(rank))
            continue
        words = tuple(dict.fromkeys(searcher.terms(rank)))
        keys = [TableKey.node(member) for member in catalog.members(types[rank.prop.var])]
        found[rank_column(number)] = TextScore(name, words, _statistics(spark, keys, name, words, job, actions))
    return found


def _statistics(
    spark: SparkSession, keys: Sequence[TableKey], prop: str, words: tuple[str, ...], job: Job, actions: Actions
) -> TextStatistics:
    """Count the texts of a column of some tables, their terms, and the rows that contain each word."""
    inputs = [(key, fragments) for key in keys for fragments in task_inputs(stored_fragments(job.table(key)), 0)]
    holding = dict.fromkeys(words, 0)
    texts = terms = 0
    if words and inputs:
        task = _StatisticsTask(pickle.dumps((job, prop, words)), inputs)
        tasks = spark.range(0, len(inputs), 1, len(inputs))
        counts = actions.to_arrow(tasks.mapInArrow(task, "texts bigint, terms bigint, word int, holding bigint"))
        for row in counts.to_pylist():
            if row["word"] is None:
                texts, terms = texts + row["texts"], terms + row["terms"]
            else:
                holding[words[row["word"]]] += row["holding"]
    return TextStatistics(texts, terms, holding)


class _StatisticsTask:
    """Counts the texts of the fragments of a task: one row of totals, and one row per word."""

    def __init__(self, job: bytes, inputs: Sequence[tuple[TableKey, FragmentRefs]]) -> None:
        self._job = job
        self._inputs = inputs

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the counts of each task number."""
        prepare_worker()
        job, prop, words = pickle.loads(self._job)  # noqa: S301 (made by the driver of this job)
        for batch in batches:
            for number in batch.column(0).to_pylist():
                key, fragments = self._inputs[number]
                yield _counts(job, key, fragments, prop, words)


def _counts(job: Job, key: str, fragments: FragmentRefs, prop: str, words: Sequence[str]) -> pa.RecordBatch:
    texts = terms = 0
    holding = np.zeros(len(words), np.int64)
    scan = Scan(job, key, {})
    for fragment, _ in fragments:
        for batch in scan.stored(fragment, [prop]):
            found = build_index(batch.column(prop)).statistics(words)
            texts, terms = texts + found.texts, terms + found.terms
            holding += [found.holding[word] for word in words]
    rows = [(texts, terms, None, None), *((None, None, at, int(n)) for at, n in enumerate(holding))]
    kinds = (pa.int64(), pa.int64(), pa.int32(), pa.int64())
    columns = [pa.array(list(values), kind) for values, kind in zip(zip(*rows, strict=True), kinds, strict=True)]
    return pa.record_batch(columns, names=["texts", "terms", "word", "holding"])
