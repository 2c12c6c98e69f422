"""Writes the values of an algorithm to properties, as one commit.

Only rows whose value changed are written, so a second run on the same graph writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import one_array
from omnigraph.engine.write.constraints import check_delta
from omnigraph.engine.write.overlay import WriteOverlay
from omnigraph.errors import InputError
from omnigraph.operations.analysis.analyze import Solve, analyze
from omnigraph.operations.analysis.request import Analysis, AnalysisRequest
from omnigraph.operations.graph_context import GraphContext
from omnigraph.schema.arrow import arrow_type
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.idempotency import hash_request
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write_once

if TYPE_CHECKING:
    from omnigraph.engine.write.row_guard import GuardedWrite


def analyze_and_write(
    context: GraphContext,
    request: AnalysisRequest,
    into: str | Mapping[str, str],
    options: WriteOptions,
    solve: Solve | None = None,
) -> Analysis:
    """Run an algorithm on a branch's head and set the properties that `into` names, as one commit.

    `into` is the property for an algorithm with one result column, else a mapping of column to property.
    A repetition with the same idempotency key writes nothing; the values are computed again on the commit of the first
    call. A call that changes no value is evaluated again.
    """
    targets = _targets(request, into)
    arguments = request.algorithm, request.nodes, request.edges, request.weight, dict(request.check()), into
    options = replace(options, request_hash=hash_request("analyze", options.branch, *arguments))
    analysis: Analysis | None = None
    rows_written = 0

    def prepare(transaction: Transaction) -> None:
        nonlocal analysis, rows_written
        catalog = context.catalogs.of(transaction.snapshot)
        analysis = analyze(context, transaction.snapshot, request, solve)
        pending = WriteOverlay(transaction.snapshot)
        guard = _guarded(context, transaction.snapshot, pending)
        visible = context.catalog(transaction.snapshot)
        rows_written = 0
        for name, values in analysis.tables.items():
            of_type = _type(catalog, request, name)
            _check_targets(_type(visible, request, name), values, targets)
            # Values that the caller cannot read are not compared.
            masked = guard is not None and guard.withholds(of_type, targets.values())
            rows = _changed(of_type, pending, values, targets, every=masked)
            rows_written += rows.num_rows
            if rows.num_rows:
                pending.table(of_type.table_key).put(rows)
                if guard is not None:
                    guard.assigned(of_type, targets.values(), rows)
        check_delta(catalog, pending.delta(guard=guard))
        for table in pending.changed_tables():
            transaction.change(table.key, table.change())
        transaction.options = replace(transaction.options, result={"rows_written": rows_written})

    commit, earlier = write_once(context.repository, prepare, replace(options, kind="analysis"))
    if earlier is not None and commit is not None:
        analysis = analyze(context, context.repository.snapshot(at=commit.id), request, solve)
        rows_written = earlier.result["rows_written"]
    assert analysis is not None
    return replace(analysis, rows_written=rows_written, commit_id=commit.id if commit else None)


def _guarded(context: GraphContext, snapshot: Snapshot, pending: WriteOverlay) -> GuardedWrite | None:
    rules = context.guard_of(snapshot)
    if rules is None:
        return None
    from omnigraph.engine.write.row_guard import GuardedWrite  # noqa: PLC0415 (only for a guard)

    return GuardedWrite(rules, context.catalogs.of(snapshot), pending)


def _type(catalog: Catalog, request: AnalysisRequest, name: str) -> NodeType | EdgeType:
    return catalog.edges[name] if request.spec.subject == "edges" else catalog.nodes[name]


def _targets(request: AnalysisRequest, into: str | Mapping[str, str]) -> Mapping[str, str]:
    """Return result column → property."""
    columns = request.spec.columns
    if request.spec.subject == "pairs":
        raise InputError(
            f"'{request.algorithm}' has pairs of nodes, which are not values of properties",
            hint="load a table of the result as edges: graph.load({'Similar': result.tables['Person']}, mode='merge')",
        )
    if isinstance(into, str):
        if len(columns) > 1:
            raise InputError(
                f"'{request.algorithm}' has {len(columns)} result columns",
                hint=f"name the property of each: {{'{columns[0]}': '{into}'}}",
            )
        return {columns[0]: into}
    for column in into:
        if column not in columns:
            raise InputError(
                f"'{request.algorithm}' has no result column '{column}'", hint=f"the columns are {', '.join(columns)}"
            )
    return into


def _check_targets(of_type: NodeType | EdgeType, values: pa.Table, targets: Mapping[str, str]) -> None:
    for column, name in targets.items():
        _check_target(of_type, name, values.schema.field(column).type)


def _changed(
    of_type: NodeType | EdgeType, pending: WriteOverlay, values: pa.Table, targets: Mapping[str, str], *, every: bool
) -> pa.Table:
    """Return the rows of a table whose values change, with the new values; with `every`, all that have values."""
    table = pending.table(of_type.table_key)
    now = table.committed.read(["id", *targets.values()])
    place = pc.index_in(now["id"], value_set=one_array(values["id"]))
    columns = {name: values[column].take(place) for column, name in targets.items()}
    columns = {name: column.cast(arrow_type(of_type.properties[name].type)) for name, column in columns.items()}
    differs: Any = pa.chunked_array([np.full(now.num_rows, every)])
    for name, column in columns.items():
        differs = pc.or_(differs, _differing(now[name], column))
    differs = pc.and_(differs, pc.is_valid(place))
    if not pc.any(differs).as_py():
        return table.schema.empty_table()
    rows = table.committed.read(table.schema.names)
    for name, column in columns.items():
        rows = rows.set_column(rows.schema.get_field_index(name), table.schema.field(name), column)
    return rows.filter(differs)


def _differing(before: pa.ChunkedArray, after: pa.ChunkedArray) -> Any:
    """Return True where the values differ, or one of them is null."""
    if not pa.types.is_fixed_size_list(after.type):
        return pc.fill_null(pc.not_equal(before, after), True)
    # Arrow does not compare lists.
    old, new = one_array(before), one_array(after)
    filled = pc.and_(pc.is_valid(old), pc.is_valid(new)).to_numpy(zero_copy_only=False)
    differs = np.ones(len(new), bool)
    parts = [part.filter(pa.array(filled)).flatten().to_numpy(zero_copy_only=False) for part in (old, new)]
    differs[filled] = (parts[0] != parts[1]).reshape(-1, new.type.list_size).any(axis=1)
    return pa.chunked_array([pa.array(differs)])


def _check_target(of_type: NodeType | EdgeType, name: str, found: pa.DataType) -> None:
    """Raise `InputError` if a property cannot take the values of a column."""
    kind = _kind(found)
    what, property_ = "edge" if isinstance(of_type, EdgeType) else "node", of_type.properties.get(name)
    if property_ is None:
        raise InputError(
            f"{what} '{of_type.name}' has no property '{name}' to write to",
            hint=did_you_mean(name, of_type.properties)
            or f"add '{name}: {kind}?' to '{of_type.name}' and apply the schema",
        )
    problem = ""
    if isinstance(of_type, NodeType) and name in of_type.identity:
        problem = "a key"
    elif isinstance(of_type, NodeType) and name in of_type.embeds:
        problem = "computed from a text"
    elif _kind(arrow_type(property_.type)) != kind:
        problem = f"of type {property_.type}"
    if problem:
        raise InputError(
            f"'{of_type.name}.{name}' is {problem}; the values are {kind}", hint=f"declare '{name}: {kind}?'"
        )


def _kind(found: pa.DataType) -> str:
    """Return the type of properties that take values of an Arrow type; narrower numbers count as well."""
    if pa.types.is_fixed_size_list(found):
        return f"Vector({found.list_size})"
    if pa.types.is_boolean(found):
        return "Bool"
    if pa.types.is_floating(found):
        return "F64"
    return "I64" if pa.types.is_integer(found) else str(found)
