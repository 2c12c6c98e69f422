"""`GraphTables`: the part of `Graph` that returns rows and whole tables."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from numbers import Integral
from typing import Any

import pyarrow as pa

from omnigraph.blob import Blob
from omnigraph.engine.cache.id_index import find
from omnigraph.engine.cache.id_segments import uses_segments
from omnigraph.engine.exec.view import View
from omnigraph.errors import Hint, InputError, NotFound, TypeNotFound
from omnigraph.notebook.schema_view import picture_of
from omnigraph.notebook.tables import side_by_side
from omnigraph.notebook.tables import table as html_table
from omnigraph.operations.export import export_records
from omnigraph.operations.graph_context import GraphContext
from omnigraph.operations.memory_graphs import NodeIndex, rustworkx_of, sparse_edge, sparse_of
from omnigraph.operations.networkx_export import NetworkTypes, to_networkx
from omnigraph.operations.pyg_export import TensorTypes, check_pyg, hetero_data
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.schema.arrow import table_schema
from omnigraph.schema.catalog import Catalog
from omnigraph.storage.lance.blobs import find_address, open_blob
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey, TypeKind
from omnigraph.versioning.compare.rows import to_dicts
from omnigraph.versioning.model.snapshot import Snapshot
from omnigraph.versioning.write.ref_names import check_text

KINDS: tuple[TypeKind, ...] = ("node", "edge")


class GraphTables:
    """Rows and tables of one opened graph."""

    def __init__(self, context: GraphContext) -> None:
        self._context = context

    def row(self, snapshot: Snapshot, type_name: str, id: Any, kind: TypeKind | None = None) -> dict[str, Any] | None:
        """Return one node or edge by its id; None if it does not exist."""
        key = self._key(snapshot, type_name, kind)
        view = self._context.view(snapshot)
        id = current_id(snapshot, key, row_id(id), view)
        if view is not None:
            seen = view.row_of(key, id, self._columns(snapshot, key))
            return None if seen is None else to_dicts(seen)[0]
        table, columns = snapshot.table(key), self._columns(snapshot, key)
        data = self._context.cache.table(table)
        if self._context.cache.folder is not None and uses_segments(data) and not table.blobs.intersection(columns):
            row = find(data, id)
            return None if row is None else to_dicts(table.take(columns, [row]))[0]
        found = to_dicts(table.rows_of([id], columns))
        return found[0] if found else None

    def blob(self, snapshot: Snapshot, type_name: str, id: Any, property: str, kind: TypeKind | None = None) -> Blob:
        """Return the value of a Blob property; `NotFound` if the row does not exist or the value is null."""
        key = self._key(snapshot, type_name, kind)
        view = self._context.view(snapshot)
        id = current_id(snapshot, key, row_id(id), view)
        _check_blob_property(self._context.catalog(snapshot), key, property)
        table = snapshot.table(key)
        row = None if view is None else view.find(key, id)
        address = find_address(table, id) if view is None or row is not None else None
        if address is None:
            raise NotFound(
                f"{type_name} '{id}' does not exist at commit {snapshot.commit_id}",
                code="entity_not_found",
                hint=Hint(
                    "the id of a keyed node is its key; to_arrow() lists the ids of a type",
                    cli="the id of a keyed node is its key; 'omnigraph export' lists ids",
                ),
            )
        hidden = view is not None and row is not None and not view.sees_value(key, row, property)
        stored = None if hidden else open_blob(table, address, property)
        if stored is None:
            raise NotFound(
                f"{type_name} '{id}' has no value in '{property}' at commit {snapshot.commit_id}",
                code="null_blob",
                hint=Hint(
                    "history(type_name, id) lists its earlier values",
                    cli=f"'omnigraph history {type_name} {id}' lists its earlier values",
                ),
            )
        return Blob(stored.read_range, size=stored.size, etag=stored.digest, commit_id=snapshot.commit_id)

    def to_arrow(
        self, snapshot: Snapshot, type_name: str, columns: Sequence[str] | None, kind: TypeKind | None = None
    ) -> pa.Table:
        """Return all rows of a type as an Arrow table."""
        key, chosen = self._chosen_columns(snapshot, type_name, columns, kind)
        view = self._context.view(snapshot)
        return snapshot.table(key).read(chosen) if view is None else view.read(key, chosen)

    def to_batches(
        self,
        snapshot: Snapshot,
        type_name: str,
        columns: Sequence[str] | None,
        batch_rows: int,
        kind: TypeKind | None = None,
    ) -> tuple[pa.Schema, Iterator[pa.RecordBatch]]:
        """Return the columns of a type and an iterator of all its rows in batches."""
        if type(batch_rows) is not int or batch_rows < 1:
            raise InputError(f"batch_rows must be a positive integer (got {str(batch_rows)[:40]})")
        key, chosen = self._chosen_columns(snapshot, type_name, columns, kind)
        view = self._context.view(snapshot)
        if view is not None:
            return view.schema(key, chosen), view.batches(key, chosen, batch_rows)
        table = snapshot.table(key)
        return pa.schema([table.schema.field(name) for name in chosen]), table.stream(chosen, batch_rows)

    def _chosen_columns(
        self, snapshot: Snapshot, type_name: str, columns: Sequence[str] | None, kind: TypeKind | None
    ) -> tuple[TableKey, list[str]]:
        """Return the table of a type and the requested columns, by default all in schema order."""
        key = self._key(snapshot, type_name, kind)
        known = self._columns(snapshot, key)
        for name in columns or ():
            if name not in known:
                raise InputError(f"type '{type_name}' has no column '{name}'", hint=did_you_mean(name, known))
        return key, known if columns is None else [*columns]

    def to_spark(
        self, snapshot: Snapshot, type_name: str, columns: Sequence[str] | None, filter: str | None, spark: Any
    ) -> Any:
        """Return the rows of a type that pass an SQL filter as a Spark DataFrame."""
        from omnigraph.spark.reads import table_dataframe

        context = self._context
        key = self._key(snapshot, type_name, None)
        known = self._columns(snapshot, key)
        chosen = known if columns is None else columns
        visibility = context.visibility_of(snapshot)
        return table_dataframe(
            context.repository, snapshot, key, chosen, known, filter=filter, spark=spark, visibility=visibility
        )

    def to_networkx(self, snapshot: Snapshot, types: Sequence[str] | None) -> Any:
        """Return a snapshot as a `networkx.MultiDiGraph`."""
        return to_networkx(snapshot, self._context.catalog(snapshot), types, self._context.view(snapshot))

    def to_rustworkx(self, snapshot: Snapshot, types: Sequence[str] | None) -> tuple[Any, NodeIndex]:
        """Return a snapshot as a `rustworkx.PyDiGraph`, and the index of each (type, id)."""
        catalog, view = self._context.catalog(snapshot), self._context.view(snapshot)
        chosen = NetworkTypes.of(catalog, types)
        nodes = export_records(snapshot, catalog, chosen.nodes, view) if chosen.nodes else ()
        edges = export_records(snapshot, catalog, chosen.edges, view) if chosen.edges else ()
        return rustworkx_of(catalog, nodes, edges)

    def to_sparse(self, snapshot: Snapshot, edge: str, weight: str | None) -> tuple[Any, pa.Array, pa.Array]:
        """Return the edges of a type as a `scipy.sparse.csr_array`, with the ids of rows and columns."""
        type_ = sparse_edge(self._context.catalog(snapshot), edge, weight)
        ids = {
            name: self.to_arrow(snapshot, name, ["id"], "node")["id"].combine_chunks()
            for name in {type_.from_type, type_.to_type}
        }
        rows = self.to_arrow(snapshot, edge, ["src", "dst", *([weight] if weight else [])], "edge")
        return sparse_of(rows, ids[type_.from_type], ids[type_.to_type], weight)

    def to_pyg(
        self,
        snapshot: Snapshot,
        types: Sequence[str] | None,
        features: Mapping[str, Sequence[str]] | None,
        labels: Mapping[str, str] | None,
    ) -> Any:
        """Return a snapshot as `HeteroData` of PyTorch Geometric."""
        chosen = TensorTypes.of(self._context.catalog(snapshot), types, features, labels)
        check_pyg()
        return hetero_data(chosen, [self.to_arrow(snapshot, name, cols, kind) for name, kind, cols in chosen.tables()])

    def html(self, snapshot: Snapshot, caption: str) -> str:
        """Return the row counts of all tables and a picture of the schema as HTML."""
        shown = self._context.visible_snapshot(snapshot)
        rows = [(key, table.pin.row_count) for key, table in shown.tables.items()]
        counts = html_table(("table", "rows"), rows, caption=f"{caption}, commit {snapshot.commit_id}")
        return side_by_side(counts, picture_of(self._context.catalog(snapshot)))

    def _key(self, snapshot: Snapshot, type_name: str, kind: TypeKind | None) -> TableKey:
        """Return the table key of a type that the caller may see."""
        known: Collection[str] = snapshot.tables
        if self._context.has_row_rules:
            known = [type_.table_key for type_ in self._context.catalog(snapshot).tables()]
        return table_key_of(snapshot, type_name, kind, known)

    def _columns(self, snapshot: Snapshot, table_key: str) -> list[str]:
        """Return the columns of a table in schema order; the stored table has them in the order of their creation."""
        catalog = self._context.catalog(snapshot)
        type_ = next(type_ for type_ in catalog.tables() if type_.table_key == table_key)
        return list(table_schema(type_).names)


def table_key_of(
    snapshot: Snapshot, type_name: str, kind: TypeKind | None = None, tables: Collection[str] | None = None
) -> TableKey:
    """Return the table key of a type; without `kind`, a name that is both means the node type.

    `tables` are the tables that exist for the caller, by default all of the snapshot.
    """
    tables = snapshot.tables if tables is None else tables
    check_text(type_name, "type")
    if kind is not None and kind not in KINDS:
        raise InputError(f"there is no kind '{str(kind)[:40]}'", hint="the kinds are node and edge")
    kinds = KINDS if kind is None else (kind,)
    for each in kinds:
        if TableKey.of(each, type_name) in tables:
            return TableKey.of(each, type_name)
    keys = map(TableKey.parse, tables)
    known = [key.type_name for key in keys if key.kind in kinds]
    what = "type" if kind is None else f"{kind} type"
    raise TypeNotFound(
        f"{what} '{type_name}' does not exist at commit {snapshot.commit_id}", hint=did_you_mean(type_name, known)
    )


def _check_blob_property(catalog: Catalog, key: TableKey, name: str) -> None:
    """Refuse a property that does not exist or is not a Blob."""
    check_text(name, "property")
    type_ = next(type_ for type_ in catalog.tables() if type_.table_key == key)
    if name in type_.blobs:
        return
    known = type_.properties.get(name)
    problem = f"has no property '{name}'" if known is None else f"has '{name}' of type {known.type}, not Blob"
    hint = did_you_mean(name, type_.blobs) if type_.blobs else None
    listed = f"its Blob properties are: {', '.join(type_.blobs)}" if type_.blobs else "it has no Blob property"
    raise InputError(f"type '{key.type_name}' {problem}", code="not_a_blob", hint=hint or listed)


def current_id(snapshot: Snapshot, key: str, id: str, view: View | None) -> str:
    """Return the id of the row that an id or an alias of a visible node denotes."""
    kept = snapshot.find_alias(key, id) if snapshot.aliases_hash else None
    return id if kept is None or (view is not None and view.find(key, kept) is None) else kept


def row_id(id: Any) -> str:
    """Return the stored id of a node or edge; an integer key is stored as text."""
    if not isinstance(id, bool) and isinstance(id, Integral):
        return str(int(id))
    if not isinstance(id, str):
        raise InputError(f"an id is a str or an int, not {type(id).__name__}", hint=f"write '{str(id)[:80]}'")
    if not is_unicode(id):
        raise InputError("the id is not valid Unicode text")
    return id
