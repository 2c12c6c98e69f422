"""Conflict resolutions given by the caller: for all conflicts, for a type, for a property, or for one row.

    "theirs"                                          every conflict
    {"*": "columns", "Person": "theirs",              everything else; a type
     "Person.age": "ours",                            a property of a type, where both sides have the row
     "node:Person:ana": "ours",                       one conflict, by its id
     "node:Person:bo": {"age": 31},                   … by new values of properties
     "node:Person:cleo": None,                        … by deleting the row
     "query:adults": "theirs",                        a stored query
     "alias:Person:anna": "ours"}                     the alias of a unified node

The most specific resolution wins; the schema of the target can declare "columns" as the one for everything else. A
resolution of an unknown type, property or conflict is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

from omnigraph.errors import Hint, InputError
from omnigraph.schema.catalog import Catalog, EdgeType, NodeType
from omnigraph.suggestions import did_you_mean
from omnigraph.table_key import TableKey
from omnigraph.types import PropertyType
from omnigraph.values import managed_blob, read_json
from omnigraph.versioning.compare.three_way import MergeRule, Resolution, Row, Side

_QUERY, _ALIAS = "query:", "alias:"
Choice = Resolution | Mapping[str, Any] | None
Resolve = Resolution | Mapping[str, Choice] | None


class ConflictRules:
    """The given resolutions by table, with a record of those that were used."""

    def __init__(self, resolve: Resolve, catalog: Catalog, visible: Catalog | None = None) -> None:
        """`visible` is what the caller may see of the catalog; None is everything."""
        self._stored: dict[str, NodeType | EdgeType] = {type_.table_key: type_ for type_ in catalog.tables()}
        self._types: dict[str, NodeType | EdgeType] = {
            type_.table_key: type_ for type_ in (visible or catalog).tables()
        }
        self._default: Resolution | None = None
        self._by_type: dict[str, Resolution] = {}
        self._by_property: dict[str, dict[str, Side]] = {}
        self._by_row: dict[str, dict[str, Resolution | Row | None]] = {}
        self._by_query: dict[str, Side] = {}
        self._by_alias: dict[str, Side] = {}
        self._conceals_names = False
        self.unused: set[str] = set()
        """Ids of conflicts that were named but not found so far."""
        if isinstance(resolve, Mapping):
            for name, choice in resolve.items():
                self._read(name, choice)
        elif resolve is not None:
            self._default = check_resolution(resolve)

    def combine_properties(self) -> None:
        """Resolve conflicts column by column, unless a resolution is given."""
        self._default = self._default or "columns"

    def conceal_names(self) -> None:
        """Treat stored queries and aliases in the resolutions as unknown: their conflicts are hidden."""
        self._conceals_names = True
        self._by_query.clear()
        self._by_alias.clear()

    def of(self, key: str) -> MergeRule:
        """The resolutions of a table."""
        name = TableKey.parse(key).type_name
        return MergeRule(
            self._by_type.get(name, self._default), self._by_property.get(name, {}), self._by_row.get(key, {})
        )

    def of_query(self, name: str) -> Side | None:
        """The side that is chosen for a stored query; None if none is."""
        if not self._conceals_names:
            self.unused.discard(f"{_QUERY}{name}")
        default: Side | None = "ours" if self._default == "ours" else "theirs" if self._default == "theirs" else None
        return self._by_query.get(name, default)

    def of_alias(self, key: str, id_: str) -> Side | None:
        """The side that is chosen for an alias of a node; None if none is."""
        name = f"{_ALIAS}{key.partition(':')[2]}:{id_}"
        if not self._conceals_names:
            self.unused.discard(name)
        default: Side | None = "ours" if self._default == "ours" else "theirs" if self._default == "theirs" else None
        return self._by_alias.get(name, default)

    def used(self, key: str, row_ids: Iterable[str]) -> None:
        """Mark the resolutions of some rows as used."""
        self.unused -= {f"{key}:{row_id}" for row_id in row_ids}

    def check_all_used(self) -> None:
        """Raise `InputError` if a named conflict does not exist."""
        if self.unused:
            shown = ", ".join(f"'{name}'" for name in sorted(self.unused)[:3])
            raise InputError(
                f"there is no conflict {shown}",
                code="unknown_conflict",
                hint=Hint("merge_preview() lists the conflicts", cli="--preview lists the conflicts"),
            )

    def _read(self, name: str, choice: Choice) -> None:
        if name == "*":
            self._default = check_resolution(choice)
        elif name.startswith(_QUERY):
            if choice not in ("ours", "theirs"):
                raise InputError(f"the resolution of a stored query must be 'ours' or 'theirs' (got {choice!r})")
            self._by_query[name.removeprefix(_QUERY)] = "ours" if choice == "ours" else "theirs"
            self.unused.add(name)
        elif name.startswith(_ALIAS):
            if choice not in ("ours", "theirs"):
                raise InputError(f"the resolution of an alias must be 'ours' or 'theirs' (got {choice!r})")
            self._by_alias[name] = "ours" if choice == "ours" else "theirs"
            self.unused.add(name)
        elif ":" in name:
            self._read_row(name, choice)
        elif "." in name:
            type_name, _, property_name = name.partition(".")
            types = self._types_named(type_name)
            for type_ in types:
                _check_property(type_, property_name)
            if choice not in ("ours", "theirs"):
                raise InputError(f"the resolution of a property must be 'ours' or 'theirs' (got {choice!r})")
            self._by_property.setdefault(type_name, {})[property_name] = "ours" if choice == "ours" else "theirs"
        else:
            self._types_named(name)
            self._by_type[name] = check_resolution(choice)

    def _read_row(self, name: str, choice: Choice) -> None:
        kind, _, rest = name.partition(":")
        type_name, _, row_id = rest.partition(":")
        type_ = self._types.get(f"{kind}:{type_name}")
        if type_ is None:
            raise InputError(
                f"'{name}' is not the id of a conflict",
                hint="an id is node:Type:row, edge:Type:row or query:name, as a preview shows",
            )
        resolved: Resolution | Row | None = choice if choice is None else None
        if isinstance(choice, Mapping):
            for key in choice:
                _check_property(type_, key)
            stored = self._stored[type_.table_key]
            resolved = {key: _value(stored, key, value) for key, value in choice.items()}
        elif choice is not None:
            resolved = check_resolution(choice)
        self._by_row.setdefault(type_.table_key, {})[row_id] = resolved
        self.unused.add(name)

    def _types_named(self, name: str) -> list[NodeType | EdgeType]:
        found = [type_ for type_ in self._types.values() if type_.name == name]
        if not found:
            names = [type_.name for type_ in self._types.values()]
            raise InputError(f"there is no type '{name}'", hint=did_you_mean(name, names))
        return found


def check_resolution(choice: Choice) -> Resolution:
    """Return the name of a resolution; raise `InputError` if it is none."""
    match choice:
        case "ours" | "theirs" | "columns":
            return choice
    raise InputError(f"there is no resolution {choice!r}", hint="the resolutions are ours, theirs and columns")


def _check_property(type_: NodeType | EdgeType, name: str) -> None:
    if name not in type_.properties:
        raise InputError(f"type '{type_.name}' has no property '{name}'", hint=did_you_mean(name, type_.properties))


def _value(type_: NodeType | EdgeType, name: str, value: Any) -> Any:
    """Check a value and convert it to its form in rows."""
    if isinstance(type_, NodeType) and name in type_.identity:
        raise InputError(f"'{type_.name}.{name}' is a key and cannot be changed")
    property_type = type_.properties[name].type
    if value is None:
        if not property_type.nullable:
            raise InputError(f"'{type_.name}.{name}' cannot be null")
        return None
    if isinstance(value, date | bytes):
        return value
    return _to_python(read_json(value, property_type), property_type)


def _to_python(value: Any, type_: PropertyType) -> Any:
    """Convert a stored value to its Python form."""
    if type_.is_list:
        return [None if item is None else type_.kind.to_python(item) for item in value]
    return managed_blob(value) if type_.scalar == "Blob" else type_.kind.to_python(value)
