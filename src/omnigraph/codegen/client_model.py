"""The description of a client: record types and calls, with names that every language accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from omnigraph.query.stored_queries import StoredQuery
from omnigraph.schema.catalog import Catalog, NodeType
from omnigraph.types import ListType, ObjectType, PropertyType, ResultType

_WORD = re.compile(r"[A-Za-z0-9]+")


@dataclass(frozen=True)
class ClientParameter:
    """A parameter of a stored query."""

    name: str
    type: PropertyType


@dataclass(frozen=True)
class ClientRecord:
    """A record type: the name of its declaration, and its fields in order."""

    name: str
    fields: tuple[tuple[str, ResultType], ...]
    description: str | None = None


@dataclass(frozen=True)
class ClientCall:
    """A stored query. `row` is None for a mutation without returned rows."""

    name: str
    is_mutation: bool
    description: str | None
    parameters: tuple[ClientParameter, ...]
    parameters_name: str
    """A free name for the record of the parameters."""
    row: ClientRecord | None


@dataclass
class ClientModel:
    """The records and calls of a client. `name_of` gives the name of the record type of an object."""

    records: list[ClientRecord] = field(default_factory=list)
    calls: list[ClientCall] = field(default_factory=list)
    _names: dict[tuple[tuple[str, ResultType], ...], str] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def name_of(self, type_: ObjectType) -> str:
        """Return the name of the record type that was declared for an object."""
        return self._names[type_.fields]

    def declare(
        self, name: str, fields: Sequence[tuple[str, ResultType]], description: str | None = None
    ) -> ClientRecord:
        """Declare a record type, after those of the objects in its fields; a name in use gets a number."""
        for field_name, type_ in fields:
            self._declare_nested(f"{name}{pascal_case(field_name)}", type_)
        record = ClientRecord(self.free_name(name), tuple(fields), description)
        self.records.append(record)
        return record

    def _declare_nested(self, name: str, type_: ResultType) -> None:
        while isinstance(type_, ListType):
            type_ = type_.item
        if isinstance(type_, ObjectType) and type_.fields not in self._names:
            self._names[type_.fields] = self.declare(name, type_.fields).name

    def declare_node(self, node: NodeType) -> None:
        """Declare the record type of whole nodes of a type."""
        fields = (("id", PropertyType("String")), *_returned(node))
        self._names[fields] = self.declare(node.name, fields, _description(node)).name

    def free_name(self, name: str) -> str:
        """Take a name of a declaration; one that is in use gets a number."""
        free, number = name, 2
        while free in self._used:
            free, number = f"{name}{number}", number + 1
        self._used.add(free)
        return free


def build_model(catalog: Catalog, queries: Iterable[StoredQuery], reserved: Iterable[str] = ()) -> ClientModel:
    """Return the client of some stored queries; an invalid query is an error.

    Every node type of the schema is a record. `reserved` are names that the target file uses itself.
    """
    model = ClientModel()
    model._used.update(reserved)
    for node in sorted(catalog.nodes.values(), key=lambda each: each.name):
        model.declare_node(node)
    for query in sorted(queries, key=lambda each: each.name):
        plan = query.compile(catalog)
        columns = {column.name: column.type for column in plan.columns}  # the last of equal names, as in JSON
        row = model.declare(f"{pascal_case(query.name)}Row", tuple(columns.items())) if columns else None
        parameters = tuple(ClientParameter(each.name, each.type) for each in plan.params)
        taken = model.free_name(f"{pascal_case(query.name)}Params")
        model.calls.append(ClientCall(query.name, query.is_mutation, query.description, parameters, taken, row))
    return model


def pascal_case(text: str) -> str:
    """Return `services_of` as `ServicesOf`."""
    return "".join(word[0].upper() + word[1:] for word in _WORD.findall(text))


def distinct_names(names: Sequence[str], is_free: Callable[[str], bool]) -> dict[str, str]:
    """Return each name with the one that a language accepts: itself if it is free, else with underscores appended."""
    found = {name: name for name in names if is_free(name)}
    for name in names:
        free = name
        while name not in found and (not is_free(free) or free in found.values()):
            free += "_"
        found.setdefault(name, free)
    return {name: found[name] for name in names}


def one_line(text: str) -> str:
    """Return a description without line ends and control characters."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())


def _description(node: NodeType) -> str | None:
    return next((note.value for note in node.notes if note.name == "description"), None)


def _returned(node: NodeType) -> tuple[tuple[str, ResultType], ...]:
    """Return the properties that a whole node has in a result, by name."""
    return tuple(
        (name, node.properties[name].type)
        for name in sorted(node.properties)
        if node.properties[name].type.scalar != "Blob"
    )
