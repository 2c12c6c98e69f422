"""The declared attributes of the nodes or edges of an XML file, and the values of a record as attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.operations.formats.value_text import Spelling, value_text
from omnigraph.schema.catalog import EdgeType, NodeType
from omnigraph.types import PropertyType


@dataclass(frozen=True)
class Attribute:
    """An attribute that a file declares: its key in the file, its name and its type there."""

    key: str
    name: str
    file_type: str
    type: PropertyType


class AttributeTable:
    """The attributes of the nodes or of the edges of a file. Properties with one name and type are one attribute."""

    def __init__(
        self, types: Sequence[NodeType | EdgeType], prefix: str, file_type: Callable[[PropertyType], str]
    ) -> None:
        self.attributes: list[Attribute] = []
        self._of: dict[str, list[tuple[str, str, Spelling]]] = {}
        known: dict[tuple[str, PropertyType], Attribute] = {}
        for type_ in types:
            columns = self._of.setdefault(type_.name, [])
            for name, property_ in type_.properties.items():
                plain = property_.type.with_nullable(False)
                found = known.get((name, plain))
                if found is None:
                    found = Attribute(f"{prefix}{len(known)}", name, file_type(plain), plain)
                    known[name, plain] = found
                    self.attributes.append(found)
                columns.append((name, found.key, value_text(plain)))

    def free_name(self, name: str) -> str:
        """Return a name that no attribute has: `name` itself, or with underscores behind it."""
        while any(attribute.name == name for attribute in self.attributes):
            name += "_"
        return name

    def values(self, type_name: str, data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the key and the text of each value of a record that is not null."""
        for name, key, spell in self._of[type_name]:
            value = data[name]
            if value is not None:
                yield key, spell(value)
