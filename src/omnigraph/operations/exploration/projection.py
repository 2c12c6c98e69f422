"""Projection of the vectors of a property to two dimensions by principal component analysis.

The result is deterministic: the axes are the two directions of largest variance, and the largest weight of each is
positive. It is cached with the version of the table. Of a larger table, evenly spaced rows are projected.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.arrays import one_array
from omnigraph.engine.exec.context import NO_LIMITS, ExecutionContext
from omnigraph.errors import InputError, TypeNotFound
from omnigraph.operations.graph_context import GraphContext
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.ref_names import check_text

ROWS_MAX = 200_000
_SCHEMA = pa.schema([("id", pa.utf8()), ("x", pa.float64()), ("y", pa.float64())])

Vectors = np.ndarray[Any, np.dtype[np.float64]]


def project(context: GraphContext, snapshot: Snapshot, type_name: str, property_name: str) -> pa.Table:
    """Return the ids of the visible nodes of a type that have a vector, and their coordinates `x` and `y`."""
    check_text(type_name, "type")
    check_text(property_name, "property")
    catalog = context.catalog(snapshot)
    node = catalog.nodes.get(type_name)
    if node is None:
        raise TypeNotFound(
            f"node type '{type_name}' does not exist at commit {snapshot.commit_id}",
            hint=did_you_mean(type_name, catalog.nodes),
        )
    known = [name for name, each in node.properties.items() if each.type.scalar == "Vector" and not each.type.is_list]
    if property_name not in known:
        hint = did_you_mean(property_name, known) or (f"its vectors are: {', '.join(known)}" if known else None)
        raise InputError(f"type '{type_name}' has no vector '{property_name}'", code="not_a_vector", hint=hint)
    key, view = TableKey.node(type_name), context.view(snapshot)
    tables = ExecutionContext(catalog, snapshot, context.cache, NO_LIMITS) if view is None else view.context

    def compute() -> pa.Table:
        columns = ["id", property_name]
        rows = snapshot.table(key).read(columns) if view is None else view.read(key, columns)
        return _projected(rows, property_name)

    return tables.type_table(key).derived(f"projection:{property_name}", compute)


def _projected(rows: pa.Table, name: str) -> pa.Table:
    rows = rows.filter(one_array(rows[name]).is_valid())
    if rows.num_rows > ROWS_MAX:
        rows = rows.take(pa.array(np.linspace(0, rows.num_rows - 1, ROWS_MAX).astype(np.int64)))
    if not rows.num_rows:
        return _SCHEMA.empty_table()
    column = one_array(rows[name])
    vectors = np.asarray(column.flatten(), dtype=np.float64).reshape(rows.num_rows, -1)
    points = principal_axes(vectors)
    return pa.table([one_array(rows["id"]).cast(pa.utf8()), points[:, 0], points[:, 1]], schema=_SCHEMA)


def principal_axes(vectors: Vectors) -> Vectors:
    """Return the coordinates of vectors along their two directions of largest variance."""
    centred = vectors - vectors.mean(axis=0)
    _, directions = np.linalg.eigh(centred.T @ centred)
    axes = directions[:, ::-1][:, :2]
    axes = axes * np.where(axes[np.abs(axes).argmax(axis=0), range(axes.shape[1])] < 0, -1.0, 1.0)
    points = centred @ axes
    return np.pad(points, ((0, 0), (0, 2 - points.shape[1])))
