"""What one execution has at hand: the tables of its snapshot, its limits, and a record of what it did."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from omnigraph.engine.adjacency import Adjacency
from omnigraph.engine.data import DataCache, TableData
from omnigraph.errors import LimitReached
from omnigraph.schema.catalog import Catalog
from omnigraph.versioning.snapshot import Snapshot


@dataclass(frozen=True)
class Limits:
    """How much a query may do."""

    rows_max: int = 50_000_000
    """Rows at any point of the match."""
    timeout_s: float | None = None


@dataclass
class Profile:
    """What happened: one line per operation."""

    steps: list[tuple[str, int, float]] = field(default_factory=list)

    def note(self, what: str, rows: int, started: float) -> None:
        """Remember an operation, the rows after it, and how long it took."""
        self.steps.append((what, rows, (time.perf_counter() - started) * 1000))


class Work:
    """The surroundings of one execution."""

    def __init__(self, catalog: Catalog, snapshot: Snapshot, cache: DataCache, limits: Limits) -> None:
        self.catalog = catalog
        self.snapshot = snapshot
        self.limits = limits
        self.profile = Profile()
        self._cache = cache
        self._tables: dict[str, TableData] = {}
        self._adjacencies: dict[str, Adjacency] = {}
        timeout = limits.timeout_s
        self._deadline = time.monotonic() + timeout if timeout is not None else None

    def table(self, key: str) -> TableData:
        """A table of the snapshot."""
        found = self._tables.get(key)
        if found is None:
            found = self._tables[key] = self._cache.table(self.snapshot.table(key))
        return found

    def adjacency(self, edge_type: str) -> Adjacency:
        """The edges of a type, by the nodes at their ends."""
        found = self._adjacencies.get(edge_type)
        if found is None:
            edge = self.catalog.edges[edge_type]
            ends = self.table(f"node:{edge.from_type}"), self.table(f"node:{edge.to_type}")
            found = self._adjacencies[edge_type] = Adjacency.of(self.table(edge.table_key), *ends, self._cache)
        return found

    def room(self, rows: int) -> None:
        """Refuse what would hold too many rows, before it does."""
        self.check()
        if rows > self.limits.rows_max:
            raise LimitReached(
                f"the match would hold {rows:,} rows; the limit is {self.limits.rows_max:,}",
                hint="raise rows_max, or add a filter or a hop bound that narrows the match",
            )

    def check(self) -> None:
        """Stop a query that has run too long."""
        if self._deadline is not None and time.monotonic() > self._deadline:
            raise LimitReached(
                f"the query took longer than {self.limits.timeout_s} s", hint="raise timeout_s, or narrow the match"
            )
