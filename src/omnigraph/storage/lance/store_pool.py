"""Pool of table stores, by location, shared by the tasks of one process.

A task identifies a graph by its location and pins alone. Stores are kept between tasks for their handles and caches.
The pool is bounded, and a store verifies every version against the transaction in its pin, so a graph that was deleted
and created again at the same location is never read through handles of the old one.
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock

from omnigraph.storage.files.location import Location
from omnigraph.storage.lance.table_store import TableStore

_STORES_MAX = 8

_stores: OrderedDict[tuple[str, tuple[tuple[str, str], ...]], TableStore] = OrderedDict()
_lock = Lock()


def pooled_store(location: Location) -> TableStore:
    """Return the store of a location, for reading and for writing fragments."""
    key = (location.uri, tuple(sorted(location.options.items())))
    with _lock:
        store = _stores.get(key)
        if store is None:
            store = _stores[key] = TableStore(location, sync=False)
            while len(_stores) > _STORES_MAX:
                _stores.popitem(last=False)
        _stores.move_to_end(key)
    return store
