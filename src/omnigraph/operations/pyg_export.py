"""A graph as `HeteroData` of PyTorch Geometric: features, labels and ends of edges as tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import InputError
from omnigraph.operations.networkx_export import NetworkTypes
from omnigraph.optional_packages import get_package
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean
from omnigraph.types import PropertyType

NO_LABEL = -1
"""The class of an entity whose label is null."""


@dataclass(frozen=True)
class TensorTypes:
    """The types of a `HeteroData`, with the properties of each that become tensors."""

    nodes: Sequence[NodeType]
    edges: Sequence[EdgeType]
    features: Mapping[str, Sequence[str]]
    labels: Mapping[str, str]

    @classmethod
    def of(
        cls,
        catalog: Catalog,
        types: Sequence[str] | None,
        features: Mapping[str, Sequence[str]] | None,
        labels: Mapping[str, str] | None,
    ) -> TensorTypes:
        """Select types as `to_networkx` does; `InputError` for a property that cannot be a tensor."""
        chosen = NetworkTypes.of(catalog, types)
        for name in types or ():
            if name not in catalog.nodes and name not in catalog.edges:
                raise InputError(
                    f"there is no type '{name}'", hint=did_you_mean(name, [*catalog.nodes, *catalog.edges])
                )
        nodes = [catalog.nodes[name] for name in chosen.nodes if name in catalog.nodes]
        edges = [catalog.edges[name] for name in chosen.edges]
        found = cls(nodes, edges, dict(features or {}), dict(labels or {}))
        for name, properties in found.features.items():
            if isinstance(properties, str):
                raise InputError(f"the features of '{name}' must be a list of properties", hint=f"[{properties!r}]")
            for one in properties:
                type_ = found._property(name, one)
                if not (type_.is_numeric or _is_plain(type_, "Bool") or _is_plain(type_, "Vector")):
                    raise InputError(f"'{name}.{one}' is {type_}; a feature must be a number, a Bool or a Vector")
        for name, one in found.labels.items():
            type_ = found._property(name, one)
            if not (type_.is_numeric or type_.is_text or _is_plain(type_, "Bool")):
                raise InputError(f"'{name}.{one}' is {type_}; a label must be a number, a Bool, a String or an enum")
        return found

    def _property(self, type_name: str, name: str) -> PropertyType:
        known = {type_.name: type_ for type_ in (*self.nodes, *self.edges)}
        if type_name not in known:
            raise InputError(f"'{type_name}' is not among the types", hint=did_you_mean(type_name, known))
        properties = known[type_name].properties
        if name not in properties:
            raise InputError(f"'{type_name}' has no property '{name}'", hint=did_you_mean(name, properties))
        return properties[name].type

    def tables(self) -> list[tuple[str, Literal["node", "edge"], list[str]]]:
        """Return name, kind and columns of the tables to read: node types first."""
        listed: list[tuple[str, Literal["node", "edge"], list[str]]] = []
        for node in self.nodes:
            listed.append((node.name, "node", self._columns(node.name, ["id"])))
        for edge in self.edges:
            listed.append((edge.name, "edge", self._columns(edge.name, ["id", "src", "dst"])))
        return listed

    def _columns(self, name: str, always: list[str]) -> list[str]:
        label = [self.labels[name]] if name in self.labels else []
        return list(dict.fromkeys([*always, *self.features.get(name, ()), *label]))


def _is_plain(type_: PropertyType, scalar: str) -> bool:
    return type_.scalar == scalar and not type_.is_list


def check_pyg() -> None:
    """Raise `MissingPackage` if PyTorch or PyTorch Geometric is not installed, before tables are read."""
    for package in ("torch", "torch_geometric"):
        get_package(package)


def hetero_data(chosen: TensorTypes, tables: Sequence[pa.Table]) -> Any:
    """Return the `HeteroData` of the tables that `chosen` lists.

    A node type has `num_nodes` and `ids`, an edge type `edge_index` and `ids`. Features are `x` of nodes and
    `edge_attr` of edges, as 32-bit floats, in the order of the properties; null is 0. Labels are `y`.
    """
    torch, data = get_package("torch"), get_package("torch_geometric.data").HeteroData()
    ids: dict[str, pa.Array] = {}
    for node, table in zip(chosen.nodes, tables, strict=False):
        ids[node.name] = _whole(table["id"])
        store = data[node.name]
        store.num_nodes = table.num_rows
        _fill(torch, store, chosen, node, table, "x")
    for edge, table in zip(chosen.edges, tables[len(chosen.nodes) :], strict=True):
        store = data[edge.from_type, edge.name, edge.to_type]
        ends = [pc.index_in(table[end], ids[of]) for end, of in (("src", edge.from_type), ("dst", edge.to_type))]
        numbers = np.stack([_whole(end).to_numpy(zero_copy_only=False).astype(np.int64) for end in ends])
        store.edge_index = torch.from_numpy(numbers)
        _fill(torch, store, chosen, edge, table, "edge_attr")
    return data


def _fill(torch: Any, store: Any, chosen: TensorTypes, of: NodeType | EdgeType, table: pa.Table, name: str) -> None:
    """Set ids, features and labels of a type."""
    store.ids = table["id"].to_pylist()
    if of.name in chosen.features:
        columns = [_numbers(table[one], of.properties[one].type) for one in chosen.features[of.name]]
        filled = np.concatenate(columns, axis=1) if columns else np.zeros((table.num_rows, 0), np.float32)
        setattr(store, name, torch.from_numpy(np.ascontiguousarray(filled)))
    if of.name in chosen.labels:
        label = chosen.labels[of.name]
        values, classes = _labels(table[label], of.properties[label].type)
        store.y = torch.from_numpy(values)
        if classes is not None:
            store.classes = classes


def _numbers(column: pa.ChunkedArray, type_: PropertyType) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a property as rows of 32-bit floats; null is 0."""
    values = _whole(column)
    if type_.scalar != "Vector":
        numbers = values.cast(pa.uint8()) if type_.scalar == "Bool" else values
        plain: np.ndarray[Any, Any] = pc.fill_null(numbers, 0).to_numpy(zero_copy_only=False)
        return plain.astype(np.float32).reshape(-1, 1)
    found = np.zeros((len(values), type_.dim or 0), np.float32)
    present = values.is_valid().to_numpy(zero_copy_only=False)
    if present.any():
        items = values.filter(values.is_valid()).flatten().to_numpy(zero_copy_only=False)
        found[present] = items.astype(np.float32).reshape(-1, type_.dim or 0)
    return found


def _labels(column: pa.ChunkedArray, type_: PropertyType) -> tuple[np.ndarray[Any, Any], list[str] | None]:
    """Return labels as numbers, and the names of the classes of texts. A float that is null is NaN, others -1."""
    values = _whole(column)
    if type_.is_float:
        plain: np.ndarray[Any, Any] = values.cast(pa.float64()).fill_null(float("nan")).to_numpy(zero_copy_only=False)
        return plain.astype(np.float32), None
    if not type_.is_text:
        whole = values.cast(pa.uint8() if type_.scalar == "Bool" else values.type).cast(pa.int64())
        return whole.fill_null(NO_LABEL).to_numpy(zero_copy_only=False).copy(), None
    classes = [*type_.enum_values] if type_.enum_values is not None else sorted(set(values.drop_null().to_pylist()))
    codes = pc.index_in(values.cast(pa.large_string()), pa.array(classes, pa.large_string()))
    return codes.fill_null(NO_LABEL).to_numpy(zero_copy_only=False).astype(np.int64), classes


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
