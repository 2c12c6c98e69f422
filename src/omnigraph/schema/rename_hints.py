"""Hints for schema changes that drop one declaration and add a similar one: a possible rename."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from omnigraph.schema.document import KINDS, IRProperty, IRType
from omnigraph.schema.identity import SchemaIR
from omnigraph.suggestions import closest
from omnigraph.types import PropertyType


def rename_hints(accepted: SchemaIR, desired: SchemaIR) -> Iterator[str]:
    """Return a hint for each added type or property that may be a renamed one."""
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
            yield from _type_hints(list(before.values()), added)


def _type_hints(dropped: list[IRType], added: Sequence[IRType]) -> Iterator[str]:
    for new in added:
        alike = [old for old in dropped if new.properties and _columns(old) == _columns(new)]
        found = _nearest(new.name, [old.name for old in alike])
        if found is not None:
            dropped = [old for old in dropped if old.name != found]
            yield f'if {new.name} is {found} renamed, write: {new.kind} {new.name} @rename_from("{found}")'


def _property_hints(old: IRType, new: IRType) -> Iterator[str]:
    known, kept = {property_.id for property_ in old.properties}, {property_.id for property_ in new.properties}
    dropped = {p.name: p for p in old.properties if p.id not in kept and not _is_injected(p)}
    for property_ in new.properties:
        if property_.id in known or _is_injected(property_):
            continue
        alike = [name for name, gone in dropped.items() if _required(gone.type) == _required(property_.type)]
        found = _nearest(property_.name, alike)
        if found is not None:
            # A rename keeps the type, so the hint shows the type of the dropped property.
            type_ = dropped.pop(found).type
            yield (
                f"if {new.name}.{property_.name} is {found} renamed, "
                f'write: {property_.name}: {type_} @rename_from("{found}")'
            )


def _nearest(name: str, candidates: Sequence[str]) -> str | None:
    return closest(name, candidates) or next(iter(candidates), None)


def _columns(type_: IRType) -> list[tuple[str, PropertyType]]:
    return sorted(((p.name, p.type) for p in type_.properties), key=lambda column: column[0])


def _required(type_: PropertyType) -> PropertyType:
    return replace(type_, nullable=False)


def _is_injected(property_: IRProperty) -> bool:
    return bool(property_.injected)
