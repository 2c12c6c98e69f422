"""Schema migration planner: accepted document and desired catalog → list of steps.

Declarations are compared by number, so a rename is one step and changes behind it are still found. A change that
requires reading the data, or that loses data without permission, is refused with a reason. The plan lists all steps, so
that all reasons are reported at once.

The planner is pure: it reads no data and changes nothing. A step that is supported here is supported on any graph with
this schema, except a drop, which is refused without permission if the graph has data there (`refuse_losses`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.checkpoints import checked, paced
from omnigraph.schema.annotations import TEXTS, misspelled
from omnigraph.schema.catalog import Catalog, Metadata
from omnigraph.schema.constraints import Constraint, Index, Key, Valid
from omnigraph.schema.document import KINDS, IRConstraint, IREdge, IREmbed, IRNode, IRProperty, IRType, Ref
from omnigraph.schema.identity import HintDiagnostic, SchemaIR, new_identity, resolve_identity
from omnigraph.schema.migration_steps import (
    AddConstraint,
    AddProperty,
    AddType,
    DropProperty,
    DropType,
    ExtendEnum,
    RenameProperty,
    RenameType,
    Step,
    UnsupportedChange,
    UpdateMerge,
    UpdatePropertyMetadata,
    UpdateTypeMetadata,
    spell_constraint,
    spell_note,
)
from omnigraph.schema.rename_hints import rename_hints

REQUIRED_PROPERTY_ADDED = "OG-MF-103"
PROPERTY_TYPE_CHANGED = "OG-MF-106"
NODE_TYPE_DROPPED = "OG-DS-102"
EDGE_TYPE_DROPPED = "OG-DS-103"
PROPERTY_DROPPED = "OG-DS-104"

OFFLINE_DOMAIN = "00000000000000000000000000"
"""Number domain of plans between two texts without a graph."""

"""Descriptive annotations, which may change freely."""


@dataclass(frozen=True, slots=True)
class SchemaPlan:
    """Steps from `accepted` to `desired`, and the rename hints that had no effect."""

    steps: tuple[Step, ...]
    diagnostics: tuple[HintDiagnostic, ...]
    accepted: SchemaIR
    desired: SchemaIR
    rename_hints: tuple[str, ...] = ()
    """How to write a drop and an addition as a rename."""
    losses: tuple[str, ...] = ()
    """Data that the drops would remove from the branch; known only if there is a graph."""
    broken_rules: tuple[str, ...] = ()
    """Problems that the rules for rows of the policy would have with the new schema."""

    @property
    def unsupported(self) -> tuple[UnsupportedChange, ...]:
        """All reasons for which the plan is refused."""
        return tuple(step for step in self.steps if isinstance(step, UnsupportedChange))

    @property
    def supported(self) -> bool:
        """True if all steps are supported."""
        return not self.unsupported

    def to_json(self) -> dict[str, Any]:
        """Return `{supported, step_count, steps}`.

        `rename_hints`, `losses`, `broken_rules` and `diagnostics` are added if there are any.
        """
        data: dict[str, Any] = {
            "supported": self.supported,
            **steps_to_json(self.steps, self.rename_hints, self.losses, self.broken_rules),
        }
        if self.diagnostics:
            data["diagnostics"] = [diagnostic.to_json() for diagnostic in self.diagnostics]
        return data


def steps_to_json(
    steps: Sequence[Step], rename_hints: Sequence[str], losses: Sequence[str], broken_rules: Sequence[str]
) -> dict[str, Any]:
    """Return the JSON members that describe steps; empty `rename_hints`, `losses` and `broken_rules` are omitted."""
    data: dict[str, Any] = {"step_count": len(steps), "steps": [step.to_json() for step in steps]}
    if rename_hints:
        data["rename_hints"] = list(rename_hints)
    if losses:
        data["losses"] = list(losses)
    if broken_rules:
        data["broken_rules"] = list(broken_rules)
    return data


def plan_schema(accepted: SchemaIR, desired: Catalog) -> SchemaPlan:
    """Return the steps that turn `accepted` into `desired`.

    An unsupported change is a step of the plan. `SchemaChangeError` is raised only for a wrong rename hint, because the
    steps cannot be determined then.
    """
    resolved, diagnostics = resolve_identity(accepted, desired)
    steps = tuple(plan_steps(accepted, resolved))
    if not steps and resolved != accepted:
        reason = "unclassified change: the schemas differ in a way the planner has no step for"
        steps = (UnsupportedChange("schema", reason),)
    return SchemaPlan(steps, diagnostics, accepted, resolved, rename_hints(accepted, resolved))


def plan_between(old: Catalog, new: Catalog) -> SchemaPlan:
    """Return the plan for a graph that was created with the text `old` and has no rows; no graph is needed."""
    return plan_schema(new_identity(old, OFFLINE_DOMAIN).ir, new)


def refuse_losses(steps: Iterable[Step], lost: Mapping[DropProperty | DropType, str]) -> Iterator[Step]:
    """Return the steps with a refusal instead of each drop in `lost`, which has the data that it removes."""
    for step in steps:
        if not isinstance(step, DropType | DropProperty) or step not in lost:
            yield step
        elif isinstance(step, DropProperty):
            entity = f"{step.type_kind}:{step.type_name}.{step.property_name}"
            yield UnsupportedChange(entity, f"dropping it removes {lost[step]}", PROPERTY_DROPPED)
        else:
            code = NODE_TYPE_DROPPED if step.type_kind == "node" else EDGE_TYPE_DROPPED
            yield UnsupportedChange(f"{step.type_kind}:{step.name}", f"dropping it removes {lost[step]}", code)


def plan_steps(accepted: SchemaIR, desired: SchemaIR, *, with_values: bool = False) -> Iterator[Step]:
    """Return the steps between two documents with the same numbering.

    In a merge, new properties come `with_values` of the other side: they may be required and have constraints.
    """
    if desired.merge_properties != accepted.merge_properties:
        yield UpdateMerge(desired.merge_properties)
    for kind in KINDS:
        before = {type_.id: type_ for type_ in accepted.of_kind(kind)}
        for new in checked(desired.of_kind(kind)):
            old = before.pop(new.id, None)
            if old is None:
                yield AddType(kind, new.name)
            else:
                yield from _plan_type(old, new, with_values=with_values)
        for gone in before.values():
            yield _plan_removal(gone)


def _plan_removal(gone: IRType) -> Step:
    if gone.kind == "interface":
        return UnsupportedChange(_entity(gone), "an interface cannot be removed or renamed")
    return DropType(gone.kind, gone.name)


def _plan_type(old: IRType, new: IRType, *, with_values: bool) -> Iterator[Step]:
    if old.name != new.name:
        yield RenameType(new.kind, old.name, new.name)
    yield from _plan_structure(old, new)
    if isinstance(old, IRNode | IREdge) and isinstance(new, IRNode | IREdge):
        yield from _plan_type_notes(old, new)
    before = {property_.id: property_ for property_ in old.properties}
    constraints = _ConstraintChanges(old, new, with_values=with_values)
    for property_ in paced(new.properties):
        known = before.pop(property_.id, None)
        if known is None:
            yield _plan_new_property(new, property_, with_values=with_values)
        else:
            yield from _plan_property_kept(new, known, property_)
        yield from constraints.steps(property_)
        if known is not None:
            yield from _plan_property_notes(new, known, property_)
    yield from constraints.steps(None)
    for gone in before.values():
        yield DropProperty(new.kind, new.name, gone.name)


# -- types -------------------------------------------------------------------------------------------


def _plan_structure(old: IRType, new: IRType) -> Iterator[Step]:
    if isinstance(old, IREdge) and isinstance(new, IREdge):
        ends = ("source", old.from_type, new.from_type), ("target", old.to_type, new.to_type)
        for end, before, after in ends:
            if before.id != after.id:
                reason = f"the {end} changes from {before.name} to {after.name}, but existing edges keep their ends"
                yield UnsupportedChange(_entity(new), reason)
        if old.cardinality != new.cardinality:
            reason = f"@card changes from {old.cardinality} to {new.cardinality}"
            yield UnsupportedChange(_entity(new), reason)
    if isinstance(old, IRNode) and isinstance(new, IRNode):
        yield from _plan_interfaces(old, new)


def _plan_interfaces(old: IRNode, new: IRNode) -> Iterator[Step]:
    common = {ref.id for ref in old.implements} & {ref.id for ref in new.implements}
    if not len(common) == len(old.implements) == len(new.implements):
        reason = f"the implemented interfaces change from {_list(old.implements)} to {_list(new.implements)}"
        yield UnsupportedChange(_entity(new), reason)
    before = {property_.id: property_ for property_ in old.properties}
    for property_ in new.properties:
        known = before.get(property_.id)
        if known is None:
            continue
        if known.injected != property_.injected:
            was, is_ = _origin(known), _origin(property_)
            yield UnsupportedChange(_entity(new, property_), f"it was {was} and is now {is_}")
        # Links to an added or dropped interface are part of the change reported above.
        if _links(known, common) != _links(property_, common):
            reason = (
                f"it implemented {_implemented(known, common)} and now implements {_implemented(property_, common)}"
            )
            yield UnsupportedChange(_entity(new, property_), reason)


def _origin(property_: IRProperty) -> str:
    return "inherited from an interface" if property_.injected else "declared by the node itself"


def _links(property_: IRProperty, interfaces: Collection[int]) -> frozenset[int]:
    return frozenset(link.property.id for link in property_.satisfies if link.interface.id in interfaces)


def _implemented(property_: IRProperty, interfaces: Collection[int]) -> str:
    links = [link for link in property_.satisfies if link.interface.id in interfaces]
    return " and ".join(f"{link.interface.name}.{link.property.name}" for link in links) or "no interface"


def _list(refs: Sequence[Ref]) -> str:
    return ", ".join(ref.name for ref in refs) or "none"


def _plan_type_notes(old: IRNode | IREdge, new: IRNode | IREdge) -> Iterator[Step]:
    if _texts(old.notes) != _texts(new.notes):
        yield UpdateTypeMetadata(new.kind, new.name, new.notes)
    if _others(old.notes) != _others(new.notes):
        yield UnsupportedChange(_entity(new), _notes_reason(old.notes, new.notes))


# -- properties --------------------------------------------------------------------------------------


def _plan_new_property(owner: IRType, new: IRProperty, *, with_values: bool) -> Step:
    if new.type.nullable or with_values:
        return AddProperty(owner.kind, owner.name, new.name, new.type)
    reason = f"a new property must be nullable, because existing rows have no value for it: write '{new.type}?'"
    return UnsupportedChange(_entity(owner, new), reason, REQUIRED_PROPERTY_ADDED)


def _plan_property_kept(owner: IRType, old: IRProperty, new: IRProperty) -> Iterator[Step]:
    if old.name != new.name:
        yield RenameProperty(owner.kind, owner.name, old.name, new.name)
    if old.type != new.type:
        yield _plan_type_change(owner, old, new)
    before, after = _embedding(old.embed), _embedding(new.embed)
    if before != after:
        reason = "@embed changes, and the stored vectors would not belong to the new source or model"
        yield UnsupportedChange(_entity(owner, new), reason)


def _plan_type_change(owner: IRType, old: IRProperty, new: IRProperty) -> Step:
    before, after = old.type.enum_values, new.type.enum_values
    if before is not None and after is not None and old.type.nullable == new.type.nullable:
        stored = frozenset(before)
        added = tuple(value for value in after if value not in stored)
        if len(before) + len(added) == len(after):
            return ExtendEnum(owner.kind, owner.name, new.name, added)
    reason = f"the type changes from {old.type} to {new.type}"
    return UnsupportedChange(_entity(owner, new), reason, PROPERTY_TYPE_CHANGED)


def _embedding(embed: IREmbed | None) -> tuple[object, ...] | None:
    return embed.meaning if embed else None


def _plan_property_notes(owner: IRType, old: IRProperty, new: IRProperty) -> Iterator[Step]:
    if _texts(old.notes) != _texts(new.notes):
        yield UpdatePropertyMetadata(owner.kind, owner.name, new.name, new.notes)
    if _others(old.notes) != _others(new.notes):
        yield UnsupportedChange(_entity(owner, new), _notes_reason(old.notes, new.notes))


# -- constraints -------------------------------------------------------------------------------------


class _ConstraintChanges:
    """Added and removed constraints of a type, each reported once.

    A constraint over one property that still exists is reported with that property, any other with the type. A
    constraint over dropped properties only is dropped with them, except a key: it identifies the rows.
    """

    def __init__(self, old: IRType, new: IRType, *, with_values: bool) -> None:
        self.owner = new
        self.with_values = with_values
        self.present = frozenset(property_.id for property_ in new.properties)
        self.before = frozenset(property_.id for property_ in old.properties)
        before = {constraint.meaning for constraint in old.constraints}
        after = {constraint.meaning for constraint in new.constraints}
        self.removed: dict[int | None, list[IRConstraint]] = {}
        """Removed constraints by the number of the property that they are reported with; None is the type."""
        self.added: dict[int | None, list[IRConstraint]] = {}
        for constraint in paced(old.constraints):
            if constraint.meaning not in after and not self.is_apart(constraint, self.present):
                self.removed.setdefault(self.home(constraint), []).append(constraint)
        for constraint in paced(new.constraints):
            if constraint.meaning not in before:
                self.added.setdefault(self.home(constraint), []).append(constraint)

    def is_apart(self, constraint: IRConstraint, properties: frozenset[int]) -> bool:
        """Return True for a constraint that covers none of these properties, except a key."""
        if isinstance(constraint.constraint, Key):
            return False
        ids = constraint.property_ids
        return len(ids) == len(constraint.fields) and ids.isdisjoint(properties)

    def home(self, constraint: IRConstraint) -> int | None:
        ids = constraint.property_ids
        return next(iter(ids)) if len(constraint.fields) == 1 and ids and ids <= self.present else None

    def steps(self, property_: IRProperty | None) -> Iterator[Step]:
        """Return the steps to report with this property, or with the type itself."""
        home = property_.id if property_ else None
        entity = _entity(self.owner, property_)
        for constraint in self.removed.get(home, ()):
            yield UnsupportedChange(entity, f"{spell_constraint(constraint.constraint)} cannot be removed")
        for constraint in self.added.get(home, ()):
            yield self.addition(entity, constraint)

    def addition(self, entity: str, added: IRConstraint) -> Step:
        constraint = added.constraint
        comes_with_values = self.with_values and self.is_apart(added, self.before)
        if isinstance(constraint, Index) or comes_with_values or self.adds_periods(constraint):
            return AddConstraint(self.owner.kind, self.owner.name, constraint)
        why = (
            "the ids of existing rows"
            if isinstance(constraint, Key) or self.moves_ids(constraint)
            else "the constraints on existing rows"
        )
        reason = f"{spell_constraint(constraint)} cannot be added, because it changes {why}"
        return UnsupportedChange(entity, reason)

    def adds_periods(self, constraint: Constraint) -> bool:
        """Return True if valid time is added with new properties, so that every existing row is open on both sides."""
        if not isinstance(constraint, Valid) or self.moves_ids(constraint):
            return False
        names = {property_.name: property_.id for property_ in self.owner.properties}
        return self.before.isdisjoint({names[constraint.start], names[constraint.end]})

    def moves_ids(self, constraint: Constraint) -> bool:
        """Return True if the start of a period becomes part of the ids."""
        return isinstance(constraint, Valid) and any(isinstance(c.constraint, Key) for c in self.owner.constraints)


# -- descriptions ------------------------------------------------------------------------------------


def _entity(type_: IRType, property_: IRProperty | None = None) -> str:
    return f"{type_.kind}:{type_.name}" + (f".{property_.name}" if property_ else "")


def _texts(notes: Sequence[Metadata]) -> frozenset[Metadata]:
    return frozenset(note for note in notes if _may_change(note))


def _others(notes: Sequence[Metadata]) -> frozenset[Metadata]:
    return frozenset(note for note in notes if not _may_change(note))


def _may_change(note: Metadata) -> bool:
    """Return True if the annotations may change: descriptive texts may, and a misspelled annotation of an older schema
    may be removed, because a schema text cannot contain it now.
    """
    return note.name in TEXTS or misspelled(note.name) is not None


def _notes_reason(old: Sequence[Metadata], new: Sequence[Metadata]) -> str:
    removed, added = _others(old) - _others(new), _others(new) - _others(old)
    changes = [f"{spell_note(note)} is removed" for note in old if note in removed]
    changes += [f"{spell_note(note)} is added" for note in new if note in added]
    return f"{' and '.join(changes)}, but only @description and @instruction may change"
