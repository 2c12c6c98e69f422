"""Rules that improve a plan without changing its meaning.

Each rule is a file with one function from pipeline to pipeline; `RULES` is their order. A rule sees one pipeline at a
time; nested pipelines are rewritten first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.query.plan.ir import AntiJoin, LeftJoin, Pipeline, QueryIR
from omnigraph.query.plan.rewrites.compare_single_items import compare_single_items
from omnigraph.query.plan.rewrites.constants_on_the_right import constants_on_the_right
from omnigraph.query.plan.rewrites.drop_repeated_blocks import drop_repeated_blocks
from omnigraph.query.plan.rewrites.drop_repeated_conditions import drop_repeated_conditions
from omnigraph.query.plan.rewrites.measure_paths import measure_paths
from omnigraph.query.plan.rewrites.negations_as_conditions import negations_as_conditions
from omnigraph.query.plan.rewrites.positive_comparisons import positive_comparisons
from omnigraph.query.plan.rewrites.push_down_filters import push_down_filters
from omnigraph.query.plan.rewrites.sides_by_name import sides_by_name

RULES: tuple[Callable[[Pipeline], Pipeline], ...] = (
    negations_as_conditions,
    compare_single_items,
    positive_comparisons,
    constants_on_the_right,
    sides_by_name,
    drop_repeated_conditions,
    push_down_filters,
    drop_repeated_blocks,
)


def rewrite(query: QueryIR) -> QueryIR:
    """Apply every rule to every pipeline of the query, then the rules that need the whole query."""
    return measure_paths(replace(query, pipeline=_pipeline(query.pipeline)))


def _pipeline(pipeline: Pipeline) -> Pipeline:
    pipeline = tuple(
        replace(op, inner=_pipeline(op.inner)) if isinstance(op, AntiJoin | LeftJoin) else op for op in pipeline
    )
    for rule in RULES:
        pipeline = rule(pipeline)
    return pipeline
