"""Drop a condition that occurs in the pipeline already.

filter $p.age > 30 | filter $p.age > 30       filter $p.age > 30
"""

from __future__ import annotations

from omnigraph.query.plan.ir import Filter, Op, Pipeline


def drop_repeated_conditions(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with every condition once. A value is constant during an execution, also that of `now()`."""
    kept: list[Op] = []
    for op in pipeline:
        if not isinstance(op, Filter) or op not in kept:
            kept.append(op)
    return tuple(kept)
