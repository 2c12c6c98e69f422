"""Compiled chains that start at a node of several types: one chain for each type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from omnigraph.engine.cache.id_index import id_of_key
from omnigraph.engine.exec.context import ExecutionContext
from omnigraph.engine.fastpath.compile_chain import Chain, compile_chain
from omnigraph.engine.fastpath.narrow_union import narrowed_plans
from omnigraph.engine.fastpath.python_rows import PythonRows
from omnigraph.engine.plan.variable_types import node_types
from omnigraph.fast_dataclass import dataclass
from omnigraph.query.plan import ir
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True)
class UnionChain:
    """The chains of a plan that starts at the key of an interface or union."""

    chains: Sequence[Chain]
    """One for each type; they have the same key."""

    def run(self, context: ExecutionContext, params: Mapping[str, Any]) -> PythonRows | pa.Table | None:
        """Return the result; None if the executor must compute it, as for a key of nodes of several types."""
        first = self.chains[0]
        key = first.key
        value = params[key.name] if isinstance(key, ir.ParamRef) else key.value
        id_ = id_of_key(value, first.key_type)
        if id_ is None:
            return None
        starts = [(chain, row) for chain in self.chains if (row := chain.find(context, id_)) is not None]
        if len(starts) > 1:
            return None
        chain, start = starts[0] if starts else (first, None)
        return chain.run_from(start, context, params)


def compile_start(plan: ir.QueryIR, catalog: Catalog, types: Mapping[str, str]) -> Chain | UnionChain | None:
    """Compile a plan that starts at a key of one or several types; None if it cannot be compiled."""
    plans = narrowed_plans(plan, catalog)
    if plans is None:
        return compile_chain(plan, catalog, types)
    chains = [compile_chain(narrowed, catalog, node_types(narrowed.pipeline)) for narrowed in plans.values()]
    compiled = [chain for chain in chains if chain is not None]
    return UnionChain(compiled) if len(compiled) == len(chains) else None
