"""Rows of a query as documents: the text, the other columns, and where the row comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from langchain_core.documents import Document

from langchain_omnigraph.handles import HIT, listing
from omnigraph.errors import InputError

if TYPE_CHECKING:
    from omnigraph import Result

RANKS = "why"
"""The column of `why()`."""


class HitReader:
    """Reads documents from the rows of one result."""

    def __init__(self, result: Any, text: str, query: str) -> None:
        self._result: Result = result
        self._query = query
        self._columns = result.columns
        self._shape = result.shape.columns
        self._hops = result.shape.hops
        self._vectors = {field.name: _vector_fields(field.type) for field in result.schema}
        self._node, self._field = self._place_of(text)

    def first(self, count: int) -> Iterator[dict[str, Any]]:
        """Return the first rows; the others are not computed."""
        return islice(self._result, max(count, 0))

    def document(self, row: Mapping[str, Any]) -> Document:
        """Return the document of a row."""
        hit: dict[str, Any] = {"query": self._query, "commit": self._result.commit_id}
        metadata: dict[str, Any] = {}
        paths: list[dict[str, Any]] = []
        for at, name in enumerate(self._columns):
            value, kind = row[name], self._shape[at].kind
            if name == RANKS:
                hit["ranks"] = value
            elif kind == "path":
                paths += _path_steps(value)
            elif name == self._node and kind == "node":
                hit |= self._identity(at, value)
                metadata |= self._plain(name, value, without=(self._field, "id"))
            elif kind == "node":
                metadata[name] = self._plain(name, value) if value is not None else None
            elif name != self._field or self._node is not None:
                metadata[name] = value
        if "id" not in hit and "id" in metadata:
            hit["id"] = metadata["id"]
        if "type" not in hit and "type" in metadata:
            hit["type"] = metadata["type"]
        paths += self._hop_steps(row)
        if paths:
            hit["path"] = paths
        text = (row[self._node] or {}).get(self._field) if self._node is not None else row[self._field]
        id_ = hit.get("id")
        return Document(
            id=None if id_ is None else str(id_), page_content=str(text or ""), metadata={**metadata, HIT: hit}
        )

    def _place_of(self, text: str) -> tuple[str | None, str]:
        """Return the column of the node and its property, or None and the column, that hold the text."""
        if text in self._columns:
            return None, text
        node, _, field = text.partition(".")
        if node in self._columns and field in self._result.schema.field(node).type.names:
            return node, field
        raise InputError(
            f"the stored query '{self._query}' returns no '{text}'", hint=f"its columns are {listing(self._columns)}"
        )

    def _identity(self, at: int, node: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the id and the type of the node in a column."""
        if node is None:
            return {}
        return {"id": node["id"], "type": node["type"] if "|" in self._shape[at].type else self._shape[at].type}

    def _plain(self, column: str, node: Mapping[str, Any] | None, without: tuple[str, ...] = ()) -> dict[str, Any]:
        """Return the properties of a node without its vectors."""
        hidden = {*without, *self._vectors[column]}
        return {name: value for name, value in (node or {}).items() if name not in hidden}

    def _hop_steps(self, row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the edges of the pattern between returned nodes."""
        for hop in self._hops:
            source, target = (row[self._columns[at]] for at in (hop.source, hop.target))
            if source is not None and target is not None:
                yield {
                    "edge": hop.label,
                    "from": self._identity(hop.source, source),
                    "to": self._identity(hop.target, target),
                }


def _path_steps(path: Mapping[str, Any] | None) -> list[dict[str, Any]]:
    """Return the edges of a path."""
    if path is None:
        return []
    return [{"edge": edge["type"], "from": edge["from"], "to": edge["to"]} for edge in path["edges"]]


def first_rows(result: Result, count: int) -> list[dict[str, Any]]:
    """Return the first rows without vectors, which say nothing to a model; the other rows are not computed."""
    hidden = {field.name for field in result.schema if pa.types.is_fixed_size_list(field.type)}
    inside = {field.name: _vector_fields(field.type) for field in result.schema}
    rows = []
    for row in islice(result, count):
        shown = {name: value for name, value in row.items() if name not in hidden}
        for name, vectors in inside.items():
            if vectors and shown[name] is not None:
                shown[name] = {key: value for key, value in shown[name].items() if key not in vectors}
        rows.append(shown)
    return rows


def _vector_fields(type_: pa.DataType) -> frozenset[str]:
    """Return the names of the vectors in an object."""
    if not pa.types.is_struct(type_):
        return frozenset()
    return frozenset(field.name for field in type_ if pa.types.is_fixed_size_list(field.type))
