"""Warnings about valid schemas: annotations that the schema language does not define."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.schema.annotations import TEXTS
from omnigraph.schema.catalog import Catalog, InterfaceType, Metadata

_KEY = "write '@key' to name the property that identifies a node"
_INDEX = "write '@index'"
_OPTIONAL = "a property that may be missing has a type with '?', such as 'I32?'"
_REQUIRED = "a property is required unless its type ends with '?'; remove the annotation"
_DEFAULT = "there are no default values; give the value in each record"
_RENAME = "write '@rename_from(\"old_name\")'"
_RANGE = "write '@range(property, low..high)' in the body of the type"
_PATTERN = "write '@check(property, \"pattern\")' in the body of the type"
_REFERENCE = "a reference is an edge: 'edge Name: From -> To'"
_TEXT = "write '@description(\"…\")'"
_ENUM = "write the values as the type: 'enum(one, two)'"
_EMBED = "write '@embed(\"text_property\")' on a Vector property"
_HINTS = {
    **dict.fromkeys(("pk", "primary", "primary_key", "primarykey", "id", "identity", "identifier"), _KEY),
    **dict.fromkeys(("unique_key", "uniquekey", "distinct"), "write '@unique'"),
    **dict.fromkeys(("btree", "fulltext", "full_text", "search", "searchable"), _INDEX),
    **dict.fromkeys(("nullable", "optional", "null"), _OPTIONAL),
    **dict.fromkeys(("required", "not_null", "notnull", "nonnull", "mandatory"), _REQUIRED),
    **dict.fromkeys(("default", "default_value", "defaults"), _DEFAULT),
    **dict.fromkeys(("rename", "renamed", "was", "old_name"), _RENAME),
    **dict.fromkeys(("min", "max", "minimum", "maximum", "between"), _RANGE),
    **dict.fromkeys(("regex", "regexp", "pattern", "matches"), _PATTERN),
    **dict.fromkeys(("fk", "foreign", "foreign_key", "references", "relation", "relationship"), _REFERENCE),
    **dict.fromkeys(("doc", "docs", "comment", "desc"), _TEXT),
    **dict.fromkeys(("enum", "oneof", "one_of"), _ENUM),
    **dict.fromkeys(("embedding", "embedded", "vector"), _EMBED),
}
"""Annotations of other schema languages → the equivalent in this one."""


@dataclass(frozen=True, slots=True)
class UnknownAnnotation:
    """An annotation that is kept as metadata and has no effect."""

    name: str
    type_name: str
    property_name: str | None

    @property
    def hint(self) -> str | None:
        """Hint with the equivalent of an annotation of another schema language."""
        return _HINTS.get(self.name.lower())

    @property
    def message(self) -> str:
        """Return a one-line description: position, effect and hint."""
        where = self.type_name if self.property_name is None else f"{self.type_name}.{self.property_name}"
        text = f"'@{self.name}' on '{where}' is not an annotation of the schema language; it is kept as metadata"
        return f"{text} and has no effect" + (f": {self.hint}" if self.hint else "")


def unknown_annotations(catalog: Catalog) -> Iterator[UnknownAnnotation]:
    """Return the annotations of a schema that the language does not define; those of an interface are reported once."""
    for type_ in (*catalog.interfaces.values(), *catalog.tables()):
        if not isinstance(type_, InterfaceType):
            yield from _unknown(type_.notes, type_.name, None)
        for property_ in type_.properties.values():
            if not property_.injected_from:
                yield from _unknown(property_.notes, type_.name, property_.name)


def _unknown(notes: tuple[Metadata, ...], type_name: str, property_name: str | None) -> Iterator[UnknownAnnotation]:
    for name in sorted({note.name for note in notes if note.name not in TEXTS}):
        yield UnknownAnnotation(name, type_name, property_name)
