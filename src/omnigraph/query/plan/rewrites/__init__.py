"""Rules that improve a plan without changing its meaning.

Each rule is a file with one function from pipeline to pipeline; `RULES` is their order. A rule sees one pipeline at a
time; nested pipelines are rewritten first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from omnigraph.query.plan.ir import AntiJoin, LeftJoin, Pipeline, QueryIR
from omnigraph.query.plan.rewrites.measure_paths import measure_paths
from omnigraph.query.plan.rewrites.push_down_filters import push_down_filters

RULES: tuple[Callable[[Pipeline], Pipeline], ...] = (push_down_filters,)


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
