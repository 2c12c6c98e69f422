"""The indexes that a schema requires."""

from __future__ import annotations

from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.lance.indexes import IndexSpec


def wanted_indexes(catalog: Catalog) -> dict[str, list[IndexSpec]]:
    """Table key → sorted indexes.

    Indexed are every `id`, both ends of edges, and each single column that is a key, unique or `@index`, except free
    text that is only `@index`. Lists, Blobs, Vectors, edge properties and groups of columns have no sorted index.
    Structures for text and vector search are derived data of the engine (`operations.derived_data`).
    """
    return {type_.table_key: _of_table(type_) for type_ in catalog.tables()}


def _of_table(type_: NodeType | EdgeType) -> list[IndexSpec]:
    if isinstance(type_, EdgeType):
        return [IndexSpec(column) for column in ("id", "src", "dst")]
    specs = [IndexSpec("id")]
    identifying = {columns[0] for columns in (*type_.unique, tuple(type_.key)) if len(columns) == 1}
    for columns in (*type_.indices, *type_.unique):
        if len(columns) != 1:
            continue
        name = columns[0]
        property_type = type_.properties[name].type
        if property_type.is_list or property_type.scalar in ("Blob", "Vector"):
            continue
        if not property_type.is_text or property_type.enum_values is not None or name in identifying:
            specs.append(IndexSpec(name))
    return list(dict.fromkeys(specs))
