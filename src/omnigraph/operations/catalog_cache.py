"""Catalog cache: the catalog and the integrity rules of each stored schema, built once."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.engine.write.constraints import RuleSet
    from omnigraph.schema.catalog import Catalog
    from omnigraph.versioning.model.snapshot import Snapshot


class CatalogCache:
    """Catalogs by schema hash."""

    def __init__(self) -> None:
        self._known: dict[str, Catalog] = {}
        self._rules: dict[str, RuleSet] = {}
        self._lock = Lock()

    def of(self, snapshot: Snapshot) -> Catalog:
        """Return the catalog of a snapshot's schema."""
        from omnigraph.operations.create import read_catalog  # noqa: PLC0415 (a cached schema needs neither)

        with self._lock:
            known = self._known.get(snapshot.schema_hash)
        if known is None:
            known = read_catalog(snapshot.schema)
            with self._lock:
                self._known[snapshot.schema_hash] = known
        return known

    def rules(self, snapshot: Snapshot) -> RuleSet:
        """Return the integrity rules of a snapshot's schema."""
        from omnigraph.engine.write.constraints import RuleSet  # noqa: PLC0415 (a cached schema needs neither)

        with self._lock:
            known = self._rules.get(snapshot.schema_hash)
        if known is None:
            known = RuleSet(self.of(snapshot))
            with self._lock:
                self._rules[snapshot.schema_hash] = known
        return known
