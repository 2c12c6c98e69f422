"""`GraphContext`: the state that all handles of one opened graph share."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.engine.cache.disk_cache import FOLDER as CACHE_FOLDER
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.embedder import GraphEmbedder
from omnigraph.operations.plan_cache import PlanCache
from omnigraph.storage.files.blob_sources import BlobSources
from omnigraph.values import Fetch
from omnigraph.versioning.write.repository import Repository

Place = str | os.PathLike[str]


@dataclass(frozen=True)
class GraphContext:
    """Repository, caches and settings of one opened graph."""

    repository: Repository
    cache: DataCache
    catalogs: CatalogCache
    plans: PlanCache
    embedder: GraphEmbedder
    environ: Mapping[str, str] = field(repr=False)
    fetch: Fetch | None = None
    """Reads the bytes of a Blob that is given as a reference; None if no source is permitted."""

    @classmethod
    def of(cls, repository: Repository, environ: Mapping[str, str], blob_sources: Sequence[Place]) -> GraphContext:
        """Return the context of a newly opened graph, with empty caches."""
        path = repository.location.path
        folder = path / CACHE_FOLDER if path is not None else None
        catalogs = CatalogCache()
        return cls(
            repository,
            DataCache(folder=folder, keep=not repository.read_only),
            catalogs,
            PlanCache(catalogs),
            GraphEmbedder(environ),
            environ,
            BlobSources(blob_sources, environ) if blob_sources else None,
        )
