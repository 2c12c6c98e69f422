"""Per-plan state, computed once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from omnigraph.engine.fastpath.compile_chain import Chain, compile_chain
from omnigraph.engine.plan.liveness import live_after, required_variables
from omnigraph.query.plan import ir
from omnigraph.query.plan.plan_hash import plan_hash
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True)
class PreparedQuery:
    """A read with everything that its executions share."""

    plan: ir.QueryIR
    catalog: Catalog
    types: Mapping[str, str]
    """Variable → node type."""
    live: Sequence[frozenset[str]] | None
    """The variables used after each operator, for a query that groups or counts."""
    chain: Chain | None
    """The plan as a compiled chain, if it starts at a key."""

    @cached_property
    def plan_hash(self) -> str:
        """The hash of the plan, equal for queries that differ only in constants."""
        return plan_hash(self.plan)


def prepare(plan: ir.QueryIR, catalog: Catalog) -> PreparedQuery:
    """Compute the per-plan state."""
    live = live_after(plan.pipeline, required_variables(plan.group_exprs)) if plan.is_aggregate else None
    types = dict(_types(plan.pipeline))
    return PreparedQuery(plan, catalog, types, live, compile_chain(plan, catalog, types))


def _types(pipeline: ir.Pipeline) -> Iterator[tuple[str, str]]:
    """Yield (variable, node type)."""
    for op in pipeline:
        if isinstance(op, ir.NodeScan):
            yield op.var, op.type_name
        elif isinstance(op, ir.Expand):
            yield op.dst_var, op.dst_type
        elif isinstance(op, ir.FindPaths):
            yield from ((step.dst_var, step.dst_type) for step in op.steps)
        elif isinstance(op, ir.AntiJoin | ir.LeftJoin):
            yield from _types(op.inner)
