"""Runs a read on a snapshot in memory: compile or reuse the plan, bind parameters, execute."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa

from omnigraph.engine import tuning
from omnigraph.engine.exec.cancellation import Watch, watching
from omnigraph.engine.exec.context import ExecutionContext, OperatorProfile
from omnigraph.engine.exec.executor import Execution
from omnigraph.engine.exec.projection import Projection
from omnigraph.engine.fastpath.python_rows import PythonRows
from omnigraph.engine.plan.prepared_query import PreparedQuery
from omnigraph.engine.result.result import Result
from omnigraph.engine.result.result_graph import result_graph_of
from omnigraph.engine.search.searcher import EmbedQuery
from omnigraph.observer import Observer, Step, current
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.lost_structures import repeated_if_lost
from omnigraph.operations.requests import ExceedsBudget, ReadRequest
from omnigraph.query.params import bind_params
from omnigraph.query.plan import ir
from omnigraph.query.valid_time import visibility_at
from omnigraph.schema.catalog import Catalog, UnionType
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.manifest_objects import EmbeddingSpace
from omnigraph.versioning.model.snapshot import Snapshot

EmbedText = Callable[[str, int, str, str, str | None, Sequence[EmbeddingSpace]], "np.ndarray[Any, Any]"]
"""(text, dimensions, type, property, model in the schema, spaces of the stored vectors) → the vector of the text."""


class ReadOutcome(NamedTuple):
    """A result and the executor that produced it."""

    result: Result
    executor: Literal["fastpath", "pipeline"]
    execution: Execution | None = None
    """The run of the pipeline; None for the fast path."""


@repeated_if_lost
def read(context: GraphContext, snapshot: Snapshot, request: ReadRequest, *, profile: bool = False) -> ReadOutcome:
    """Run one read query on a snapshot, by the fast path if the plan and the request permit it, else by the pipeline.

    The fast path returns None if a step produces too many rows; the pipeline then runs from the start. With `profile`
    the pipeline runs and its operators report how they ran.
    """
    started = time.perf_counter()
    observer = current()
    query, limits = request.query, request.limits
    watch = limits.watch()
    with watching(watch):
        watch.check()
        visibility = context.visibility_of(snapshot)
        prepared = context.plans.get_read(snapshot, query, visibility)
        compiled = report_plan(observer, prepared, watch, started) if observer is not None else started
        plan = prepared.plan
        params = bind_params(plan.params, query.params)
        now_ms = context.repository.clock() // 1000
        visibility = visibility_at(plan, prepared.catalog, params, now_ms, visibility)
        execution_context = ExecutionContext(prepared.catalog, snapshot, context.cache, limits, watch, visibility)
        audited = visibility is not None and visibility.audit is not None
        if prepared.chain is not None and not profile and not audited and _permits_fast_path(request):
            found = prepared.chain.run(execution_context, params)
            if found is not None:
                ended = time.perf_counter()
                if observer is not None:
                    observer.phase("run", compiled, ended)
                return ReadOutcome(result_of(found, plan, snapshot, (ended - started) * 1000), "fastpath")
    too_large = prepared.estimated_bytes > execution_context.bytes_max
    if too_large and request.executor == "auto" and not execution_context.is_limited_by_caller:
        raise ExceedsBudget
    execution = Execution(
        prepared,
        execution_context,
        params,
        now_ms=now_ms,
        embed=embedding_at(context, snapshot),
    )
    rows = execution.run(profiling=profile)
    ended = time.perf_counter()
    if observer is not None:
        observer.phase("run", compiled, ended, [_step(each) for each in execution.profile.steps])
    return ReadOutcome(result_of(rows, plan, snapshot, (ended - started) * 1000), "pipeline", execution)


def _step(profiled: OperatorProfile) -> Step:
    name = profiled.what if isinstance(profiled.what, str) else type(profiled.what).__name__
    return Step(name, profiled.rows, profiled.ms, profiled.how)


def report_plan(observer: Observer, prepared: PreparedQuery, watch: Watch, started: float) -> float:
    """Report the plan of a query and the time of its compilation; return the time at which it was compiled."""
    compiled = time.perf_counter()
    observer.phase("compile", started, compiled)
    observer.planned(prepared.plan.name, lambda: prepared.plan_hash, watch)
    return compiled


def _permits_fast_path(request: ReadRequest) -> bool:
    """True if the fast path may run: it checks only its own bound of bytes, so the pipeline enforces a lower one."""
    return request.executor != "pipeline" and request.limits.bytes_max > tuning.current.chain_bytes


def embedding_at(context: GraphContext, snapshot: Snapshot) -> EmbedQuery:
    """Return a function that embeds query text and rejects a model other than that of the stored vectors."""

    def embed_query(
        text: str, dim: int, type_name: str, property_name: str, recorded: str | None
    ) -> np.ndarray[Any, Any]:
        catalog: Catalog = context.catalog(snapshot)
        embed: EmbedText = context.embedder.embed_query
        node = catalog.node(type_name)
        names = node.members if isinstance(node, UnionType) else (type_name,)
        found = [snapshot.embedding(TableKey.node(name), property_name) for name in names]
        return embed(text, dim, type_name, property_name, recorded, [space for space in found if space is not None])

    return embed_query


def result_of(
    rows: pa.Table | Projection | PythonRows,
    plan: ir.QueryIR,
    snapshot: Snapshot,
    elapsed_ms: float,
    *,
    next: str | None = None,
) -> Result:
    """Return the result object of a read."""
    return Result(
        rows,
        query_name=plan.name,
        commit_id=snapshot.commit_id,
        elapsed_ms=elapsed_ms,
        shape=lambda: result_graph_of(plan),
        next=next,
    )
