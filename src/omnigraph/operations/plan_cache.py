"""Query plan cache: compiled queries by schema and text."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from omnigraph.engine.plan.prepared_query import PreparedQuery, prepare
from omnigraph.errors import Hint, InputError
from omnigraph.observer import current
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.requests import QueryText
from omnigraph.query.compile import compile_query
from omnigraph.query.inline import inline_params
from omnigraph.query.plan import ir
from omnigraph.query.syntax.ast import Param
from omnigraph.versioning.model.snapshot import Snapshot

_PLANS_MAX = 512
_TEXT_MAX = 65_536
"""Plans of longer texts are not kept. They are usually generated and run once."""
_Key = tuple[str, str, str | None, tuple[Param, ...]]
"""Schema hash, text, query name, parameters of a query without a head."""


class PlanCache:
    """Plans of the queries used last, by schema and text."""

    def __init__(self, catalogs: CatalogCache) -> None:
        self._catalogs = catalogs
        self._known: OrderedDict[_Key, PreparedQuery | ir.MutationIR] = OrderedDict()
        self._lock = Lock()
        self.hits = 0
        """The number of requested plans that were in memory."""
        self.misses = 0
        """The number of requested plans that were compiled."""

    def get(self, snapshot: Snapshot, query: QueryText) -> PreparedQuery | ir.MutationIR:
        """Return the plan of a query against a snapshot's schema; the plan of a read is prepared to run.

        In a query without a head, the values of the parameters determine their types.
        """
        declared = inline_params(query.text, query.params)
        key = (snapshot.schema_hash, query.text, query.name, declared)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                self.hits += 1
                return known
            self.misses += 1
        observer = current()
        if observer is not None:
            observer.missed("plans")
        catalog = self._catalogs.of(snapshot)
        plan = compile_query(catalog, query.text, query.name, source_name=query.source_name, declared=declared)
        made = prepare(plan, catalog) if isinstance(plan, ir.QueryIR) else plan
        if len(query.text) > _TEXT_MAX:
            return made
        with self._lock:
            self._known[key] = made
            while len(self._known) > _PLANS_MAX:
                self._known.popitem(last=False)
        return made

    def __len__(self) -> int:
        return len(self._known)

    def get_read(self, snapshot: Snapshot, query: QueryText) -> PreparedQuery:
        """Return the plan of a read; a mutation raises `InputError`."""
        prepared = self.get(snapshot, query)
        if not isinstance(prepared, PreparedQuery):
            raise InputError(
                f"query '{prepared.name}' changes the graph",
                hint=Hint("run it with mutate", cli="run it with 'omnigraph change'"),
            )
        return prepared

    def get_mutation(self, snapshot: Snapshot, query: QueryText) -> ir.MutationIR:
        """Return the plan of a mutation; a read raises `InputError`."""
        plan = self.get(snapshot, query)
        if isinstance(plan, PreparedQuery):
            raise InputError(
                f"query '{plan.plan.name}' reads and changes nothing",
                hint=Hint("run it with query", cli="run it with 'omnigraph read'"),
            )
        return plan
