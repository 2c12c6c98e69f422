"""Documents as rows of a node type: the text, the vector, and one column for each metadata key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.documents import Document

from langchain_omnigraph.handles import key_of, listing
from omnigraph.errors import InputError

if TYPE_CHECKING:
    from omnigraph.schema.catalog import NodeType


@dataclass(frozen=True)
class DocumentColumns:
    """The properties of a node type that hold the parts of a document."""

    type_name: str
    key: str
    key_type: str
    """`String` or `Uuid`."""
    text: str
    vector: str
    json_metadata: str | None
    """The String property for metadata without a column, as one JSON object."""
    metadata: tuple[str, ...]
    """The properties for metadata keys of their name."""
    graph_embeds: bool
    """True if the graph computes the vector from the text."""

    @classmethod
    def of(cls, type_: NodeType, text: str, vector: str | None, json_metadata: str | None) -> DocumentColumns:
        """Return the columns of a node type; `InputError` if a named property does not exist or does not fit."""
        for name in (text, json_metadata):
            if name is not None and _kind(type_, name) != "String":
                raise InputError(f"the property '{type_.name}.{name}' is not a String")
        if vector is None:
            vector = _only_vector(type_)
        if _kind(type_, vector) != "Vector":
            raise InputError(f"the property '{type_.name}.{vector}' is not a Vector")
        key = key_of(type_)
        kept = {
            name
            for name, property_ in type_.properties.items()
            if property_.type.scalar not in ("Vector", "Blob") and name not in (key, text, json_metadata)
        }
        embed = type_.properties[vector].embed
        return cls(
            type_.name,
            key,
            type_.properties[key].type.scalar,
            text,
            vector,
            json_metadata,
            tuple(sorted(kept)),
            embed is not None and embed.source == text,
        )

    def record(self, id_: str, document: Document, vector: Sequence[float] | None) -> dict[str, Any]:
        """Return the record of a document; `InputError` names metadata that have no column."""
        columns = {name: value for name, value in document.metadata.items() if name in self.metadata}
        rest = {name: value for name, value in document.metadata.items() if name not in self.metadata}
        data = {self.key: id_, self.text: document.page_content, **columns}
        if self.json_metadata is not None:
            data[self.json_metadata] = self._json(id_, rest) if rest else None
        elif rest:
            raise InputError(
                f"the metadata {listing(rest)} of the document '{id_}' have no column in '{self.type_name}'",
                hint=f"declare properties of these names in '{self.type_name}', or name a String property for them: "
                "json_metadata=…",
            )
        if vector is not None:
            data[self.vector] = [float(element) for element in vector]
        return {"type": self.type_name, "data": data}

    def document(self, row: Mapping[str, Any]) -> Document:
        """Return the document of a row of `returned`."""
        metadata = {name: row[f"p_{name}"] for name in self.metadata if row[f"p_{name}"] is not None}
        packed = row[f"p_{self.json_metadata}"] if self.json_metadata is not None else None
        if packed is not None:
            metadata.update(json.loads(packed))
        return Document(id=row["id"], page_content=row[f"p_{self.text}"] or "", metadata=metadata)

    def returned(self, variable: str = "$doc") -> str:
        """Return the items of a query whose rows are documents."""
        names = [self.text, *self.metadata, *([self.json_metadata] if self.json_metadata is not None else [])]
        return ", ".join([f"id({variable}) as id", *(f"{variable}.{name} as p_{name}" for name in names)])

    def _json(self, id_: str, metadata: Mapping[str, Any]) -> str:
        try:
            return json.dumps(metadata, ensure_ascii=False, sort_keys=True)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"the metadata {listing(metadata)} of the document '{id_}' are not JSON values: {error}",
                hint=f"convert them, or declare properties of these names in '{self.type_name}'",
            ) from None


def _kind(type_: NodeType, name: str) -> str:
    property_ = type_.properties.get(name)
    if property_ is None:
        raise InputError(
            f"the node type '{type_.name}' has no property '{name}'",
            hint=f"its properties are {listing(type_.properties)}",
        )
    return f"[{property_.type.scalar}]" if property_.type.is_list else property_.type.scalar


def _only_vector(type_: NodeType) -> str:
    found = [name for name, property_ in type_.properties.items() if property_.type.scalar == "Vector"]
    if len(found) != 1:
        raise InputError(
            f"the node type '{type_.name}' has {len(found)} Vector properties", hint="name the property: vector=…"
        )
    return found[0]
