"""Drop a condition that occurs in the pipeline already.

filter $p.age > 30 | filter $p.age > 30       filter $p.age > 30
"""

from __future__ import annotations

from omnigraph.query.plan.ir import Filter, Op, Pipeline


def drop_repeated_conditions(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with every condition once. A value is constant during an execution, also that of `now()`."""
    kept: list[Op] = []
    known: set[Filter] = set()
    for op in pipeline:
        if isinstance(op, Filter):
            if op in known:
                continue
            known.add(op)
        kept.append(op)
    return tuple(kept)
