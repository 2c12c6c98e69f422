"""Per-plan state, computed once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from omnigraph.engine.fastpath.compile_chain import Chain
from omnigraph.engine.fastpath.union_chain import UnionChain, compile_start
from omnigraph.engine.plan.estimated_size import estimated_bytes
from omnigraph.engine.plan.expected_rows import ExpectedRows
from omnigraph.engine.plan.liveness import ignores_duplicates, live_after, required_variables
from omnigraph.engine.plan.variable_types import node_types
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir
from omnigraph.query.plan.plan_hash import plan_hash
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True)
class PreparedQuery:
    """A read with everything that its executions share."""

    plan: ir.QueryIR
    """The physical plan, which runs."""
    logical: ir.QueryIR
    """The plan that the text alone determines."""
    catalog: Catalog
    types: Mapping[str, str]
    """Variable → node type."""
    live: Sequence[frozenset[str]] | None
    """The variables used after each operator, for a query that groups or counts."""
    distinct: bool
    """True if the rows of the match are a set: it does not matter how often a row occurs."""
    chain: Chain | UnionChain | None
    """The plan as a compiled chain, if it starts at a key."""
    expected: ExpectedRows | None = None
    """The estimated rows of the plan."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The values of parameters, in stored form, that the plan was made for; empty for unknown values."""

    @property
    def trivial(self) -> bool:
        """True if the plan does not depend on the sizes of tables: it is one scan with conditions."""
        return all(isinstance(op, ir.NodeScan | ir.Filter) for op in self.plan.pipeline) and len(self.types) <= 1

    @cached_property
    def estimated_bytes(self) -> float:
        """The estimated size of the largest set of rows of the match; 0 without an estimate."""
        return estimated_bytes(self.plan, self.expected, self.live)

    @cached_property
    def plan_hash(self) -> str:
        """The hash of the plan, equal for queries that differ only in constants."""
        return plan_hash(self.logical)


def is_single_scan(plan: ir.QueryIR) -> bool:
    """True if a plan is one scan with one condition at most: there is nothing to choose."""
    first = plan.pipeline[0] if len(plan.pipeline) == 1 else None
    return isinstance(first, ir.NodeScan) and len(first.filters) < 2


def prepare(
    plan: ir.QueryIR, catalog: Catalog, logical: ir.QueryIR | None = None, expected: ExpectedRows | None = None
) -> PreparedQuery:
    """Compute the per-plan state of a physical plan."""
    live = live_after(plan.pipeline, required_variables(plan.group_exprs)) if plan.is_aggregate else None
    types = node_types(plan.pipeline)
    chain = compile_start(plan, catalog, types)
    return PreparedQuery(
        plan, plan if logical is None else logical, catalog, types, live, ignores_duplicates(plan), chain, expected
    )
