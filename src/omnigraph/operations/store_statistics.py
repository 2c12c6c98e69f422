"""Storing statistics for the optimizer after bulk loads and maintenance."""

from __future__ import annotations

import logging
from collections.abc import Collection

from omnigraph.engine import tuning
from omnigraph.engine.cache.disk_cache import FOLDER
from omnigraph.engine.cache.table_cache import DataCache
from omnigraph.engine.statistics.summaries import Samples, store_all, store_loaded, tables_to_summarise
from omnigraph.errors import OmniGraphError
from omnigraph.operations.catalog_cache import CatalogCache
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.repository import Repository

_log = logging.getLogger(__name__)


def store_load_statistics(
    repository: Repository,
    result: LoadResult,
    samples: Samples | None = None,
    cache: DataCache | None = None,
    catalogs: CatalogCache | None = None,
) -> None:
    """Store the statistics of the tables into which a load wrote many rows.

    They are computed from the samples of a load in memory, and from the written rows of other loads.
    """
    if result.commit_id is None or result.repeated or repository.location.path is None:
        return  # on an object store a load makes no further requests
    keys = tables_to_summarise(dict(result.tables))
    store_statistics(repository, result.branch, keys, cache, catalogs, samples)


def store_statistics(
    repository: Repository,
    branch: str,
    table_keys: Collection[str],
    cache: DataCache | None = None,
    catalogs: CatalogCache | None = None,
    samples: Samples | None = None,
) -> None:
    """Store the statistics of some tables at the head of a branch, unless the stored ones still describe them.

    Nothing is read or written if the graph has no disk cache. The write that precedes this call is published, so a
    failure is logged and does not make it fail.
    """
    path = repository.location.path
    if cache is None and path is not None:
        cache = DataCache(folder=path / FOLDER, keep=not repository.read_only)
    if cache is None or cache.keep_in is None or not table_keys:
        return
    try:
        snapshot = repository.snapshot(branch)
        catalog = (catalogs or CatalogCache()).of(snapshot)
        edges = {str(edge.table_key): edge for edge in catalog.edges.values()}
        for key in table_keys:
            pinned = snapshot.tables.get(key)
            if pinned is None or pinned.pin.row_count < tuning.current.statistics_stored_rows_min:
                continue
            edge = edges.get(key)
            nodes = None if edge is None else (_nodes(snapshot, edge.from_type), _nodes(snapshot, edge.to_type))
            table = cache.table(snapshot.table(key))
            loaded = samples.get(key) if samples else None
            if loaded is not None:
                store_loaded(cache, table, loaded, nodes)
            elif not samples:
                store_all(cache, table, nodes)
    except OmniGraphError as error:
        _log.warning("the statistics of branch '%s' were not stored: %s", branch, error.message)


def _nodes(snapshot: Snapshot, type_name: str) -> int:
    table = snapshot.tables.get(TableKey.node(type_name))
    return table.pin.row_count if table is not None else 0
