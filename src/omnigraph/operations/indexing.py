"""The indexes that a schema requires."""

from __future__ import annotations

from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.storage.lance.indexes import IndexSpec


def wanted_indexes(catalog: Catalog) -> dict[str, list[IndexSpec]]:
    """Table key → indexes.

    Indexed are every `id`, both ends of edges, and each single column that is a key, unique or `@index`: by value, and
    also by words if it is free text. Lists, Blobs, edge properties and groups of columns have no index.
    """
    return {type_.table_key: _of_table(type_) for type_ in catalog.tables()}


def _of_table(type_: NodeType | EdgeType) -> list[IndexSpec]:
    if isinstance(type_, EdgeType):
        return [IndexSpec(column, "btree") for column in ("id", "src", "dst")]
    specs = [IndexSpec("id", "btree")]
    identifying = {columns[0] for columns in (*type_.unique, tuple(type_.key)) if len(columns) == 1}
    for columns in (*type_.indices, *type_.unique):
        if len(columns) != 1:
            continue
        name = columns[0]
        property_type = type_.properties[name].type
        if property_type.is_list or property_type.scalar == "Blob":
            continue
        if property_type.scalar == "Vector":
            specs.append(IndexSpec(name, "vector"))
        elif property_type.is_text and property_type.enum_values is None:
            if name in identifying:
                specs.append(IndexSpec(name, "btree"))
            if (name,) in type_.indices:
                specs.append(IndexSpec(name, "text"))
        else:
            specs.append(IndexSpec(name, "btree"))
    return list(dict.fromkeys(specs))
