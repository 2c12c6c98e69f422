"""Run blocks once that are equal up to the names of their variables.

    optional matches, for each $p:         expand $p -Knows-> $a          shared
    optional matches, for each $p:         expand $p -Knows-> $b          shared

Blocks that run on their own are equal if their pipelines are, whatever the names of their outer variables. Blocks that
run for each row must have the same outer variables. The rows of the first block are then those of the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

from omnigraph.query.plan import ir
from omnigraph.query.plan.rename import renamed, variables_in_order


def share_blocks(pipeline: ir.Pipeline) -> ir.Pipeline:
    """Return the pipeline with a number in each block that equals another one."""
    if sum(1 for _ in _blocks(pipeline)) < 2:
        return pipeline
    forms = Counter(_form(op) for op in _blocks(pipeline))
    numbers = {form: number for number, (form, count) in enumerate(forms.items()) if count > 1}
    return _marked(pipeline, lambda op: numbers.get(_form(op))) if numbers else pipeline


def _blocks(pipeline: ir.Pipeline) -> Iterator[ir.AntiJoin | ir.LeftJoin]:
    for op in pipeline:
        if isinstance(op, ir.AntiJoin | ir.LeftJoin):
            yield op
            yield from _blocks(op.inner)


def _form(op: ir.AntiJoin | ir.LeftJoin) -> str:
    """Return what equal blocks have in common, as text: constants can be lists, which have no hash.

    Blocks of `not` that run for each row are not shared.
    """
    kept = () if op.independent else op.outer_vars
    own = (name for name in variables_in_order(op.inner) if name not in kept)
    names = {name: f"#{number}" for number, name in enumerate(own)}
    outer = tuple(names.get(name, name) for name in op.outer_vars)
    alone = isinstance(op, ir.LeftJoin) or op.independent
    return repr((type(op), op.independent, outer, renamed(op.inner, names), None if alone else id(op)))


def _marked(pipeline: ir.Pipeline, number: Callable[[ir.AntiJoin | ir.LeftJoin], int | None]) -> ir.Pipeline:
    return tuple(
        replace(op, shared=number(op), inner=_marked(op.inner, number))
        if isinstance(op, ir.AntiJoin | ir.LeftJoin)
        else op
        for op in pipeline
    )
