"""Classes → the text of a schema.

Defaults of fields stay in Python: the schema language has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any

from omnigraph.errors import CompileError, InputError
from omnigraph.lang.spans import Name
from omnigraph.models.described import DescribedField, DescribedType, describe, is_model
from omnigraph.models.marks import Card, Check, Index, Key, Mark, Note, Range, Renamed, Unique, Valid, Vector, _Columns
from omnigraph.scalar_types.floats import spell_float
from omnigraph.schema import ast
from omnigraph.schema.check import compile_schema
from omnigraph.schema.format import print_schema
from omnigraph.schema.unparse import unparse

if TYPE_CHECKING:
    from omnigraph.notebook.schema_view import SchemaText

_WORDS: dict[type[_Columns], ast.ColumnRuleKind] = {Key: "key", Unique: "unique", Index: "index"}


def schema_of(models: Iterable[type] | ModuleType) -> SchemaText:
    """Return the schema of classes, or of the models that a module defines, in canonical form.

    Interfaces and the ends of edges are added.
    """
    from omnigraph.notebook.schema_view import SchemaText  # noqa: PLC0415 (it draws)

    listed: list[type] = _defined(models) if isinstance(models, ModuleType) else list(models)
    described: dict[type, DescribedType] = {}
    names: dict[tuple[str, str], type] = {}
    while listed:
        cls = listed.pop(0)
        if cls in described:
            continue
        found = described[cls] = describe(cls)
        other = names.setdefault((found.kind, found.name), cls)
        if other is not cls:
            raise InputError(
                f"two classes are the type '{found.name}': {other.__module__} and {cls.__module__}", code="bad_model"
            )
        listed += found.interfaces
        listed += [] if found.ends is None else [found.ends.source, found.ends.target]
    text = print_schema(ast.SchemaFile(tuple(_declaration(each, described) for each in described.values())))
    try:
        return SchemaText(unparse(compile_schema(text, "<models>"), renames=True))
    except CompileError as error:
        error.add_note("the text is the schema of the given classes")
        raise


def _defined(module: ModuleType) -> list[type]:
    """Return the models that a module defines; pydantic adds classes such as `Edge[A, B]` to it."""
    found = (each for each in vars(module).values() if is_model(each) and each.__module__ == module.__name__)
    return [each for each in found if "[" not in each.__name__]


def _declaration(type_: DescribedType, described: dict[type, DescribedType]) -> ast.Declaration:
    name = Name(type_.name)
    fields = tuple(_property(each) for each in type_.fields if not each.is_inherited)
    if type_.kind == "interface":
        return ast.InterfaceDecl(name, fields)
    members = (*fields, *_rules(type_))
    notes = (*_description(type_), *_annotations(type_.marks))
    if type_.ends is None:
        interfaces = tuple(
            Name(described[each].name) if each in described else Name(describe(each).name) for each in type_.interfaces
        )
        return ast.NodeDecl(name, notes, tuple(dict.fromkeys(interfaces)), members, valid=_valid(type_))
    card: Card | None = type_.mark(Card)
    bounds = None if card is None else ast.CardinalityExpr(card.least, card.most)
    source, target = (Name(described[end].name) for end in (type_.ends.source, type_.ends.target))
    return ast.EdgeDecl(name, source, target, bounds, notes, members, valid=_valid(type_))


def _valid(type_: DescribedType) -> ast.ValidExpr | None:
    mark: Valid | None = type_.mark(Valid)
    return None if mark is None else ast.ValidExpr(Name(mark.start), Name(mark.end))


def _description(type_: DescribedType) -> tuple[ast.Annotation, ...]:
    return () if type_.description is None else (ast.Annotation(Name("description"), _string(type_.description)),)


def _property(field: DescribedField) -> ast.PropertyDecl:
    marks = tuple(_mark(each) for each in field.marks if isinstance(each, Key | Unique | Index))
    return ast.PropertyDecl(
        Name(field.name), ast.TypeExpr(field.type), (*marks, *_embedding(field.marks), *_annotations(field.marks))
    )


def _mark(mark: Key | Unique | Index) -> ast.Annotation:
    if mark.columns:
        raise InputError(
            f"og.{mark!r} of a field names no properties", code="bad_model", hint="put it into __omnigraph__"
        )
    return ast.Annotation(Name(_WORDS[type(mark)]))


def _embedding(marks: Iterable[Mark]) -> Iterator[ast.Annotation]:
    for mark in marks:
        if isinstance(mark, Vector) and mark.embed is not None:
            model = () if mark.model is None else ((Name("model"), _string(mark.model)),)
            yield ast.Annotation(Name("embed"), _string(mark.embed), model)


def _annotations(marks: Iterable[Mark]) -> Iterator[ast.Annotation]:
    for mark in marks:
        if isinstance(mark, Note):
            arguments = tuple((Name(name), _string(value)) for name, value in mark.arguments.items())
            yield ast.Annotation(Name(mark.name), None if mark.value is None else _string(mark.value), arguments)
        elif isinstance(mark, Renamed):
            yield ast.Annotation(Name("rename_from"), _string(mark.before))


def _rules(type_: DescribedType) -> Iterator[ast.Rule]:
    """Yield the rules of the body: those of properties, then those of the type."""
    for field in type_.fields:
        if not field.is_inherited:
            yield from (_rule(mark, field.name) for mark in field.marks if isinstance(mark, Range | Check))
    for mark in type_.marks:
        if isinstance(mark, Range | Check):
            if mark.of is None:
                raise InputError(
                    f"{type_.cls.__name__}: {mark!r} names no property", code="bad_model", hint="add of='name'"
                )
            yield _rule(mark, mark.of)
        elif isinstance(mark, Key | Unique | Index):
            yield ast.ColumnRule(_WORDS[type(mark)], tuple(map(Name, mark.columns)))


def _rule(mark: Range | Check, column: str) -> ast.Rule:
    if isinstance(mark, Check):
        return ast.CheckRule(Name(column), _string(mark.pattern))
    return ast.RangeRule(Name(column), _number(mark.low), _number(mark.high))


def _number(value: Any) -> Name | None:
    return None if value is None else Name(spell_float(float(value), single=False))


def _string(text: str) -> ast.AnnotationValue:
    return ast.AnnotationValue("string", text)
