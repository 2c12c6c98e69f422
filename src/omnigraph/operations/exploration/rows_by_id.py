"""Rows of one table by id or row number, as the caller sees them, without vectors and Blobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache.table_cache import Numbers
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.lost_structures import repeated_if_lost
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog
from omnigraph.table_key import TableKey
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.model.snapshot import Snapshot


def shown_columns(catalog: Catalog, key: TableKey) -> list[str]:
    """Return the columns of a table that a list of rows shows: all except vectors and Blobs."""
    type_ = next(type_ for type_ in catalog.tables() if type_.table_key == key)
    hidden = {name for name, property_ in type_.properties.items() if property_.type.scalar in ("Vector", "Blob")}
    return [name for name in table_schema(type_).names if name not in hidden]


@repeated_if_lost
def rows_by_id(context: GraphContext, snapshot: Snapshot, key: TableKey, ids: Sequence[str]) -> list[dict[str, Any]]:
    """Return the rows with these ids that exist and are visible."""
    columns = shown_columns(context.catalog(snapshot), key)
    view = context.view(snapshot)
    if view is None:
        return to_dicts(snapshot.table(key).rows_of(list(ids), columns))
    found = [view.find(key, id_) for id_ in ids]
    numbers = np.array([row for row in found if row is not None], np.int64)
    return to_dicts(view.rows_at(key, columns, numbers))


def rows_by_number(
    context: GraphContext, snapshot: Snapshot, key: TableKey, columns: Sequence[str], numbers: Numbers
) -> list[dict[str, Any]]:
    """Return the rows with these numbers in order; under rules, all of them are visible."""
    view = context.view(snapshot)
    if view is not None:
        return to_dicts(view.rows_at(key, columns, numbers))
    return to_dicts(snapshot.table(key).take(columns, pa.array(numbers)))
