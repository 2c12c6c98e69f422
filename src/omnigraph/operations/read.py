"""Runs a read: resolve the snapshot once, compile against its schema, execute."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.exec.cancellation import watching
from omnigraph.engine.exec.context import NO_LIMITS, Limits, Work
from omnigraph.engine.exec.executor import Execution
from omnigraph.engine.exec.projection import Projection
from omnigraph.engine.fastpath.python_rows import PlainRows
from omnigraph.engine.fastpath.steps import ROWS_MAX
from omnigraph.engine.plan.prepared_query import Prepared, prepare
from omnigraph.engine.result.result import Result
from omnigraph.engine.result.result_graph import shape_of
from omnigraph.engine.search.searcher import EmbedQuery
from omnigraph.errors import Hint, InputError
from omnigraph.operations.catalog_cache import Catalogs
from omnigraph.query.compile import compile_query
from omnigraph.query.inline import inline_params
from omnigraph.query.params import bind_params
from omnigraph.query.plan import ir
from omnigraph.query.syntax.ast import Param
from omnigraph.schema.catalog import Catalog, UnionType
from omnigraph.versioning.model.ids import Clock
from omnigraph.versioning.model.manifest_objects import EmbeddingSpace
from omnigraph.versioning.model.snapshot import Snapshot

_PLANS_MAX = 512
EmbedText = Callable[[str, int, str, str, str | None, Sequence[EmbeddingSpace]], "np.ndarray[Any, Any]"]
"""(text, dimensions, type, property, model of the schema, what made the stored vectors) → the query's vector."""
_Key = tuple[str, str, str | None, tuple[Param, ...]]
"""Schema, text, name of the query, parameters of a query without a head."""


class Plans:
    """Compiled reads and changes, by schema and text."""

    def __init__(self) -> None:
        self._known: OrderedDict[_Key, Prepared | ir.MutationIR] = OrderedDict()
        self._lock = Lock()

    def get(self, catalogs: Catalogs, snapshot: Snapshot, source: str, name: str | None, source_name: str) -> ir.AnyIR:
        """The plan of a query against a snapshot's schema."""
        found = self.prepared(catalogs, snapshot, source, name, source_name, None)
        return found.plan if isinstance(found, Prepared) else found

    def prepared(
        self,
        catalogs: Catalogs,
        snapshot: Snapshot,
        source: str,
        name: str | None,
        source_name: str,
        params: dict[str, Any] | None,
    ) -> Prepared | ir.MutationIR:
        """The plan; a read's is ready to run. The values of `params` type the parameters of a query without a head."""
        declared = inline_params(source, params)
        key = (snapshot.schema_hash, source, name, declared)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        catalog = catalogs.of(snapshot)
        plan = compile_query(catalog, source, name, source_name=source_name, declared=declared)
        made = prepare(plan, catalog) if isinstance(plan, ir.QueryIR) else plan
        with self._lock:
            self._known[key] = made
            while len(self._known) > _PLANS_MAX:
                self._known.popitem(last=False)
        return made


def get_read(
    snapshot: Snapshot,
    catalogs: Catalogs,
    plans: Plans,
    source: str,
    name: str | None,
    source_name: str,
    params: dict[str, Any] | None,
) -> Prepared:
    """The plan of a read, ready to run."""
    prepared = plans.prepared(catalogs, snapshot, source, name, source_name, params)
    if not isinstance(prepared, Prepared):
        raise InputError(
            f"query '{prepared.name}' changes the graph",
            hint=Hint("run it with mutate", cli="run it with 'omnigraph change'"),
        )
    return prepared


def read(
    snapshot: Snapshot,
    catalogs: Catalogs,
    plans: Plans,
    cache: DataCache,
    source: str,
    name: str | None,
    params: dict[str, Any] | None,
    *,
    clock: Clock,
    embed: EmbedText | None = None,
    limits: Limits | None = None,
    source_name: str = "<query>",
    listening: bool = False,
) -> tuple[Result, Execution | None]:
    """Run one read query of `source` on a snapshot; the result, and the execution it took, if it took one.

    With `listening` it does, and keeps what its operations say about themselves.
    """
    started = time.perf_counter()
    limits = limits or NO_LIMITS
    watch = limits.watch()
    with watching(watch):
        watch.check()
        prepared = get_read(snapshot, catalogs, plans, source, name, source_name, params)
        plan = prepared.plan
        bound = bind_params(plan.params, params)
    if prepared.chain is not None and not listening and limits.rows_max > ROWS_MAX:
        with watching(watch):
            found = prepared.chain.run(Work(prepared.catalog, snapshot, cache, limits, watch), bound.values)
        if found is not None:
            elapsed = (time.perf_counter() - started) * 1000
            return result_of(found, plan, snapshot, elapsed), None
    execution = Execution(
        prepared,
        snapshot,
        bound.values,
        cache,
        now_ms=clock() // 1000,
        embed=embedding_at(snapshot, catalogs.of(snapshot), embed),
        limits=limits,
        watch=watch,
    )
    rows = execution.run(listening=listening)
    elapsed = (time.perf_counter() - started) * 1000
    return result_of(rows, plan, snapshot, elapsed), execution


def embedding_at(snapshot: Snapshot, catalog: Catalog, embed: EmbedText | None) -> EmbedQuery | None:
    """Embeds the text of a query and refuses another model than the one that made the vectors it is compared with."""
    if embed is None:
        return None

    def embed_query(
        text: str, dim: int, type_name: str, property_name: str, recorded: str | None
    ) -> np.ndarray[Any, Any]:
        node = catalog.node(type_name)
        names = node.members if isinstance(node, UnionType) else (type_name,)
        found = [snapshot.embedding(f"node:{name}", property_name) for name in names]
        return embed(text, dim, type_name, property_name, recorded, [space for space in found if space is not None])

    return embed_query


def result_of(
    rows: pa.Table | Projection | PlainRows,
    plan: ir.QueryIR,
    snapshot: Snapshot,
    elapsed_ms: float,
    *,
    next: str | None = None,
) -> Result:
    """The rows of a read as its caller gets them."""
    return Result(
        rows,
        query_name=plan.name,
        commit_id=snapshot.commit_id,
        elapsed_ms=elapsed_ms,
        shape=lambda: shape_of(plan),
        next=next,
    )
