"""Figures of a graph for its operators: head, branches, sizes of tables, uncovered rows, last maintenance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from weakref import WeakKeyDictionary

from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.indexing import wanted_indexes
from omnigraph.storage.lance.indexes import IndexSpec
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.upkeep.coverage import TableCoverage, table_coverage
from omnigraph.versioning.write.repository import Repository

MAINTENANCE_KINDS = ("optimize", "ensure_indices")
COMMITS_MAX = 1_000
"""Commits among which the last maintenance is searched."""


@dataclass(frozen=True)
class GraphFigures:
    """The state of a graph."""

    head: str
    """The newest commit of `main`."""
    stamp: str | None
    """The storage format that the graph is written in."""
    branches: int
    tables: tuple[TableCoverage, ...]
    maintained_us: int | None
    """The time of the last maintenance commit of `main`, in microseconds since 1970; None if there is none."""

    @property
    def fragments(self) -> int:
        """The fragments of all tables."""
        return sum(table.fragments for table in self.tables)

    @property
    def uncovered_rows(self) -> int:
        """The uncovered rows of all tables."""
        return sum(table.uncovered_rows for table in self.tables)


@dataclass
class _Known:
    version: int
    figures: GraphFigures
    tables: dict[tuple[str, int, str], TableCoverage] = field(default_factory=dict)
    """Figures by table key, version and transaction."""


class FiguresCache:
    """The figures of opened graphs. They are computed again after a commit, for the tables that changed."""

    def __init__(self) -> None:
        self._known: WeakKeyDictionary[Repository, _Known] = WeakKeyDictionary()
        self._lock = Lock()

    def of(self, context: GraphContext) -> GraphFigures:
        """Return the figures of a graph. The caller decides who may see them."""
        repository = context.repository
        state = repository.state()
        with self._lock:
            known = self._known.get(repository)
        if known is not None and known.version == state.version:
            return known.figures
        snapshot = repository.snapshot(MAIN)
        wanted = wanted_indexes(context.catalogs.of(snapshot))
        tables = _tables(snapshot, wanted, known.tables if known is not None else {})
        figures = GraphFigures(
            head=snapshot.commit_id,
            stamp=state.manifest.stamp,
            branches=len(state.branches()),
            tables=tuple(tables.values()),
            maintained_us=_maintained_us(repository),
        )
        with self._lock:
            self._known[repository] = _Known(state.version, figures, tables)
        return figures


def proposal_states(context: GraphContext) -> Mapping[str, int]:
    """Return the numbers of open proposals by state, by the rules of the policy of a context, for all callers."""
    from omnigraph.operations.proposals.proposal_status import OPEN_STATES  # noqa: PLC0415 (only where they are counted)
    from omnigraph.operations.proposals.proposals import Proposals  # noqa: PLC0415

    found: dict[str, int] = dict.fromkeys(OPEN_STATES, 0)
    for state in Proposals(context, None).open_states():
        if state in found:
            found[state] += 1
    return found


def _tables(
    snapshot: Snapshot, wanted: Mapping[str, Sequence[IndexSpec]], known: dict[tuple[str, int, str], TableCoverage]
) -> dict[tuple[str, int, str], TableCoverage]:
    found: dict[tuple[str, int, str], TableCoverage] = {}
    for key, pinned in snapshot.tables.items():
        identity = (key, pinned.pin.lance_version, pinned.pin.transaction)
        figures = known.get(identity)
        if figures is None:
            figures = table_coverage(snapshot, key, wanted.get(key, ()))
        found[identity] = figures
    return found


def _maintained_us(repository: Repository) -> int | None:
    newest = islice(repository.newest_commits(MAIN, few=True), COMMITS_MAX)
    return next((commit.created_us for commit in newest if commit.kind in MAINTENANCE_KINDS), None)
