"""Order by a search: nearest vectors, best scores, and the fusion of several rankings.

A ranking is over the entities of the whole match, so a filter never reduces a result below its limit. Spark selects the
first rows of each partition and merges them. A fusion numbers the entities of each ranking, which sorts their ids and
values in one task.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engine.search.searcher import Searcher
from omnigraph.errors import InputError
from omnigraph.query.plan import ir
from omnigraph.schema.arrow import arrow_type
from omnigraph.spark.arrow_interop import spark_name
from omnigraph.spark.arrow_udfs import FrameColumn
from omnigraph.spark.bindings import Bindings
from omnigraph.spark.lowering_context import LoweringContext
from omnigraph.spark.rank_values import SCORE, WHY, Ranking

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class RankLowering:
    """Ranks the rows of one match."""

    def __init__(self, context: LoweringContext, ranking: Ranking, searcher: Searcher) -> None:
        self._context = context
        self._f = context.f
        self._ranking = ranking
        self._searcher = searcher

    @property
    def var(self) -> str:
        """The ranked variable."""
        return self._ranking.var

    def ranked(self, rows: Bindings, limit: int | None) -> tuple[Bindings, list[Any]]:
        """Return the rows that have a rank, with its columns, and the sort keys of the rank.

        A fusion considers `limit` nearest entities, or all.
        """
        if isinstance(self._ranking.rank, ir.Rrf):
            return self._fused(rows, self._ranking.rank, limit)
        assert rows.frame is not None
        rank, value = self._ranking.rank, self._f.col(self._values(rows)[0])
        frame = rows.frame.filter(_is_ranked(rank, value))
        key = _key(rank, value)
        explained = {}
        if self._context.reads(ir.RANKED, WHY):
            order = [key, *rows.identity(self._ranking.var)]
            position = self._f.dense_rank().over(self._window().orderBy(*order))
            explained[WHY] = self._f.array(self._explanation(rank, position, value, None))
        return self._with_rank_columns(rows, frame, explained), [key]

    def _values(self, rows: Bindings) -> list[str]:
        return [rows.name(self._ranking.var, column) for column in self._ranking.columns]

    def _window(self) -> Any:
        from pyspark.sql import Window  # noqa: PLC0415

        return Window

    def _with_rank_columns(self, rows: Bindings, frame: DataFrame, values: dict[str, Any]) -> Bindings:
        """Bind `ir.RANKED` to some values."""
        types = {SCORE: pa.float64(), WHY: arrow_type(ir.WHY)}
        columns = dict(rows.columns)
        for name, value in values.items():
            column = FrameColumn(self._context.new_name(), types[name])
            frame = frame.withColumn(column.name, value)
            columns[ir.RANKED, name] = column
        return Bindings(frame, columns)

    def _fused(self, rows: Bindings, rank: ir.Rrf, limit: int | None) -> tuple[Bindings, list[Any]]:
        """Fuse several rankings of the distinct entities, then join the rows with their scores."""
        assert rows.frame is not None
        f, context = self._f, self._context
        k = self._searcher.constant(rank.k)
        if k is None or k < 1:
            raise InputError("k of 'rrf' must be an integer of at least 1")
        identity, values = rows.identity(self._ranking.var), self._values(rows)
        names = {name: context.new_name() for name in (*identity, *values)}
        chosen = [f.col(name).alias(new) for name, new in names.items()]
        entities = rows.frame.filter(f.col(identity[0]).isNotNull()).select(*chosen).distinct()
        positions = [context.new_name() for _ in rank.arms]
        for arm, value, position in zip(rank.arms, values, positions, strict=True):
            most = limit if isinstance(arm, ir.Nearest) else None
            entities = self._numbered(entities, arm, names[value], [names[name] for name in identity], position, most)
        entities = entities.filter(reduce(lambda a, b: a | b, (f.col(name).isNotNull() for name in positions)))
        weights = self._searcher.weights(rank)
        shares = [
            f.lit(float(weight)) / (f.lit(k) + f.col(name)).cast("double")
            for weight, name in zip(weights, positions, strict=True)
        ]
        # Summed in order of size, as by `Searcher.fuse`.
        parts = f.array_sort(f.array(*(f.coalesce(share, f.lit(0.0)) for share in shares)))
        score, why = context.new_name(), context.new_name()
        entities = entities.withColumn(score, f.aggregate(parts, f.lit(0.0), lambda total, part: total + part))
        parts_of_rank = zip(rank.arms, positions, values, shares, strict=True)
        explanations = [self._explanation(a, f.col(p), f.col(names[v]), s) for a, p, v, s in parts_of_rank]
        entities = entities.withColumn(why, f.array(*explanations))
        entities = entities.drop(*(names[value] for value in values))
        meets = reduce(lambda a, b: a & b, (f.col(name) == f.col(names[name]) for name in identity))
        frame = rows.frame.join(entities, meets).drop(*(names[name] for name in identity))
        order = [f.col(score).desc(), *(f.col(name).asc_nulls_last() for name in positions)]
        return self._with_rank_columns(rows, frame, {SCORE: f.col(score), WHY: f.col(why)}), order

    def _numbered(
        self,
        entities: DataFrame,
        arm: ir.Nearest | ir.Bm25,
        value: str,
        identity: list[str],
        position: str,
        limit: int | None,
    ) -> DataFrame:
        """Add the position of each entity in a ranking; null for those that are not among the first `limit` of it."""
        f = self._f
        held = _is_ranked(arm, f.col(value))
        order = [f.when(held, f.lit(0)).otherwise(f.lit(1)), _key(arm, f.col(value)), *identity]
        number = f.row_number().over(self._window().orderBy(*order)).cast("bigint")
        if limit is not None:
            return entities.withColumn(position, number).withColumn(
                position, f.when(held & (f.col(position) <= limit), f.col(position))
            )
        return entities.withColumn(position, number).withColumn(position, f.when(held, f.col(position)))

    def _explanation(self, arm: ir.Nearest | ir.Bm25, position: Any, value: Any, share: Any) -> Any:
        """Return the explanation of a ranking as an object; its values are null for rows outside the ranking."""
        f = self._f
        name = "nearest" if isinstance(arm, ir.Nearest) else "bm25"
        ranked = position.isNotNull() if share is not None else f.lit(True)
        return f.struct(
            f.lit(f"{name}({arm.prop.name})").alias("by"),
            position.cast("bigint").alias("rank"),
            f.when(ranked, value).alias("score"),
            (f.lit(None).cast("double") if share is None else f.when(ranked, share)).alias("share"),
        ).cast(spark_name(arrow_type(ir.WHY.item)))


def _is_ranked(arm: ir.Nearest | ir.Bm25, value: Any) -> Any:
    """Return the condition that an entity is in a ranking."""
    return value.isNotNull() if isinstance(arm, ir.Nearest) else value > 0


def _key(arm: ir.Nearest | ir.Bm25, value: Any) -> Any:
    """Return the sort key that puts the best first."""
    return value.asc() if isinstance(arm, ir.Nearest) else value.desc()
