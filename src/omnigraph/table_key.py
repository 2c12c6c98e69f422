"""Keys of tables: `node:Person`, `edge:Knows`."""

from __future__ import annotations

from typing import Literal, Self, cast

TypeKind = Literal["node", "edge"]


class TableKey(str):
    """Key of the table of a node or edge type; as text, the name of the table in the manifest."""

    __slots__ = ()

    @classmethod
    def of(cls, kind: TypeKind, type_name: str) -> Self:
        """Return the key of the table of a type."""
        return cls(f"{kind}:{type_name}")

    @classmethod
    def node(cls, type_name: str) -> Self:
        """Return the key of the table of a node type."""
        return cls("node:" + type_name)

    @classmethod
    def edge(cls, type_name: str) -> Self:
        """Return the key of the table of an edge type."""
        return cls("edge:" + type_name)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the key that a text denotes; ValueError if it denotes none."""
        if isinstance(text, cls):
            return text
        kind, _, type_name = text.partition(":")
        if kind not in ("node", "edge") or not type_name:
            raise ValueError(f"'{text}' is not a table key")
        return cls(text)

    @property
    def parts(self) -> tuple[TypeKind, str]:
        """Kind and name of the type."""
        kind, _, type_name = self.partition(":")
        return cast(TypeKind, kind), type_name

    @property
    def kind(self) -> TypeKind:
        """Kind of the type."""
        return self.parts[0]

    @property
    def type_name(self) -> str:
        """Name of the type."""
        return self.parts[1]
