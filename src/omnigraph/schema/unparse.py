"""Schema text of a catalog, in canonical order, without comments."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.lang.spans import Name
from omnigraph.scalar_types.floats import spell_float
from omnigraph.schema import ast
from omnigraph.schema.catalog import (
    AnyType,
    Cardinality,
    Catalog,
    EdgeType,
    InterfaceType,
    Metadata,
    NodeType,
    Property,
)
from omnigraph.schema.constraints import Check, Constraint, Index, Key, Range, Unique, Valid, constraint_columns
from omnigraph.schema.format import merge_declaration, print_schema

_WORDS: dict[type[Constraint], ast.ColumnRuleKind] = {Key: "key", Unique: "unique", Index: "index"}


def unparse(catalog: Catalog, *, renames: bool = False) -> str:
    """Return a text that compiles to this catalog: settings, then interfaces, nodes and edges, each by name.

    With `renames`, the text has rename hints.
    """
    types: list[AnyType] = [*catalog.interfaces.values(), *catalog.nodes.values(), *catalog.edges.values()]
    declarations = [_declaration(type_, catalog) for type_ in types]
    if renames:
        declarations = [_with_hints(each, type_) for each, type_ in zip(declarations, types, strict=True)]
    is_default = catalog.merge_properties == "conflict"
    settings = [] if is_default else [merge_declaration(catalog.merge_properties)]
    return print_schema(ast.SchemaFile((*settings, *declarations)))


def _with_hints(declaration: ast.TypeDecl, type_: AnyType) -> ast.TypeDecl:
    """Return a declaration with the rename hints of its type and properties."""
    members = tuple(
        replace(member, annotations=(*member.annotations, *_hint(type_.properties[member.name.text].rename_from)))
        if isinstance(member, ast.PropertyDecl)
        else member
        for member in declaration.members
    )
    if isinstance(declaration, ast.InterfaceDecl):
        return replace(declaration, members=tuple(each for each in members if isinstance(each, ast.PropertyDecl)))
    return replace(declaration, members=members, annotations=(*declaration.annotations, *_hint(type_.rename_from)))


def _hint(before: str | None) -> tuple[ast.Annotation, ...]:
    return () if before is None else (ast.Annotation(Name("rename_from"), _string(before)),)


def _declaration(type_: AnyType, catalog: Catalog) -> ast.TypeDecl:
    given = given_constraints(type_, catalog) if isinstance(type_, NodeType) else frozenset()
    constraints = [constraint for constraint in type_.constraints if constraint not in given]
    members = tuple(_property(p, constraints) for p in type_.properties.values() if not p.injected_from)
    match type_:
        case InterfaceType():
            return ast.InterfaceDecl(Name(type_.name), members)
        case NodeType():
            implements = tuple(Name(name) for name in type_.implements)
            return ast.NodeDecl(
                Name(type_.name),
                _notes(type_.notes),
                implements,
                (*members, *_rules(type_, constraints)),
                valid=_valid(type_),
            )
        case EdgeType():
            card = type_.cardinality
            bounds = None if card == Cardinality() else ast.CardinalityExpr(card.min, card.max)
            rules: tuple[ast.Member, ...] = (*members, *_rules(type_, constraints))
            return ast.EdgeDecl(
                Name(type_.name),
                Name(type_.from_type),
                Name(type_.to_type),
                bounds,
                _notes(type_.notes),
                rules,
                valid=_valid(type_),
            )


def _valid(type_: NodeType | EdgeType) -> ast.ValidExpr | None:
    valid = type_.valid
    return None if valid is None else ast.ValidExpr(Name(valid.start), Name(valid.end))


def given_constraints(node: NodeType, catalog: Catalog) -> frozenset[Constraint]:
    """Return the constraints that a node inherits from its interfaces without declaring them."""
    return frozenset(
        constraint
        for name in node.implements
        for constraint in catalog.interfaces[name].constraints
        if all(node.properties[column].injected_from for column in constraint_columns(constraint))
    )


def _property(property_: Property, constraints: list[Constraint]) -> ast.PropertyDecl:
    words = [
        ast.Annotation(Name(_WORDS[type(constraint)])) for constraint in constraints if is_mark(constraint, property_)
    ]
    annotations = (*words, *_embed(property_), *_notes(property_.notes))
    return ast.PropertyDecl(Name(property_.name), ast.TypeExpr(property_.type), annotations)


def is_mark(constraint: Constraint, property_: Property) -> bool:
    """Return True if a constraint is written behind its only property; a list property has none there."""
    alone = type(constraint) in _WORDS and constraint_columns(constraint) == (property_.name,)
    return alone and not property_.type.is_list


def _embed(property_: Property) -> tuple[ast.Annotation, ...]:
    embed = property_.embed
    if embed is None:
        return ()
    arguments = ((Name("model"), _string(embed.model)),) if embed.model is not None else ()
    return (ast.Annotation(Name("embed"), _string(embed.source), arguments),)


def _rules(type_: AnyType, constraints: list[Constraint]) -> tuple[ast.Rule, ...]:
    rules: list[ast.Rule] = []
    for constraint in constraints:
        match constraint:
            case Range(column, low, high):
                rules.append(ast.RangeRule(Name(column), _number(low), _number(high)))
            case Check(column, pattern):
                rules.append(ast.CheckRule(Name(column), _string(pattern)))
            case Valid():
                pass  # written behind the declaration
            case _:
                columns = constraint_columns(constraint)
                property_ = type_.properties.get(columns[0])
                if property_ is None or property_.injected_from or not is_mark(constraint, property_):
                    rules.append(ast.ColumnRule(_WORDS[type(constraint)], tuple(Name(column) for column in columns)))
    return tuple(rules)


def _notes(notes: tuple[Metadata, ...]) -> tuple[ast.Annotation, ...]:
    return tuple(
        ast.Annotation(
            Name(note.name),
            _string(note.value) if note.value is not None else None,
            tuple((Name(key), _string(value)) for key, value in note.arguments),
        )
        for note in notes
    )


def _string(text: str) -> ast.AnnotationValue:
    return ast.AnnotationValue("string", text)


def _number(value: float | None) -> Name | None:
    return None if value is None else Name(spell_float(value, single=False))
