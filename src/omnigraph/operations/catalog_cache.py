"""Catalog cache: the catalog and the integrity rules of each stored schema, built once."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from omnigraph.engine.write.constraints import RuleSet
    from omnigraph.query.visibility import Visibility
    from omnigraph.schema.catalog import Catalog
    from omnigraph.versioning.model.snapshot import Snapshot


_PROJECTED_MAX = 1_024
"""Catalogs of visibilities that are kept."""


class CatalogCache:
    """Catalogs by schema hash."""

    def __init__(self) -> None:
        self._known: dict[str, Catalog] = {}
        self._rules: dict[str, RuleSet] = {}
        self._projected: OrderedDict[tuple[str, str], Catalog] = OrderedDict()
        self._lock = Lock()

    def of(self, snapshot: Snapshot, visibility: Visibility | None = None) -> Catalog:
        """Return the catalog of a snapshot's schema, or what is visible of it."""
        return self._whole(snapshot) if visibility is None else self._visible(snapshot, visibility)

    def _visible(self, snapshot: Snapshot, visibility: Visibility) -> Catalog:
        from omnigraph.query.visibility import project_catalog  # noqa: PLC0415 (only for a visibility)

        key = (snapshot.schema_hash, visibility.digest)
        with self._lock:
            known = self._projected.get(key)
        if known is None:
            known = project_catalog(self._whole(snapshot), visibility)
            with self._lock:
                self._projected[key] = known
                while len(self._projected) > _PROJECTED_MAX:
                    self._projected.popitem(last=False)
        return known

    def _whole(self, snapshot: Snapshot) -> Catalog:
        with self._lock:
            known = self._known.get(snapshot.schema_hash)
        if known is None:
            from omnigraph.operations.create import read_catalog  # noqa: PLC0415 (not for a cached schema)

            known = read_catalog(snapshot.schema)
            with self._lock:
                self._known[snapshot.schema_hash] = known
        return known

    def rules(self, snapshot: Snapshot) -> RuleSet:
        """Return the integrity rules of a snapshot's schema."""
        with self._lock:
            known = self._rules.get(snapshot.schema_hash)
        if known is None:
            from omnigraph.engine.write.constraints import RuleSet  # noqa: PLC0415 (not for a cached schema)

            known = RuleSet(self.of(snapshot))
            with self._lock:
                self._rules[snapshot.schema_hash] = known
        return known
