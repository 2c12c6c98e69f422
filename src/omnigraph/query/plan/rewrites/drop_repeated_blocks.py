"""Drop a `not` block that equals an earlier one up to the names of its own variables.

not { $p knows $a $a.age > 9 } not { $p knows $b $b.age > 9 }       not { $p knows $a $a.age > 9 }
"""

from __future__ import annotations

from omnigraph.query.plan.ir import AntiJoin, Op, Pipeline
from omnigraph.query.plan.rename import canonical


def drop_repeated_blocks(pipeline: Pipeline) -> Pipeline:
    """Return the pipeline with every `not` block once."""
    if sum(isinstance(op, AntiJoin) for op in pipeline) < 2:
        return pipeline
    kept: list[Op] = []
    known: set[tuple[frozenset[str], Pipeline]] = set()
    for op in pipeline:
        if isinstance(op, AntiJoin):
            form = frozenset(op.outer_vars), canonical(op.inner, op.outer_vars)
            if form in known:
                continue
            known.add(form)
        kept.append(op)
    return tuple(kept)
