"""CatalogCache by schema hash: a stored schema is read once."""

from __future__ import annotations

from threading import Lock

from omnigraph.operations.create import read_catalog
from omnigraph.schema.catalog import Catalog
from omnigraph.versioning.model.snapshot import Snapshot


class CatalogCache:
    """The catalogs of the schemas met so far."""

    def __init__(self) -> None:
        self._known: dict[str, Catalog] = {}
        self._lock = Lock()

    def of(self, snapshot: Snapshot) -> Catalog:
        """The catalog of a snapshot's schema."""
        with self._lock:
            known = self._known.get(snapshot.schema_hash)
        if known is None:
            known = read_catalog(snapshot.schema)
            with self._lock:
                self._known[snapshot.schema_hash] = known
        return known
