"""Query plan cache: compiled queries by schema and text."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING

from omnigraph.engine import tuning
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.optimizer.fold_distinct import fold_distinct
from omnigraph.engine.plan.prepared_query import PreparedQuery, is_single_scan, prepare
from omnigraph.engine.plan.variable_types import followed_edges
from omnigraph.errors import Hint, InputError
from omnigraph.observer import current
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.requests import QueryText
from omnigraph.query.compile import compile_query
from omnigraph.query.inline import inline_params
from omnigraph.query.plan import ir
from omnigraph.query.plan.plan_hash import plan_hash as hash_plan
from omnigraph.query.syntax.ast import Param
from omnigraph.query.visibility import Visibility
from omnigraph.schema.catalog import Catalog
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot

if TYPE_CHECKING:
    from omnigraph.engine.optimizer.parameter_classes import ParameterClass, ParameterClasses

_PLANS_MAX = 512
_CLASSES_MAX = 16
"""Plans of one query for different classes of parameters."""
_TEXT_MAX = 65_536
"""Plans of longer texts are not kept. They are usually generated and run once."""
_TEXTS_MAX = 1024 * 1024
"""Characters of the texts of all plans in memory."""
_CHARACTER_BYTES = 64
"""The size of a plan for each character of its text, at most."""
_Key = tuple[str, str, str | None, tuple[Param, ...], str | None]
"""Schema hash, text, query name, parameters of a query without a head, digest of the visibility."""


class _Entry:
    """A plan and the table sizes that it was made for."""

    __slots__ = ("classes", "commit_id", "made", "of_class", "sizes")

    def __init__(
        self, made: PreparedQuery | ir.MutationIR, snapshot: Snapshot, classes: ParameterClasses | None = None
    ) -> None:
        self.made = made
        """The plan for values that are not known."""
        self.classes = classes
        """The parameters that determine the plan; None if there are none."""
        self.of_class: dict[ParameterClass, PreparedQuery] = {}
        self.commit_id = snapshot.commit_id
        """The commit at which the sizes were compared last."""
        self.sizes = {key: _size(snapshot, key) for key in _tables(made)}

    def fits(self, snapshot: Snapshot) -> bool:
        """Return True if the tables of a snapshot have about the sizes that the plan was made for."""
        most = tuning.current.plan_growth_max
        fits = all(
            max(before, now := _size(snapshot, key)) <= most * min(before, now) for key, before in self.sizes.items()
        )
        if fits:
            self.commit_id = snapshot.commit_id
        return fits


def _size(snapshot: Snapshot, key: str) -> int:
    table = snapshot.tables.get(key)
    return max(table.pin.row_count if table is not None else 0, tuning.current.plan_growth_rows_min)


def _hash(made: PreparedQuery | ir.MutationIR) -> str:
    return made.plan_hash if isinstance(made, PreparedQuery) else hash_plan(made)


def _tables(made: PreparedQuery | ir.MutationIR) -> set[str]:
    """Return the tables whose sizes determine a plan; none if there was nothing to choose."""
    if not isinstance(made, PreparedQuery) or made.trivial:
        return set()
    catalog, pipeline = made.catalog, made.logical.pipeline
    nodes = {TableKey.node(member) for name in made.types.values() for member in catalog.members(name)}
    return nodes | {catalog.edges[name].table_key for name in followed_edges(pipeline)}


class PlanCache:
    """Plans of the queries used last, by schema and text. A plan is made again if a table grew or shrank much."""

    def __init__(self, catalogs: CatalogCache, cache: DataCache, *, approximate: bool = False) -> None:
        self._catalogs = catalogs
        self._cache = cache
        self._approximate = approximate
        """True if every vector ranking may be approximate."""
        self._known: OrderedDict[_Key, _Entry] = OrderedDict()
        self._characters = 0
        """The length of the texts of all known plans."""
        self._lock = Lock()
        self.hits = 0
        """The number of requested plans that were in memory."""
        self.misses = 0
        """The number of requested plans that were compiled."""

    def get(
        self, snapshot: Snapshot, query: QueryText, visibility: Visibility | None = None
    ) -> PreparedQuery | ir.MutationIR:
        """Return the plan of a query against a snapshot's schema; the plan of a read is prepared to run.

        In a query without a head, the values of the parameters determine their types. With a visibility, only visible
        types and properties exist. A condition on an alias of a visible node is one on the id of the node.
        """
        made = self._get(snapshot, query, visibility)
        return made if not snapshot.aliases_hash else self._resolved(made, snapshot, query, visibility)

    def _resolved(
        self, made: PreparedQuery | ir.MutationIR, snapshot: Snapshot, query: QueryText, visibility: Visibility | None
    ) -> PreparedQuery | ir.MutationIR:
        """Return a plan without aliases; it is not kept if it contains one."""
        from omnigraph.engine.plan.alias_lookup import AliasLookup  # noqa: PLC0415 (only for graphs with aliases)

        catalog = self._catalogs.of(snapshot, visibility)
        view = None
        if visibility is not None:
            from omnigraph.engine.exec.view import View  # noqa: PLC0415 (only for a visibility)

            view = View(catalog, snapshot, self._cache, visibility)
        lookup = AliasLookup(snapshot, catalog, query.params or {}, view)
        if not isinstance(made, PreparedQuery):
            return lookup.mutation(made)
        logical = lookup.read(made.logical)
        return made if logical is made.logical else self._planned(snapshot, catalog, logical, visibility)[0]

    def _get(
        self, snapshot: Snapshot, query: QueryText, visibility: Visibility | None
    ) -> PreparedQuery | ir.MutationIR:
        declared = inline_params(query.text, query.params)
        seen = None if visibility is None else visibility.digest
        key = (snapshot.schema_hash, query.text, query.name, declared, seen)
        with self._lock:
            known = self._known.get(key)
            fits = known is not None and (known.commit_id == snapshot.commit_id or known.fits(snapshot))
            if fits:
                self._known.move_to_end(key)
                self.hits += 1
            else:
                self.misses += 1
        if known is not None and fits:
            return known.made if known.classes is None else self._of_class(known, snapshot, query, visibility)
        observer = current()
        if observer is not None:
            observer.missed("plans")
        catalog = self._catalogs.of(snapshot, visibility)
        entry = self._made(snapshot, catalog, query, declared, known, visibility)
        if len(query.text) > _TEXT_MAX:
            return entry.made
        with self._lock:
            if key not in self._known:
                self._characters += len(query.text)
            self._known[key] = entry
            while len(self._known) > _PLANS_MAX or self._characters > _TEXTS_MAX:
                (_, text, *_), _ = self._known.popitem(last=False)
                self._characters -= len(text)
        return entry.made if entry.classes is None else self._of_class(entry, snapshot, query, visibility)

    def find(self, plan_hash: str, visibility: Visibility | None = None) -> PreparedQuery | ir.MutationIR | None:
        """Return a known plan by its hash, the one used last first; None if it is not in memory.

        A plan contains the constants of its query, so with a visibility only plans of the same visibility are found.
        """
        return next((made for made in self._plans(visibility) if _hash(made) == plan_hash), None)

    def hashes(self, visibility: Visibility) -> frozenset[str]:
        """Return the hashes of the plans that `find` finds."""
        return frozenset(_hash(made) for made in self._plans(visibility))

    def _plans(self, visibility: Visibility | None) -> list[PreparedQuery | ir.MutationIR]:
        """Return the plans in memory, the one used last first; with a visibility, those made for it."""
        with self._lock:
            known = list(reversed(self._known.items()))
        return [entry.made for key, entry in known if visibility is None or key[-1] == visibility.digest]

    def _of_class(
        self, entry: _Entry, snapshot: Snapshot, query: QueryText, visibility: Visibility | None
    ) -> PreparedQuery | ir.MutationIR:
        """Return the plan of the class of the given parameters; without parameters, the plan for unknown values."""
        made, classes = entry.made, entry.classes
        if not query.params or classes is None or not isinstance(made, PreparedQuery):
            return made
        values = classes.values(query.params)
        if not values:
            return made
        class_ = classes.of(values)
        found = entry.of_class.get(class_)
        if found is None:
            if len(entry.of_class) >= _CLASSES_MAX:
                return made
            from omnigraph.engine.optimizer.optimize import optimize  # noqa: PLC0415 (imported already)
            from omnigraph.engine.statistics.graph_statistics import GraphStatistics  # noqa: PLC0415

            statistics = GraphStatistics(made.catalog, snapshot, self._cache, visibility)
            physical = optimize(made.logical, statistics, values)
            statistics.store()
            if physical.plan.pipeline != made.plan.pipeline:
                made = prepare(physical.plan, made.catalog, made.logical)
            found = entry.of_class[class_] = replace(made, expected=physical.expected, values=values)
        return found

    def _made(
        self,
        snapshot: Snapshot,
        catalog: Catalog,
        query: QueryText,
        declared: tuple[Param, ...],
        known: _Entry | None,
        visibility: Visibility | None,
    ) -> _Entry:
        """Compile a query, or only choose the order of a known one again."""
        logical: ir.AnyIR
        if known is not None and isinstance(known.made, PreparedQuery):
            logical = known.made.logical
        else:
            logical = compile_query(catalog, query.text, query.name, source_name=query.source_name, declared=declared)
        if not isinstance(logical, ir.QueryIR):
            return _Entry(logical, snapshot)
        if self._approximate:
            from omnigraph.query.plan.permit_approximate import permit_approximate  # noqa: PLC0415

            logical = permit_approximate(logical)
        made, classes = self._planned(snapshot, catalog, logical, visibility)
        return _Entry(made, snapshot, classes)

    def _planned(
        self, snapshot: Snapshot, catalog: Catalog, logical: ir.QueryIR, visibility: Visibility | None
    ) -> tuple[PreparedQuery, ParameterClasses | None]:
        """Choose the order of a read, and prepare it."""
        if is_single_scan(logical):
            return prepare(fold_distinct(logical, catalog), catalog, logical), None
        from omnigraph.engine.optimizer.optimize import optimize  # noqa: PLC0415 (not for a lookup of one node)
        from omnigraph.engine.optimizer.parameter_classes import ParameterClasses  # noqa: PLC0415
        from omnigraph.engine.statistics.graph_statistics import GraphStatistics  # noqa: PLC0415

        statistics = GraphStatistics(catalog, snapshot, self._cache, visibility)
        physical = optimize(logical, statistics)
        made = prepare(physical.plan, catalog, logical, physical.expected)
        classes = None if made.trivial else ParameterClasses(logical, statistics)
        statistics.store()
        return made, classes or None

    def __len__(self) -> int:
        return len(self._known)

    @property
    def bytes(self) -> int:
        """The estimated size of all plans."""
        return self._characters * _CHARACTER_BYTES

    def get_read(self, snapshot: Snapshot, query: QueryText, visibility: Visibility | None = None) -> PreparedQuery:
        """Return the plan of a read; a mutation raises `InputError`."""
        prepared = self.get(snapshot, query, visibility)
        if not isinstance(prepared, PreparedQuery):
            raise InputError(
                f"query '{prepared.name}' changes the graph",
                hint=Hint("run it with mutate", cli="run it with 'omnigraph change'"),
            )
        return prepared

    def get_mutation(self, snapshot: Snapshot, query: QueryText, visibility: Visibility | None = None) -> ir.MutationIR:
        """Return the plan of a mutation; a read raises `InputError`."""
        plan = self.get(snapshot, query, visibility)
        if isinstance(plan, PreparedQuery):
            raise InputError(
                f"query '{plan.plan.name}' reads and changes nothing",
                hint=Hint("run it with query", cli="run it with 'omnigraph read'"),
            )
        return plan
