"""Stable identity: the schema document, and matching of declarations between two versions of a schema.

The schema of a graph is stored as a document in which types, properties and tables have numbers from one counter. A
number is assigned once and never reused, so a rename keeps everything that refers to it, and a name that is dropped and
added again gets a new number. The shape is the same schema without numbers; its hash tells whether two texts are
equivalent.

The module is pure. It is independent of where the document is stored. The caller creates the domain, which separates
the numbers of different graphs.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from omnigraph.checkpoints import checked, checkpoint, paced
from omnigraph.errors import SchemaChangeError
from omnigraph.fast_dataclass import dataclass
from omnigraph.lang.comment_printer import quote
from omnigraph.schema.catalog import (
    AnyType,
    Catalog,
    EdgeType,
    Embed,
    InterfaceType,
    MergeProperties,
    Metadata,
    NodeType,
    Property,
    TypeKind,
)
from omnigraph.schema.constraints import Constraint, Key, constraint_to_json
from omnigraph.schema.document import (
    IDENTITY_MAX,
    KINDS,
    IREdge,
    IRInterface,
    IRNode,
    IRProperty,
    IRType,
    note_order,
)
from omnigraph.schema.document_builder import Numbers, build_parts
from omnigraph.schema.document_parser import At, parse_edge, parse_interface, parse_merge, parse_node
from omnigraph.schema.document_rules import check_parts
from omnigraph.suggestions import did_you_mean

IR_VERSION = 2

# 26 characters of Crockford's base 32; the first holds only three of the 128 bits.
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


@dataclass(frozen=True)
class SchemaIR:
    """The schema document, version 2."""

    domain: str
    next_id: int
    interfaces: tuple[IRInterface, ...] = ()
    nodes: tuple[IRNode, ...] = ()
    edges: tuple[IREdge, ...] = ()
    merge_properties: MergeProperties = "conflict"

    def of_kind(self, kind: TypeKind) -> tuple[IRType, ...]:
        """Return the types of one kind, by name."""
        by_kind: dict[TypeKind, tuple[IRType, ...]] = {
            "interface": self.interfaces,
            "node": self.nodes,
            "edge": self.edges,
        }
        return by_kind[kind]

    def types(self) -> Iterator[IRType]:
        """Return all types: interfaces, nodes, edges, each by name."""
        for kind in KINDS:
            yield from self.of_kind(kind)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form of the document."""
        return {
            "ir_version": IR_VERSION,
            "schema_identity_domain": self.domain,
            "next_identity_id": self.next_id,
            **_settings(self.merge_properties),
            "interfaces": [interface.to_json() for interface in self.interfaces],
            "nodes": [node.to_json() for node in self.nodes],
            "edges": [edge.to_json() for edge in self.edges],
        }

    @classmethod
    def from_json(cls, data: Any) -> SchemaIR:
        """Parse and check the stored form; `SchemaChangeError` if it is invalid."""
        version = data.get("ir_version") if isinstance(data, dict) else None
        if type(version) is int and version != IR_VERSION:
            # Checked first, because another version may have any form.
            raise At(version, "ir_version").fail(f"{IR_VERSION}, the only version this program reads")
        members = At(data).object(
            "ir_version", "schema_identity_domain", "next_identity_id", "interfaces", "nodes", "edges", optional="merge"
        )
        members["ir_version"].integer(IR_VERSION, IR_VERSION)
        ir = cls(
            members["schema_identity_domain"].matching(_ULID, "an upper-case ULID"),
            members["next_identity_id"].integer(1, IDENTITY_MAX),
            members["interfaces"].array(parse_interface),
            members["nodes"].array(parse_node),
            members["edges"].array(parse_edge),
            parse_merge(members["merge"]) if "merge" in members else "conflict",
        )
        check_parts(ir.next_id, ir.interfaces, ir.nodes, ir.edges)
        return ir

    @cached_property
    def hash(self) -> str:
        """Return `sha256:` and the hex digest of the compact JSON."""
        return _hash(self.to_json())


@dataclass(frozen=True, slots=True)
class HintDiagnostic:
    """A `@rename_from` without effect, and the reason; `entity` is `node:T` or `node:T.p`."""

    code: str
    entity: str
    message: str

    def to_json(self) -> dict[str, Any]:
        """Return `{code, entity, message}`."""
        return {"code": self.code, "entity": self.entity, "message": self.message}


class Resolved(NamedTuple):
    """A document and the rename hints without effect."""

    ir: SchemaIR
    diagnostics: tuple[HintDiagnostic, ...]


# -- the shape ---------------------------------------------------------------------------------------


def shape_json(catalog: Catalog) -> dict[str, Any]:
    """Return the schema without numbers, in canonical form: shapes are equal if and only if the catalogs are."""
    return _settings(catalog.merge_properties) | {
        "interfaces": [_members_shape(interface) for interface in catalog.interfaces.values()],
        "nodes": [
            {"implements": list(node.implements), "annotations": _notes_shape(node.notes)} | _members_shape(node)
            for node in catalog.nodes.values()
        ],
        "edges": [
            {
                "from": edge.from_type,
                "to": edge.to_type,
                "cardinality": {"min": edge.cardinality.min, "max": edge.cardinality.max},
                "annotations": _notes_shape(edge.notes),
            }
            | _members_shape(edge)
            for edge in catalog.edges.values()
        ],
    }


def _settings(merge_properties: MergeProperties) -> dict[str, Any]:
    """Return the settings that differ from their defaults."""
    return {} if merge_properties == "conflict" else {"merge": {"properties": merge_properties}}


def shape_hash(catalog: Catalog) -> str:
    """Return `sha256:` and the hex digest of the compact JSON of the shape."""
    return _hash(shape_json(catalog))


def _members_shape(type_: AnyType) -> dict[str, Any]:
    return {
        "name": type_.name,
        "properties": [
            {
                "name": property_.name,
                "type": property_.type.to_json(),
                "annotations": _notes_shape(property_.notes),
                "embed": property_.embed and {"source": property_.embed.source, "model": property_.embed.model},
                "injected_from": list(property_.injected_from),
            }
            for property_ in type_.properties.values()
        ],
        "constraints": [constraint_to_json(_named_order(constraint)) for constraint in type_.constraints],
    }


def _notes_shape(notes: tuple[Metadata, ...]) -> list[dict[str, Any]]:
    return [note.to_json() for note in sorted(notes, key=note_order)]


def _named_order(constraint: Constraint) -> Constraint:
    # The order of a key's columns follows the numbers, which are not part of the shape.
    return Key(tuple(sorted(constraint.columns))) if isinstance(constraint, Key) else constraint


def _hash(document: Mapping[str, Any]) -> str:
    compact = json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f"sha256:{hashlib.sha256(compact.encode()).hexdigest()}"


# -- matching of declarations ------------------------------------------------------------------------


def new_identity(catalog: Catalog, domain: str) -> Resolved:
    """Return the first document of a graph; rename hints have no effect and are reported as unused."""
    if not _ULID.fullmatch(domain):
        raise SchemaChangeError(
            f"'{domain[:40]}' is not an identity domain",
            hint="a domain is a ULID: 26 upper-case characters of Crockford's base 32",
        )
    diagnostics = [
        HintDiagnostic(
            "inert_initialization_rename_hint",
            entity,
            f"@rename_from({quote(hint)}) has no effect when a graph is created: there is nothing to rename",
        )
        for entity, hint in _hints(catalog)
    ]
    ir = SchemaIR(domain, *build_parts(catalog, Numbers(), 1), catalog.merge_properties)
    return Resolved(ir, tuple(diagnostics))


def resolve_identity(accepted: SchemaIR, desired: Catalog) -> Resolved:
    """Return the document of `desired` as the successor of `accepted`: declarations that continue keep their numbers.

    A name that exists in both denotes the same declaration, regardless of its hint; otherwise a hint decides. Raises
    `SchemaChangeError` for a hint that names nothing or that two declarations share.
    """
    matching = _Matching(accepted, desired)
    matching.run()
    parts = build_parts(desired, matching.numbers, accepted.next_id)
    return Resolved(SchemaIR(accepted.domain, *parts, desired.merge_properties), tuple(matching.diagnostics))


def _hints(catalog: Catalog) -> Iterator[tuple[str, str]]:
    for kind in KINDS:
        for type_ in catalog.of_kind(kind).values():
            if type_.rename_from is not None:
                yield f"{kind}:{type_.name}", type_.rename_from
            for property_ in type_.properties.values():
                if property_.rename_from is not None:
                    yield f"{kind}:{type_.name}.{property_.name}", property_.rename_from


class _Matching:
    """Finds the accepted declaration that each desired one continues."""

    def __init__(self, accepted: SchemaIR, desired: Catalog) -> None:
        self.accepted = accepted
        self.desired = desired
        self.numbers = Numbers()
        self.diagnostics: list[HintDiagnostic] = []

    def run(self) -> None:
        for kind in KINDS:
            for type_, old in checked(self.match_types(kind)):
                if old is None:
                    self.refuse_hints(kind, type_)
                    continue
                key = (kind, type_.name)
                self.numbers.types[key] = old.id
                if not isinstance(old, IRInterface):
                    self.numbers.incarnations[key] = old.incarnation_id
                self.match_properties(kind, type_, old)

    def match_types(self, kind: TypeKind) -> list[tuple[AnyType, IRType | None]]:
        known = {type_.name: type_ for type_ in self.accepted.of_kind(kind)}
        desired = self.desired.of_kind(kind)
        taken = {name: name for name in desired if name in known}
        pairs: list[tuple[AnyType, IRType | None]] = []
        for name, type_ in desired.items():
            hint = type_.rename_from
            if name in known:
                self.ignore(f"{kind}:{name}", hint)
                pairs.append((type_, known[name]))
            elif hint is None:
                pairs.append((type_, None))
            elif hint not in known:
                raise _bad_hint(f"{kind}:{name}", hint, self.where_type(kind, hint), did_you_mean(hint, known))
            elif hint in taken:
                raise _bad_hint(f"{kind}:{name}", hint, f"{kind} '{taken[hint]}' continues '{hint}' already")
            else:
                taken[hint] = name
                pairs.append((type_, known[hint]))
        return pairs

    def match_properties(self, kind: TypeKind, type_: AnyType, old: IRType) -> None:
        known = {property_.name: property_ for property_ in old.properties}
        taken = {name: name for name in type_.properties if name in known}
        found: dict[str, IRProperty] = {}
        for name, property_ in paced(type_.properties.items()):
            entity, hint = f"{kind}:{type_.name}.{name}", property_.rename_from
            if name in known:
                self.ignore(entity, hint)
                found[name] = known[name]
            elif hint is None:
                continue
            elif hint not in known:
                raise _bad_hint(entity, hint, self.where_property(kind, old, hint), did_you_mean(hint, known))
            elif hint in taken:
                raise _bad_hint(entity, hint, f"'{taken[hint]}' continues '{hint}' already")
            else:
                taken[hint] = name
                found[name] = known[hint]
        if isinstance(type_, NodeType):
            self.match_implementing(type_, old, taken, found)
        for name, continued in found.items():
            self.numbers.properties[kind, type_.name, name] = continued.id

    def match_implementing(
        self, node: NodeType, old: IRType, taken: dict[str, str], found: dict[str, IRProperty]
    ) -> None:
        """Apply renames written in an interface to the properties of nodes that implement it.

        The hint is written in the interface; the node only has a property with a new name. It continues the property
        that implemented the same interface property before.
        """
        implementing: dict[int, dict[str, IRProperty]] = {}
        """The number of a property of an interface → the accepted properties that implement it."""
        for property_ in old.properties:
            if taken.get(property_.name) != property_.name:
                for link in property_.satisfies:
                    implementing.setdefault(link.property.id, {})[property_.name] = property_
        brought: dict[str, list[int]] = {}
        for interface in node.implements if implementing else ():
            checkpoint()
            for name in self.desired.interfaces[interface].properties:
                number = self.numbers.properties.get(("interface", interface, name))
                if number is not None:
                    brought.setdefault(name, []).append(number)
        for name in node.properties:
            if name in found:
                continue
            continued = {
                source.name: source for id_ in brought.get(name, ()) for source in implementing.get(id_, {}).values()
            }
            sources = sorted(continued.values(), key=lambda source: source.name)
            if not sources:
                continue
            claimed = taken.get(sources[0].name)
            if len(sources) > 1 or claimed is not None:
                names = " and ".join(f"'{source.name}'" for source in sources)
                other = f", and so does '{claimed}'" if claimed is not None else ""
                raise SchemaChangeError(
                    f"node:{node.name}.{name} continues {names} through its interfaces{other}",
                    hint="one property continues one accepted property: rename in separate steps",
                )
            taken[sources[0].name] = name
            found[name] = sources[0]

    def refuse_hints(self, kind: TypeKind, type_: AnyType) -> None:
        for property_ in type_.properties.values():
            if property_.rename_from is not None:
                raise _bad_hint(
                    f"{kind}:{type_.name}.{property_.name}",
                    property_.rename_from,
                    f"{kind} '{type_.name}' is new, so it has nothing to rename",
                )

    def ignore(self, entity: str, hint: str | None) -> None:
        if hint is not None:
            message = f"@rename_from({quote(hint)}) is ignored: the accepted schema has this name already"
            self.diagnostics.append(HintDiagnostic("ignored_exact_match_rename_hint", entity, message))

    def where_type(self, kind: TypeKind, hint: str) -> str:
        others = [type_.kind for type_ in self.accepted.types() if type_.name == hint]
        if not others:
            return f"the accepted schema has no {kind} of this name"
        return f"in the accepted schema this is the name of {_or([_A[other] for other in others])}"

    def where_property(self, kind: TypeKind, old: IRType, hint: str) -> str:
        owners = [
            f"{type_.kind} '{type_.name}'"
            for type_ in self.accepted.types()
            if any(property_.name == hint for property_ in type_.properties)
        ]
        if not owners:
            return f"the accepted {kind} '{old.name}' has no property '{hint}'"
        return f"it is a property of {' and '.join(owners)}, and a property never changes its owner"


_A: Mapping[TypeKind, str] = {"interface": "an interface", "node": "a node", "edge": "an edge"}


def _or(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _bad_hint(entity: str, hint: str, why: str, guess: str | None = None) -> SchemaChangeError:
    return SchemaChangeError(
        f"{entity} cannot be renamed from '{hint[:120]}': {why}",
        hint=guess or "remove '@rename_from', or name the declaration that this one continues",
    )


# -- back to the catalog -----------------------------------------------------------------------------


def catalog_of(ir: SchemaIR) -> Catalog:
    """Return the catalog of a document, as `check` builds it, with the columns of each key by ascending number."""
    return Catalog(
        {
            interface.name: InterfaceType(interface.name, _properties(interface), _constraints(interface))
            for interface in ir.interfaces
        },
        {
            node.name: NodeType(
                node.name,
                _properties(node),
                _constraints(node),
                node.notes,
                tuple(ref.name for ref in node.implements),
            )
            for node in ir.nodes
        },
        {
            edge.name: EdgeType(
                edge.name,
                _properties(edge),
                _constraints(edge),
                edge.notes,
                edge.from_type.name,
                edge.to_type.name,
                edge.cardinality,
            )
            for edge in ir.edges
        },
        ir.merge_properties,
    )


def _properties(type_: IRType) -> dict[str, Property]:
    return {
        property_.name: Property(
            property_.name,
            property_.type,
            property_.notes,
            Embed(property_.embed.source_name, property_.embed.model) if property_.embed else None,
            tuple(link.interface.name for link in property_.satisfies) if property_.injected else (),
        )
        for property_ in type_.properties
    }


def _constraints(type_: IRType) -> tuple[Constraint, ...]:
    return tuple(constraint.constraint for constraint in type_.constraints)
