from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.cache.columns import MemoryTable
from omnigraph.engine.search.inverted_index import TextStatistics, build_index
from omnigraph.engine.search.vector_codes import VectorQuery
from omnigraph.engine.search.vector_scan import vectors_of
from omnigraph.query.compile import compile_query
from omnigraph.query.plan import ir
from omnigraph.schema.check import compile_schema
from omnigraph.spark.rank_values import TextScore, VectorDistance, separate_ranks

SCHEMA = "node A { name: String @key  text: String? @index  place: Vector(2)? }"
WORDS = ("river", "stone", "boat", "zebra")


def texts(seed: int) -> list[str | None]:
    random = Random(seed)
    return [
        None if random.random() < 0.1 else " ".join(random.choices(WORDS[:3], k=random.randint(0, 9)))
        for _ in range(90)
    ]


@pytest.mark.parametrize("sizes", [(90,), (1, 89), (30, 30, 30)])
def test_scores_of_parts_equal_those_of_the_column(sizes: tuple[int, ...]) -> None:
    column = pa.array(texts(3), pa.utf8())
    whole = build_index(column)
    starts = np.cumsum([0, *sizes])
    parts = [column.slice(start, size) for start, size in zip(starts, sizes, strict=False)]
    counted = [build_index(part).statistics(WORDS) for part in parts]
    merged = TextStatistics(
        sum(one.texts for one in counted),
        sum(one.terms for one in counted),
        {word: sum(one.holding[word] for one in counted) for word in WORDS},
    )
    assert merged == whole.statistics(WORDS)
    found = pa.concat_arrays([TextScore("text", WORDS, merged).compute(part) for part in parts])
    assert found.to_numpy().tobytes() == whole.bm25(WORDS).tobytes()


def test_distances_equal_those_of_the_vector_scan() -> None:
    random = Random(5)
    rows = [None if random.random() < 0.2 else [random.gauss(0, 1) for _ in range(7)] for _ in range(50)]
    rows[3] = [0.0] * 7
    column = pa.array(rows, pa.list_(pa.float32(), 7))
    vector = np.array([random.gauss(0, 1) for _ in range(7)])
    expected, known = vectors_of(MemoryTable({"v": column}, 50), "v", 7).distances(
        VectorQuery.of(vector), np.arange(50)
    )
    found = pa.concat_arrays(
        [VectorDistance("v", 7, vector).compute(column.slice(*cut)) for cut in ((0, 13), (13, 37))]
    )
    assert found.is_valid().to_pylist() == known.tolist()
    assert found.drop_null().to_numpy().tobytes() == expected[known].tobytes()


def plan_of(text: str) -> ir.QueryIR:
    plan: Any = compile_query(compile_schema(SCHEMA), f"query q() {{ {text} }}")
    return plan


def test_equal_ranks_are_one_property() -> None:
    text = 'match { $a: A } return { $a.name, bm25($a.text, "x") as s } order { bm25($a.text, "x"), $a.name } limit 3'
    separated = separate_ranks(plan_of(text))
    assert len(separated.ranks) == 1
    ranking = separated.rankings[""]
    assert (ranking.var, ranking.columns) == ("a", ("#rank:0",))
    assert [column.expr for column in separated.plan.columns][1] == ir.Prop("a", "#rank:0", ir.F64)
    assert [key.expr for key in separated.plan.order_by] == [separated.plan.columns[0].expr]


def test_fusion_reads_the_ranks_of_its_rankers() -> None:
    text = 'match { $a: A } return { $a.name } order { rrf(nearest($a.place, [1, 2]), bm25($a.text, "x")) } limit 3'
    separated = separate_ranks(plan_of(text))
    ranking = separated.rankings[""]
    assert ranking.columns == ("#rank:0", "#rank:1")
    assert [type(arm) for arm in ranking.arms] == [ir.Nearest, ir.Bm25]
    assert not separated.plan.order_by


def test_plan_without_ranks_is_unchanged() -> None:
    plan = plan_of("match { $a: A } return { $a.name } order { $a.name } limit 3")
    assert separate_ranks(plan).plan == plan
