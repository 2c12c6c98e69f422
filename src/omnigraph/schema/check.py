"""Validation of a schema: syntax tree → catalog, or all errors.

There are three passes, each based on the previous one: interfaces; nodes with the interface properties they inherit;
edges with their end types. The codes S2…S25 identify the violated rule; the documentation describes each. A declaration
with an error is checked to its end, and later passes treat its names as declared, so that each error is reported once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from omnigraph.checkpoints import checked, checkpoint, paced
from omnigraph.errors import SchemaChangeError
from omnigraph.lang.diagnostics import Fault, Reporter
from omnigraph.lang.spans import Name, Source, Span
from omnigraph.schema import ast
from omnigraph.schema.annotations import misspelled
from omnigraph.schema.catalog import (
    RESERVED_COLUMNS,
    Cardinality,
    Catalog,
    EdgeType,
    Embed,
    InterfaceType,
    Metadata,
    NodeType,
    Property,
    TypeKind,
)
from omnigraph.schema.constraints import (
    Check,
    Constraint,
    Index,
    Key,
    Range,
    Unique,
    Valid,
    constraint_columns,
    constraint_order,
)
from omnigraph.schema.parser import parse_source
from omnigraph.schema.patterns import why_bad_pattern
from omnigraph.suggestions import did_you_mean

AnyItem = TypeVar("AnyItem")

INHERITED_MAX = 20_000
"""Properties that all nodes of a schema inherit at most. Their number is the product of two parts of the text."""

_COLUMN_CONSTRAINTS: dict[str, type[Key] | type[Unique] | type[Index]] = {
    "key": Key,
    "unique": Unique,
    "index": Index,
}
_BARE = tuple(_COLUMN_CONSTRAINTS)
_TYPED = frozenset({*_BARE, "embed", "rename_from"})
_TAKEN: dict[TypeKind, frozenset[str]] = {
    "interface": frozenset({"id"}),
    "node": frozenset({"id"}),
    "edge": frozenset({"id", "src", "dst", "from", "to"}),
}


def compile_schema(text: str, name: str = "<schema>") -> Catalog:
    """Return the catalog of a schema text, or raise `ParseError` or `SchemaError` with all errors."""
    source = Source(text, name)
    tree, _ = parse_source(source)
    return check_schema(tree, source)


def check_not_empty(catalog: Catalog) -> None:
    """Raise `SchemaChangeError` if a schema declares no node type: a graph with it could not store anything."""
    if not catalog.nodes:
        raise SchemaChangeError(
            "the schema declares no node type",
            code="empty_schema",
            hint="a schema is complete: it declares every type that the graph has or gets",
        )


def check_schema(tree: ast.SchemaFile, source: Source) -> Catalog:
    """Return the catalog of a parsed schema; error positions refer to `source`."""
    checker = _Checker(Reporter(source))
    catalog = checker.run(tree)
    checker.reporter.raise_if_any()
    return catalog


@dataclass(frozen=True, slots=True)
class _Gift:
    """Property that an interface provides to its nodes, with its constraints and its position."""

    property: Property
    constraints: list[Constraint]
    place: Span


class _Checker:
    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        self.subject: str | None = None
        self.inherited = 0
        self.gifts: dict[str, dict[str, _Gift]] = {}
        """Interface → property → the inherited property of nodes that do not declare it; built once and shared by all
        nodes.
        """

    def say(self, code: str, message: str, span: Span, hint: str | None = None, *, catalog: bool = False) -> None:
        fault = Fault(message, span, kind="catalog" if catalog else "parse", code=code, hint=hint)
        self.reporter.add(fault, subject=self.subject)

    def run(self, tree: ast.SchemaFile) -> Catalog:
        interfaces: dict[str, InterfaceType] = {}
        nodes: dict[str, NodeType] = {}
        edges: dict[str, EdgeType] = {}
        firsts = {kind: self.firsts(tree, kind) for kind in (ast.InterfaceDecl, ast.NodeDecl, ast.EdgeDecl)}
        for interface in checked(firsts[ast.InterfaceDecl]):
            assert isinstance(interface, ast.InterfaceDecl)
            interfaces[interface.name.text] = self.interface(interface)
        for node in checked(firsts[ast.NodeDecl]):
            assert isinstance(node, ast.NodeDecl)
            nodes[node.name.text] = self.node(node, interfaces)
        folded: dict[str, str] = {}
        for edge in checked(firsts[ast.EdgeDecl]):
            assert isinstance(edge, ast.EdgeDecl)
            edges[edge.name.text] = self.edge(edge, nodes)
            other = folded.setdefault(edge.name.text.lower(), edge.name.text)
            if other != edge.name.text:
                self.say(
                    "S22",
                    f"edges '{other}' and '{edge.name}' differ only in case",
                    edge.name.span,
                    "queries ignore the case of edge names: rename one of them",
                    catalog=True,
                )
        self.subject = None
        catalog = Catalog(_by_name(interfaces), _by_name(nodes), _by_name(edges))
        for merge in self.firsts(tree, ast.MergeDecl):
            assert isinstance(merge, ast.MergeDecl)
            if any(setting.value.text == "combine" for setting in merge.members):
                catalog = replace(catalog, merge_properties="combine")
        return catalog

    def firsts(self, tree: ast.SchemaFile, kind: type[ast.Declaration]) -> list[ast.Declaration]:
        """Return the declarations of one kind; a second one of the same name is reported and omitted."""
        seen: dict[str, ast.Declaration] = {}
        for declaration in tree.declarations:
            if isinstance(declaration, kind):
                name = declaration.name
                if name.text in seen:
                    self.subject = None
                    line = self.reporter.source.line_of(seen[name.text].name.span.start)
                    word = kind.__name__.removesuffix("Decl").lower()
                    self.say(
                        "S20",
                        f"{word} '{name}' is declared twice, first on line {line}",
                        name.span,
                        catalog=True,
                    )
                else:
                    seen[name.text] = declaration
        return list(seen.values())

    # -- the three kinds -------------------------------------------------------------------------

    def interface(self, decl: ast.InterfaceDecl) -> InterfaceType:
        self.subject = f"interface '{decl.name}'"
        properties, constraints = self.properties(decl.members, "interface")
        interface = InterfaceType(decl.name.text, _by_name(properties), _canonical(constraints))
        places = {member.name.text: member.span for member in decl.members}
        gifts = {
            name: _Gift(replace(property_, injected_from=(interface.name,), rename_from=None), [], places[name])
            for name, property_ in interface.properties.items()
        }
        for constraint in interface.constraints:
            for column in constraint_columns(constraint):
                gifts[column].constraints.append(constraint)
        self.gifts[interface.name] = gifts
        return interface

    def node(self, decl: ast.NodeDecl, interfaces: dict[str, InterfaceType]) -> NodeType:
        self.subject = f"node '{decl.name}'"
        properties, constraints = self.properties(decl.members, "node")
        places = {m.name.text: m.span for m in decl.members if isinstance(m, ast.PropertyDecl)}
        self.inherit(decl, interfaces, properties, constraints, places)
        constraints += self.rules(decl.members, "node", properties)
        self.one_key(decl, constraints)
        self.key_columns(constraints, properties, places, decl)
        constraints += self.valid(decl, properties, next((c for c in constraints if isinstance(c, Key)), None))
        for property_ in properties.values():
            if property_.embed:
                self.embed_source(property_, property_.embed, properties, places[property_.name])
        return NodeType(
            decl.name.text,
            _by_name(properties),
            _canonical(constraints),
            self.notes(decl.annotations, on_property=False),
            tuple(sorted({name.text for name in decl.implements})),
            rename_from=self.rename_from(decl.annotations),
        )

    def edge(self, decl: ast.EdgeDecl, nodes: dict[str, NodeType]) -> EdgeType:
        self.subject = f"edge '{decl.name}'"
        for end, role in ((decl.source, "source"), (decl.target, "target")):
            if end.text not in nodes:
                self.say(
                    "S21",
                    f"the {role} '{end}' of edge '{decl.name}' is not a node type",
                    end.span,
                    did_you_mean(end.text, nodes),
                    catalog=True,
                )
        properties, constraints = self.properties(decl.members, "edge")
        constraints += self.rules(decl.members, "edge", properties)
        constraints += self.valid(decl, properties, None)
        card = decl.cardinality
        return EdgeType(
            decl.name.text,
            _by_name(properties),
            _canonical(constraints),
            self.notes(decl.annotations, on_property=False),
            decl.source.text,
            decl.target.text,
            Cardinality(card.min, card.max) if card else Cardinality(),
            rename_from=self.rename_from(decl.annotations),
        )

    def inherit(
        self,
        decl: ast.NodeDecl,
        interfaces: dict[str, InterfaceType],
        properties: dict[str, Property],
        constraints: list[Constraint],
        places: dict[str, Span],
    ) -> None:
        """Copy the properties of the implemented interfaces into `properties`, with their constraints."""
        declared = set(properties)
        firsts: dict[str, _Gift] = {}
        providers: dict[str, list[str]] = {}
        for name in {name.text: name for name in decl.implements}.values():
            checkpoint()
            if name.text not in interfaces:
                self.say(
                    "S8",
                    f"'{decl.name}' implements an unknown interface '{name}'",
                    name.span,
                    did_you_mean(name.text, interfaces) or f"declare 'interface {name} {{ … }}'",
                )
                continue
            self.inherited += len(self.gifts[name.text])
            if self.inherited > INHERITED_MAX:
                message = f"the nodes of a schema inherit at most {INHERITED_MAX:,} properties"
                hint = "let fewer nodes implement the interfaces: a property counts for each node and interface"
                self.reporter.add(Fault(message, name.span, hint=hint), subject=self.subject)
                self.reporter.raise_if_any()
            for column, gift in paced(self.gifts[name.text].items()):
                own, given = properties.get(column), gift.property
                if own is None:
                    firsts[column] = gift
                    places[column] = gift.place
                    properties[column] = given
                    constraints += gift.constraints
                elif column in declared:
                    if own.type != given.type:
                        self.say(
                            "S8",
                            f"'{decl.name}.{column}' is {own.type}, but interface '{name}' declares {given.type}",
                            places[column],
                            f"declare it as '{column}: {given.type}', or remove it: the interface provides it",
                        )
                elif not _alike(firsts[column], gift):
                    (first,) = firsts[column].property.injected_from
                    self.say(
                        "S9",
                        f"interfaces '{first}' and '{name}' disagree about '{column}' of '{decl.name}'",
                        name.span,
                        f"declare '{column}' in '{decl.name}', or make the interfaces equal",
                        catalog=True,
                    )
                else:
                    providers.setdefault(column, [*own.injected_from]).append(name.text)
        for column, names in providers.items():
            properties[column] = replace(properties[column], injected_from=tuple(sorted(names)))

    # -- properties ------------------------------------------------------------------------------

    def properties(self, members: Sequence[ast.Member], kind: TypeKind) -> tuple[dict[str, Property], list[Constraint]]:
        """Return the declared properties and the constraints written behind them."""
        properties: dict[str, Property] = {}
        constraints: list[Constraint] = []
        for member in paced(members):
            if not isinstance(member, ast.PropertyDecl):
                continue
            name = member.name.text
            if name in properties:
                self.say("S20", f"property '{name}' is declared twice", member.name.span, catalog=True)
                continue
            if name in RESERVED_COLUMNS:
                self.say(
                    "S6",
                    f"'{name}' is a column of the storage layer",
                    member.name.span,
                    "choose another name",
                )
            elif name in _TAKEN[kind]:
                self.say(
                    "S23",
                    f"'{name}' cannot be a property of {'an edge' if kind == 'edge' else 'a node'}",
                    member.name.span,
                    "every row has its own 'id'; edges also have 'src' and 'dst', written 'from' and 'to'",
                )
            constraints += self.bare_constraints(member, kind)
            properties[name] = Property(
                name,
                member.type.type,
                self.notes(member.annotations, on_property=True),
                self.embed(member, kind),
                rename_from=self.rename_from(member.annotations),
            )
        return properties, constraints

    def bare_constraints(self, member: ast.PropertyDecl, kind: TypeKind) -> list[Constraint]:
        """Read `@key`, `@unique` and `@index` behind a property."""
        found: list[Constraint] = []
        type_ = member.type.type
        seen: set[str] = set()
        for annotation in member.annotations:
            word = annotation.name.text
            if word not in _BARE:
                continue
            column = member.name.text
            if word in seen:
                self.say("S15", f"'@{word}' is written twice on '{column}'", annotation.span)
                continue
            seen.add(word)
            if annotation.value is not None:
                self.say("S15", f"'@{word}' on a property takes no value", annotation.span)
            what = "a list" if type_.is_list else type_.scalar
            if type_.is_list or type_.scalar == "Blob" or (type_.scalar == "Vector" and word != "index"):
                self.say("S13", f"'@{word}' cannot be on '{column}', which is {what}", annotation.span)
            elif word == "key" and kind == "edge":
                self.say("S10", "an edge has no key", annotation.span, "use '@unique' to forbid repeated values")
            else:
                found.append(_COLUMN_CONSTRAINTS[word]((column,)))
        return found

    def embed(self, member: ast.PropertyDecl, kind: TypeKind) -> Embed | None:
        annotations = [a for a in member.annotations if a.name.text == "embed"]
        if not annotations:
            return None
        annotation = annotations[0]
        name = member.name.text
        type_ = member.type.type
        model: str | None = None
        if len(annotations) > 1:
            self.say("S16", f"'@embed' is written twice on '{name}'", annotations[1].span)
        if type_.is_list or type_.scalar == "Blob":
            self.say("S13", f"'@embed' cannot be on '{name}', which is {type_}", annotation.span)
            return None
        if kind == "edge":
            self.say("S16", "'@embed' works on node properties only", annotation.span)
            return None
        if type_.scalar != "Vector":
            self.say("S16", f"'@embed' needs a Vector property, but '{name}' is {type_}", annotation.span)
            return None
        for key, value in annotation.arguments:
            if key.text != "model":
                self.say("S16", f"'@embed' has no argument '{key}', only 'model'", key.span)
            elif model is not None:
                self.say("S16", "'model' is given twice", key.span)
            else:
                model = value.text
        if annotation.value is None or not annotation.value.text.strip():
            self.say(
                "S16",
                f"'@embed' on '{name}' does not say which text to embed",
                annotation.span,
                'name a String property: @embed("title")',
            )
            return None
        return Embed(annotation.value.text, model)

    def embed_source(self, target: Property, embed: Embed, properties: dict[str, Property], span: Span) -> None:
        source = properties.get(embed.source)
        if source is None:
            self.say(
                "S16",
                f"'{target.name}' embeds '{embed.source}', which is not a property here",
                span,
                did_you_mean(embed.source, (p.name for p in properties.values() if p.type.is_text)),
            )
        elif not source.type.is_text or source.type.enum_values is not None:
            self.say("S16", f"'{target.name}' embeds '{source.name}', which is {source.type}, not String", span)

    # -- annotations -----------------------------------------------------------------------------

    def notes(self, annotations: Iterable[ast.Annotation], *, on_property: bool) -> tuple[Metadata, ...]:
        """Return the annotations that remain metadata, in canonical order."""
        notes: set[Metadata] = set()
        seen: set[str] = set()
        for annotation in annotations:
            word = annotation.name.text
            if word in _TYPED:
                continue
            if word == "valid":
                hint = "write @valid(from: …, to: …) behind the name of the type"
                self.say("S25", "'@valid' stands on a declaration, not on a property", annotation.span, hint)
                continue
            if (meant := misspelled(word)) is not None:
                self.say("S24", f"there is no annotation '@{word}'", annotation.span, f"did you mean '@{meant}'?")
                continue
            if word in ("description", "instruction"):
                if word == "instruction" and on_property:
                    self.say("S17", "'@instruction' belongs to a node or edge, not to a property", annotation.span)
                if annotation.value is None or not annotation.value.text.strip():
                    self.say("S17", f"'@{word}' needs a text", annotation.span, f'@{word}("…")')
                if word in seen:
                    self.say("S17", f"'@{word}' is written twice", annotation.span)
                seen.add(word)
            arguments = tuple(sorted((key.text, value.text) for key, value in annotation.arguments))
            notes.add(Metadata(word, annotation.value.text if annotation.value else None, arguments))
        # An absent value and an empty value are different annotations and must not compare equal.
        return tuple(sorted(notes, key=lambda n: (n.name, n.value is not None, n.value or "", n.arguments)))

    def rename_from(self, annotations: Iterable[ast.Annotation]) -> str | None:
        found: str | None = None
        for count, annotation in enumerate(a for a in annotations if a.name.text == "rename_from"):
            if count:
                self.say("S18", "'@rename_from' is written twice", annotation.span)
            elif annotation.arguments:
                self.say("S18", "'@rename_from' takes one value and no arguments", annotation.span)
            elif annotation.value is None or not annotation.value.text.strip():
                self.say("S18", "'@rename_from' needs the old name", annotation.span, '@rename_from("old")')
            else:
                found = annotation.value.text
        return found

    # -- rules in a body -------------------------------------------------------------------------

    def rules(self, members: Sequence[ast.Member], kind: TypeKind, properties: dict[str, Property]) -> list[Constraint]:
        found: list[Constraint] = []
        for member in members:
            if isinstance(member, ast.PropertyDecl):
                continue
            constraint = self.rule(member, kind, properties)
            if constraint is not None:
                found.append(constraint)
        return found

    def rule(self, rule: ast.Rule, kind: TypeKind, properties: dict[str, Property]) -> Constraint | None:
        match rule:
            case ast.ColumnRule():
                return self.column_rule(rule, kind, properties)
            case ast.RangeRule():
                return self.range_rule(rule, kind, properties)
            case ast.CheckRule():
                return self.check_rule(rule, kind, properties)

    def column_rule(self, rule: ast.ColumnRule, kind: TypeKind, properties: dict[str, Property]) -> Constraint | None:
        if rule.kind == "key" and kind == "edge":
            self.say("S10", "an edge has no key", rule.span, "use '@unique' to forbid repeated values")
            return None
        code = "S11" if rule.kind == "key" else "S12"
        sound = True
        for column in rule.columns:
            if kind == "edge" and column.text in ("src", "dst"):
                continue
            property_ = self.column(column, rule.kind, properties, code)
            if property_ is None:
                sound = False
                continue
            type_ = property_.type
            if rule.kind != "key" and type_.scalar == "Blob":
                self.say(code, f"'@{rule.kind}' cannot cover '{column}', which is Blob", column.span)
                sound = False
            elif rule.kind == "unique" and (type_.is_list or type_.scalar == "Vector"):
                self.say("S23", f"'@unique' cannot cover '{column}', which is {type_}", column.span)
                sound = False
        if not sound:
            return None
        columns = tuple(sorted({column.text for column in rule.columns}))
        return _COLUMN_CONSTRAINTS[rule.kind](columns)

    def range_rule(self, rule: ast.RangeRule, kind: TypeKind, properties: dict[str, Property]) -> Constraint | None:
        if not self.value_rule_column(rule, kind, properties):
            return None
        low, high = (None if bound is None else float(bound.text) + 0.0 for bound in (rule.low, rule.high))
        for bound, value in ((rule.low, low), (rule.high, high)):
            if bound is not None and value is not None and not math.isfinite(value):
                self.say("S19", "the bound is too large for a 64-bit float", bound.span)
                return None
        if low is not None and high is not None and low > high:
            self.say("S23", f"'@range' of '{rule.column}' has its lower bound above its upper one", rule.span)
            return None
        return Range(rule.column.text, low, high)

    def check_rule(self, rule: ast.CheckRule, kind: TypeKind, properties: dict[str, Property]) -> Constraint | None:
        if not self.value_rule_column(rule, kind, properties):
            return None
        why = why_bad_pattern(rule.pattern.text)
        if why is not None:
            self.say(
                "S23",
                f"the pattern of '@check' does not compile: {why}",
                rule.pattern.span,
                "patterns are RE2: no look-around and no back-references",
            )
            return None
        return Check(rule.column.text, rule.pattern.text)

    def value_rule_column(
        self, rule: ast.RangeRule | ast.CheckRule, kind: TypeKind, properties: dict[str, Property]
    ) -> bool:
        """True if the rule is on a node and its column has a type that the rule accepts."""
        of_numbers = isinstance(rule, ast.RangeRule)
        word, needed = ("range", "a number") if of_numbers else ("check", "a String")
        if kind == "edge":
            hint = "an enum limits the values of an edge property; otherwise move the property to a node type"
            self.say("S19", f"'@{word}' works on nodes only", rule.span, hint)
            return False
        property_ = self.column(rule.column, word, properties, "S19")
        if property_ is None:
            return False
        type_ = property_.type
        if type_.is_numeric if of_numbers else type_.is_text:
            return True
        code = "S23" if type_.is_list or type_.scalar == "Vector" else "S19"
        self.say(code, f"'@{word}' needs {needed}, but '{rule.column}' is {type_}", rule.column.span)
        return False

    def valid(
        self, decl: ast.NodeDecl | ast.EdgeDecl, properties: dict[str, Property], key: Key | None
    ) -> list[Constraint]:
        """Check `@valid`: two properties of one type, Date or DateTime, and a key of one String."""
        valid = decl.valid
        if valid is None:
            return []
        found = [self.column(name, "valid", properties, "S25") for name in (valid.start, valid.end)]
        if found[0] is None or found[1] is None:
            return []
        for property_, name in zip(found, (valid.start, valid.end), strict=True):
            if property_ is not None and (property_.type.is_list or property_.type.scalar not in ("Date", "DateTime")):
                message = f"'@valid' needs a Date or a DateTime, but '{name}' is {property_.type}"
                self.say("S25", message, name.span)
                return []
        start, end = found[0].type, found[1].type
        if start.scalar != end.scalar:
            message = f"'{valid.start}' is {start.scalar}, but '{valid.end}' is {end.scalar}"
            self.say("S25", message, valid.span, "both ends of '@valid' have the same type")
            return []
        if valid.start.text == valid.end.text:
            self.say("S25", f"'@valid' names '{valid.start}' twice", valid.span, "a period has a start and an end")
            return []
        if not end.nullable:
            message = f"the end '{valid.end}' of '@valid' is not nullable"
            self.say(
                "S25", message, valid.end.span, "a period that has not ended has no end: write '?' behind the type"
            )
            return []
        if key is not None:
            self.periods_key(decl, key, valid, properties)
        return [Valid(valid.start.text, valid.end.text)]

    def periods_key(
        self, decl: ast.NodeDecl | ast.EdgeDecl, key: Key, valid: ast.ValidExpr, properties: dict[str, Property]
    ) -> None:
        """Check the key of a type with periods: edges have it as an end."""
        types = [properties[column].type for column in key.columns]
        if len(types) > 1 or not types[0].is_text:
            self.say(
                "S25",
                f"the key of '{decl.name}' is ({', '.join(key.columns)}), but with '@valid' it must be one String",
                valid.span,
                "edges name a node with periods by its key: add a String property as the key",
            )

    def column(self, column: Name, word: str, properties: dict[str, Property], code: str) -> Property | None:
        property_ = properties.get(column.text)
        if property_ is None:
            message = f"'@{word}' names '{column}', which is not a property here"
            self.say(code, message, column.span, did_you_mean(column.text, properties))
        return property_

    def one_key(self, decl: ast.NodeDecl, constraints: list[Constraint]) -> None:
        keys = [c for c in constraints if isinstance(c, Key)]
        if len(keys) > 1:
            listed = " and ".join(f"({', '.join(key.columns)})" for key in keys[:3])
            self.say(
                "S10",
                f"'{decl.name}' has more than one key: {listed}",
                decl.name.span,
                "a key of several columns is written once, in the body: @key(a, b)",
            )

    def key_columns(
        self,
        constraints: list[Constraint],
        properties: dict[str, Property],
        places: dict[str, Span],
        decl: ast.NodeDecl,
    ) -> None:
        for key in constraints:
            if not isinstance(key, Key):
                continue
            for column in key.columns:
                type_ = properties[column].type
                place = places.get(column, decl.name.span)
                if type_.nullable:
                    self.say(
                        "S11",
                        f"the key column '{column}' is nullable",
                        place,
                        "a key always has a value: drop the '?'",
                    )
                elif type_.is_list or type_.scalar in ("Vector", "Blob"):
                    self.say("S11", f"the key column '{column}' is {type_}", place, "a key is a plain scalar")


def _alike(a: _Gift, b: _Gift) -> bool:
    """Return True if two interfaces provide the same property: type, annotations and constraints."""
    return a.constraints == b.constraints and a.property == replace(b.property, injected_from=a.property.injected_from)


def _by_name(items: dict[str, AnyItem]) -> dict[str, AnyItem]:
    return dict(sorted(items.items()))


def _canonical(constraints: Iterable[Constraint]) -> tuple[Constraint, ...]:
    return tuple(sorted(set(constraints), key=constraint_order))
