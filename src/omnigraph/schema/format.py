"""Formatter of the schema language: tree → `.pg` text in canonical layout, with comments.

Declarations and members keep their source order: it is meaningful to readers, although it does not affect the catalog.
"""

from __future__ import annotations

from omnigraph.errors import InputError
from omnigraph.lang.comment_printer import Printer, quote
from omnigraph.lang.spans import Name, Source
from omnigraph.schema import ast
from omnigraph.schema.parser import parse_source


def format_schema(text: str, name: str = "<schema>") -> str:
    """Return `text` in canonical layout, or raise `ParseError`."""
    source = Source(text, name)
    tree, comments = parse_source(source)
    return _SchemaFormatter(Printer(source, comments)).file(tree)


def print_schema(tree: ast.SchemaFile) -> str:
    """Return the text of a tree that may have been built without a source."""
    return _SchemaFormatter(Printer()).file(tree)


def merge_declaration(properties: str) -> ast.MergeDecl:
    """Return the declaration of how edits of different properties merge."""
    return ast.MergeDecl(Name("merge"), (ast.MergeSetting(Name(properties)),))


def declare_merge(text: str, properties: str, name: str = "<schema>") -> str:
    """Return a schema text that declares how edits of different properties merge; it must not declare it yet."""
    if any(isinstance(each, ast.MergeDecl) for each in parse_source(Source(text, name))[0].declarations):
        raise InputError(f"'{name}' has a declaration 'merge' already", hint="change it there, or leave out the option")
    return f"{print_schema(ast.SchemaFile((merge_declaration(properties),)))}\n{text}"


class _SchemaFormatter:
    def __init__(self, printer: Printer) -> None:
        self.printer = printer

    def file(self, tree: ast.SchemaFile) -> str:
        had_body = False
        for declaration in tree.declarations:
            has_body = bool(declaration.members) or self.printer.has_comment(declaration.body)
            self.declaration(declaration, has_body, apart=had_body or has_body)
            had_body = has_body
        return self.printer.finish()

    def declaration(self, decl: ast.Declaration, has_body: bool, *, apart: bool) -> None:
        head = self.head(decl)
        if not has_body:
            empty = "" if isinstance(decl, ast.EdgeDecl) else " {}"
            self.printer.item(head + empty, decl.span, apart=apart)
            return
        self.printer.open(head + " {", decl.span.start, decl.body.start, apart=apart)
        for member in decl.members:
            self.printer.item(self.member(member), member.span)
        self.printer.close(decl.span.end)

    def head(self, decl: ast.Declaration) -> str:
        match decl:
            case ast.MergeDecl():
                return "merge"
            case ast.InterfaceDecl():
                return f"interface {decl.name}"
            case ast.NodeDecl():
                implements = ", ".join(name.text for name in decl.implements)
                head = f"node {decl.name}{_valid(decl.valid)}{self.annotations(decl.annotations)}"
                return f"{head} implements {implements}" if implements else head
            case ast.EdgeDecl():
                card = decl.cardinality
                bounds = f" @card({card.min}..{'' if card.max is None else card.max})" if card else ""
                rules = f"{bounds}{_valid(decl.valid)}{self.annotations(decl.annotations)}"
                return f"edge {decl.name}: {decl.source} -> {decl.target}{rules}"

    def member(self, member: ast.Member | ast.MergeSetting) -> str:
        match member:
            case ast.MergeSetting():
                return f"properties: {member.value}"
            case ast.PropertyDecl():
                return f"{member.name}: {self.type(member.type)}{self.annotations(member.annotations)}"
            case ast.ColumnRule():
                return f"@{member.kind}({', '.join(name.text for name in member.columns)})"
            case ast.RangeRule():
                return f"@range({member.column}, {member.low or ''}..{member.high or ''})"
            case ast.CheckRule():
                return f"@check({member.column}, {self.value(member.pattern)})"

    def type(self, type_: ast.TypeExpr) -> str:
        if type_.enum_order is None:
            return str(type_.type)
        return f"enum({', '.join(type_.enum_order)}){'?' if type_.type.nullable else ''}"

    def annotations(self, annotations: tuple[ast.Annotation, ...]) -> str:
        return "".join(f" {self.annotation(annotation)}" for annotation in annotations)

    def annotation(self, annotation: ast.Annotation) -> str:
        if annotation.value is None:
            return f"@{annotation.name}"
        arguments = "".join(f", {key}={self.value(value)}" for key, value in annotation.arguments)
        return f"@{annotation.name}({self.value(annotation.value)}{arguments})"

    def value(self, value: ast.AnnotationValue) -> str:
        return self.printer.literal(value.span, quote(value.text)) if value.kind == "string" else value.text


def _valid(valid: ast.ValidExpr | None) -> str:
    return "" if valid is None else f" @valid(from: {valid.start}, to: {valid.end})"
