"""Hints for schema changes that drop one declaration and add a similar one: a possible rename."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from itertools import islice

from omnigraph.checkpoints import checked, paced
from omnigraph.schema.document import KINDS, IRProperty, IRType
from omnigraph.schema.identity import SchemaIR
from omnigraph.suggestions import closest
from omnigraph.types import PropertyType

_HINTS_MAX = 20
"""Each hint compares a name with up to a thousand others."""
_Columns = frozenset[tuple[str, PropertyType]]
"""The names and types of the properties of a type."""


def rename_hints(accepted: SchemaIR, desired: SchemaIR) -> tuple[str, ...]:
    """Return a hint for each added type or property that may be a renamed one, for the first `_HINTS_MAX` of them."""
    return tuple(islice(_hints(accepted, desired), _HINTS_MAX))


def _hints(accepted: SchemaIR, desired: SchemaIR) -> Iterator[str]:
    for kind in KINDS:
        before = {type_.id: type_ for type_ in accepted.of_kind(kind)}
        added: list[IRType] = []
        for new in desired.of_kind(kind):
            old = before.pop(new.id, None)
            if old is None:
                added.append(new)
            else:
                yield from _property_hints(old, new)
        if kind != "interface":
            yield from _type_hints(before.values(), added)


def _type_hints(dropped: Iterable[IRType], added: Iterable[IRType]) -> Iterator[str]:
    alike: dict[_Columns, dict[str, None]] = {}
    for old in paced(dropped):
        alike.setdefault(_columns(old), {})[old.name] = None
    for new in checked(added):
        candidates = alike.get(_columns(new), {}) if new.properties else {}
        nearest = _nearest(new.name, candidates)
        if nearest is not None:
            del candidates[nearest]
            yield f'if {new.name} is {nearest} renamed, write: {new.kind} {new.name} @rename_from("{nearest}")'


def _property_hints(old: IRType, new: IRType) -> Iterator[str]:
    known, kept = {property_.id for property_ in old.properties}, {property_.id for property_ in new.properties}
    alike: dict[PropertyType, dict[str, PropertyType]] = {}
    for dropped in paced(old.properties):
        if dropped.id not in kept and not _is_injected(dropped):
            alike.setdefault(_required(dropped.type), {})[dropped.name] = dropped.type
    for property_ in checked(new.properties):
        if property_.id in known or _is_injected(property_):
            continue
        candidates = alike.get(_required(property_.type), {})
        nearest = _nearest(property_.name, candidates)
        if nearest is not None:
            # A rename keeps the type, so the hint shows the type of the dropped property.
            type_ = candidates.pop(nearest)
            yield (
                f"if {new.name}.{property_.name} is {nearest} renamed, "
                f'write: {property_.name}: {type_} @rename_from("{nearest}")'
            )


def _nearest(name: str, candidates: Collection[str]) -> str | None:
    return closest(name, candidates) or next(iter(candidates), None)


def _columns(type_: IRType) -> _Columns:
    return frozenset((property_.name, property_.type) for property_ in type_.properties)


def _required(type_: PropertyType) -> PropertyType:
    return replace(type_, nullable=False)


def _is_injected(property_: IRProperty) -> bool:
    return bool(property_.injected)
