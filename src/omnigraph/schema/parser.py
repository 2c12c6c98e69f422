"""Parser of the schema language: `.pg` text → tree.

Recursive descent over the shared cursor. After an error the parser skips to the next member, or to the next
declaration, so one run reports several errors. `check` validates rules that involve more than one
declaration.

Enum values such as `in-progress` and `2d` are not tokens of the shared lexer: adjacent tokens are joined.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from omnigraph.lang.cursor import Cursor, decode_string, name_of
from omnigraph.lang.diagnostics import Fault
from omnigraph.lang.error_recovery import FileParser
from omnigraph.lang.spans import NOWHERE, Name, Source, Span
from omnigraph.lang.tokens import DECIMAL, DIGITS, LOWER, STRING, UPPER, Comment
from omnigraph.schema import ast
from omnigraph.schema.annotations import misspelled
from omnigraph.schema.catalog import MERGE_PROPERTIES
from omnigraph.suggestions import did_you_mean
from omnigraph.types import SCALARS, VECTOR_DIM_MAX, PropertyType, foreign_type

_U32_MAX = 2**32 - 1
_KEYWORDS = ("interface", "node", "edge", "merge")
_FOREIGN_DECLARATIONS = ("create", "table", "type", "class", "struct", "entity", "label", "relationship")
_COLUMN_RULES = {"key", "unique", "index"}
_RULES = _COLUMN_RULES | {"range", "check"}
_BODY_RULES = _RULES | {"valid"}
"""Words that begin a rule, if a parenthesis follows."""
_VALID_FORM = "write @valid(from: started, to: ended)"
_ENUM_VALUE = re.compile(r"[A-Za-z0-9_-]+")


def parse_schema(text: str, name: str = "<schema>") -> ast.SchemaFile:
    """Return the tree of `text`, or raise `ParseError` with all errors."""
    return parse_source(Source(text, name))[0]


def parse_source(source: Source) -> tuple[ast.SchemaFile, list[Comment]]:
    """Return the tree and the comments, which a formatter needs."""
    parser = _SchemaParser(source)
    declarations, comments = parser.parse(parser.declaration, _at_declaration)
    return ast.SchemaFile(declarations), comments


class _SchemaParser(FileParser[ast.Declaration]):
    # -- declarations ----------------------------------------------------------------------------

    def declaration(self) -> ast.Declaration:
        match self.cursor.token.text:
            case "node":
                return self.node()
            case "edge":
                return self.edge()
            case "interface":
                return self.interface()
            case "merge":
                return self.merge()
        word = self.cursor.token.text
        hint = did_you_mean(word, _KEYWORDS) if self.cursor.token.kind == LOWER else None
        if word.lower() in _FOREIGN_DECLARATIONS:
            hint = "write node Type { property: String } or edge Type: From -> To"
        raise self.cursor.fault("'node', 'edge' or 'interface'", hint=hint)

    def interface(self) -> ast.InterfaceDecl:
        cursor = self.cursor
        mark = cursor.mark
        cursor.take()
        name = name_of(cursor.expect_upper("an interface name"))
        opened = cursor.expect("{", " to open the interface").start
        members: list[ast.PropertyDecl] = []
        self.members(lambda: members.append(self.interface_member()))
        return ast.InterfaceDecl(name, tuple(members), cursor.since(opened), cursor.since(mark))

    def interface_member(self) -> ast.PropertyDecl:
        cursor = self.cursor
        if cursor.at("@"):
            rule = cursor.ahead().text
            raise Fault(
                f"an interface holds properties only, not '@{rule}(…)'",
                cursor.here,
                hint=f"write '@{rule}' behind the property, without parentheses" if rule in _COLUMN_RULES else None,
            )
        return self.property()

    def merge(self) -> ast.MergeDecl:
        cursor = self.cursor
        mark = cursor.mark
        word = name_of(cursor.take())
        opened = cursor.expect("{", " to open the settings of merges").start
        members: list[ast.MergeSetting] = []
        self.members(lambda: members.append(self.merge_setting()))
        if len(members) > 1:
            raise Fault("'properties' is set twice", members[1].span, code="S20")
        return ast.MergeDecl(word, tuple(members), cursor.since(opened), cursor.since(mark))

    def merge_setting(self) -> ast.MergeSetting:
        cursor = self.cursor
        mark = cursor.mark
        form = "write properties: combine, or properties: conflict"
        if not cursor.accept("properties"):
            raise cursor.fault("'properties'", hint=form)
        cursor.expect(":", " and how edits of different properties merge")
        value = name_of(cursor.expect_lower("'combine' or 'conflict'"))
        if value.text not in MERGE_PROPERTIES:
            raise Fault(f"edits of different properties cannot '{value.text}'", value.span, hint=form)
        return ast.MergeSetting(value, cursor.since(mark))

    def node(self) -> ast.NodeDecl:
        cursor = self.cursor
        mark = cursor.mark
        cursor.take()
        name = name_of(cursor.expect_upper("a node type name"))
        annotations, valid = self.declaration_annotations()
        implements: list[Name] = []
        if cursor.accept("implements"):
            implements.append(name_of(cursor.expect_upper("an interface name")))
            while cursor.accept(","):
                implements.append(name_of(cursor.expect_upper("an interface name")))
        opened = cursor.expect("{", " to open the node's body").start
        members = self.body()
        return ast.NodeDecl(
            name, annotations, tuple(implements), members, cursor.since(opened), cursor.since(mark), valid
        )

    def edge(self) -> ast.EdgeDecl:
        cursor = self.cursor
        mark = cursor.mark
        cursor.take()
        name = name_of(cursor.expect_upper("an edge type name"))
        cursor.expect(":", " and the edge's source type")
        source = name_of(cursor.expect_upper("the source node type"))
        cursor.expect("->", " and the edge's target type")
        target = name_of(cursor.expect_upper("the target node type"))
        cardinality = None
        if cursor.at("@") and cursor.ahead().text == "card":
            cardinality = self.cardinality()
        annotations, valid = self.declaration_annotations()
        opened = cursor.mark
        members: tuple[ast.Member, ...] = ()
        body = NOWHERE
        if cursor.accept("{"):
            members = self.body()
            body = cursor.since(opened)
        return ast.EdgeDecl(name, source, target, cardinality, annotations, members, body, cursor.since(mark), valid)

    def declaration_annotations(self) -> tuple[tuple[ast.Annotation, ...], ast.ValidExpr | None]:
        annotations = []
        valid: ast.ValidExpr | None = None
        while self.cursor.at("@"):
            if self.cursor.ahead().text == "valid":
                found = self.valid()
                if valid is not None:
                    raise Fault("'@valid' is written twice", found.span, code="S25")
                valid = found
                continue
            if self.cursor.ahead().text in _RULES | {"embed"}:
                word = self.cursor.ahead()
                where = (
                    f"write '@{word.text}' behind a property, or '@{word.text}(column, …)' inside the braces"
                    if word.text in _COLUMN_RULES
                    else f"'@{word.text}' goes inside the braces"
                )
                raise Fault(
                    f"'@{word.text}' cannot stand on a declaration",
                    Span(self.cursor.token.start, word.end),
                    code="S14",
                    hint=where,
                )
            annotations.append(self.annotation())
        return tuple(annotations), valid

    def valid(self) -> ast.ValidExpr:
        """Parse `@valid(from: start, to: end)`."""
        cursor = self.cursor
        mark = cursor.mark
        cursor.take()
        cursor.take()
        columns = []
        for word, opening in (("from", "("), ("to", ",")):
            for sign in (opening, word, ":"):
                if not cursor.accept(sign):
                    raise _coded(cursor.fault(f"'{sign}'", hint=_VALID_FORM), "S25")
            if cursor.token.kind != LOWER:
                raise _coded(cursor.fault("a property name", hint=_VALID_FORM), "S25")
            columns.append(name_of(cursor.take()))
        if not cursor.accept(")"):
            raise _coded(cursor.fault("')'", hint=_VALID_FORM), "S25")
        return ast.ValidExpr(columns[0], columns[1], cursor.since(mark))

    def cardinality(self) -> ast.CardinalityExpr:
        cursor = self.cursor
        mark = cursor.mark
        cursor.take()
        cursor.take()
        cursor.expect("(")
        low_at = cursor.here
        low = self.u32("the smallest number of edges per source", "S7")
        cursor.expect("..", " between the bounds")
        high = None
        if cursor.token.kind == DIGITS:
            high = self.u32("the largest number of edges per source", "S7")
        else:
            cursor.accept("*")
        cursor.expect(")")
        if high is not None and high < low:
            raise Fault(
                f"@card({low}..{high}) has a minimum above its maximum",
                Span(low_at.start, cursor.since(mark).end),
                code="S7",
            )
        return ast.CardinalityExpr(low, high, cursor.since(mark))

    def u32(self, what: str, code: str) -> int:
        token = self.cursor.expect_digits(what)
        if len(token.text) > 10 or int(token.text) > _U32_MAX:
            raise Fault(f"{what} must be at most {_U32_MAX}", Span(token.start, token.end), code=code)
        return int(token.text)

    # -- bodies ----------------------------------------------------------------------------------

    def body(self) -> tuple[ast.Member, ...]:
        members: list[ast.Member] = []
        self.members(lambda: members.append(self.rule() if self.cursor.at("@") else self.property()))
        return tuple(members)

    def members(self, one: Callable[[], None]) -> None:
        cursor = self.cursor
        while not cursor.accept("}"):
            if cursor.at_end() or _at_declaration(cursor):
                raise cursor.fault("'}' to close the body")
            if not self.attempt(one, _at_member) and _at_declaration(cursor):
                return

    def property(self) -> ast.PropertyDecl:
        cursor = self.cursor
        mark = cursor.mark
        if cursor.at(","):
            raise cursor.fault("a property name", hint="properties are not separated by commas: end the line")
        name = name_of(cursor.expect_lower("a property name"))
        cursor.expect(":", " and the property's type")
        type_ = self.type()
        annotations: list[ast.Annotation] = []
        while cursor.at("@") and not (cursor.ahead().text in _BODY_RULES and cursor.ahead(2).text == "("):
            annotations.append(self.annotation())
        return ast.PropertyDecl(name, type_, tuple(annotations), cursor.since(mark))

    def type(self) -> ast.TypeExpr:
        cursor = self.cursor
        mark = cursor.mark
        order: tuple[str, ...] | None = None
        if cursor.accept("["):
            if cursor.at("enum") or cursor.at("Vector") or cursor.at("["):
                raise Fault(
                    f"a list holds plain scalars, not {cursor.token.text!r}",
                    cursor.here,
                    hint="lists of enums, of vectors and of lists do not exist",
                )
            base = self.scalar(in_list=True)
            cursor.expect("]", " to close the list type")
        elif cursor.at("enum"):
            order = self.enum()
            base = PropertyType("String", enum_values=tuple(sorted(order)))
        elif cursor.at("Vector"):
            base = self.vector()
        else:
            base = self.scalar()
            if cursor.at("["):
                raise cursor.fault("the end of the type", hint=f"a list is written [{base}]")
        nullable = cursor.accept("?")
        return ast.TypeExpr(base.with_nullable(nullable), order, cursor.since(mark))

    def scalar(self, *, in_list: bool = False) -> PropertyType:
        cursor = self.cursor
        for scalar in SCALARS:
            if cursor.token.text == scalar:
                token = cursor.take()
                if in_list and scalar == "Blob":
                    raise Fault("a list cannot hold Blob", Span(token.start, token.end), code="S4")
                return PropertyType(scalar, is_list=in_list)
        hint = None
        if cursor.token.kind in (LOWER, UPPER):
            meant = foreign_type(cursor.token.text)
            hint = (
                f"write {meant}" if meant else did_you_mean(cursor.token.text, (*SCALARS, "Vector", "enum"))
            ) or f"the types are {', '.join(SCALARS)}, enum(…), Vector(n) and lists: [T]"
        raise cursor.fault("a type", hint=hint)

    def vector(self) -> PropertyType:
        cursor = self.cursor
        cursor.take()
        cursor.expect("(", " and the number of dimensions")
        token = cursor.expect_digits("the number of dimensions")
        cursor.expect(")")
        if len(token.text) > 10 or not 1 <= int(token.text) <= VECTOR_DIM_MAX:
            raise Fault(f"a vector has 1 to {VECTOR_DIM_MAX} dimensions", Span(token.start, token.end), code="S3")
        return PropertyType("Vector", dim=int(token.text))

    def enum(self) -> tuple[str, ...]:
        cursor = self.cursor
        cursor.take()
        cursor.expect("(", " and the enum's values")
        values: list[str] = []
        seen: set[str] = set()
        while True:
            value, span = self.enum_value()
            if value in seen:
                raise Fault(f"the enum value '{value}' is listed twice", span, code="S5")
            seen.add(value)
            values.append(value)
            if not cursor.accept(","):
                break
        cursor.expect(")", " to close the enum")
        return tuple(values)

    def enum_value(self) -> tuple[str, Span]:
        cursor = self.cursor
        start = end = cursor.mark
        while cursor.token.start == end and cursor.token.text not in (",", ")") and not cursor.at_end():
            end = cursor.take().end
        text = cursor.source.text[start:end]
        if not _ENUM_VALUE.fullmatch(text):
            if not text:
                raise cursor.fault("an enum value")
            hint = "write it without quotes" if text.startswith('"') else None
            raise Fault(
                f"'{text[:40]}' is not an enum value: letters, digits, '_' and '-' only",
                Span(start, end),
                hint=hint,
            )
        return text, Span(start, end)

    # -- rules and annotations -------------------------------------------------------------------

    def rule(self) -> ast.Rule:
        cursor = self.cursor
        mark = cursor.mark
        cursor.take()
        word = cursor.expect_lower("a constraint name")
        if word.text == "valid":
            raise Fault(
                "'@valid' stands on the declaration, not in its body",
                cursor.since(mark),
                code="S25",
                hint="write it behind the name: node Type @valid(from: started, to: ended) { … }",
            )
        if word.text not in _RULES:
            raise Fault(
                f"'@{word.text}' stands alone in a body",
                cursor.since(mark),
                hint=did_you_mean(word.text, sorted(_RULES)) or "an annotation follows the property it describes",
            )
        cursor.expect("(", f" and the columns of @{word.text}")
        if word.text in _COLUMN_RULES:
            columns = [self.column(word.text)]
            while cursor.accept(","):
                columns.append(self.column(word.text))
            cursor.expect(")")
            return ast.ColumnRule(word.text, tuple(columns), cursor.since(mark))  # type: ignore[arg-type]
        column = self.value_column(word.text)
        if word.text == "check":
            cursor.expect(",", " and the pattern")
            if cursor.token.kind != STRING:
                raise _coded(cursor.fault("a pattern in double quotes"), "S19")
            pattern = self.value()
            cursor.expect(")")
            return ast.CheckRule(column, pattern, cursor.since(mark))
        cursor.expect(",", " and the bounds")
        low = None if cursor.at("..") else self.signed()
        cursor.expect("..", " between the bounds")
        high = None if cursor.at(")") else self.signed()
        if low is None and high is None:
            raise Fault("@range needs at least one bound", cursor.since(mark), code="S19")
        cursor.expect(")")
        return ast.RangeRule(column, low, high, cursor.since(mark))

    def column(self, rule: str) -> Name:
        cursor = self.cursor
        if cursor.token.kind in (STRING, DIGITS, DECIMAL):
            raise Fault(f"'@{rule}' takes property names, not a value", cursor.here, code="S15")
        return name_of(cursor.expect_lower("a property name"))

    def value_column(self, rule: str) -> Name:
        """Parse the property of `@range` or `@check`."""
        cursor = self.cursor
        if cursor.token.kind == LOWER:
            return name_of(cursor.take())
        rest = '"pattern"' if rule == "check" else "1..5"
        hint = f"a constraint names its property and has its own line: @{rule}(property, {rest})"
        raise cursor.fault("a property name", hint=hint)

    def signed(self) -> Name:
        cursor = self.cursor
        mark = cursor.mark
        sign = "-" if cursor.accept("-") else ""
        if cursor.token.kind not in (DIGITS, DECIMAL):
            raise _coded(cursor.fault("a number"), "S19")
        return Name(sign + cursor.take().text, cursor.since(mark))

    def annotation(self) -> ast.Annotation:
        cursor = self.cursor
        mark = cursor.mark
        cursor.take()
        name = name_of(cursor.expect_lower("an annotation name"))
        value: ast.AnnotationValue | None = None
        arguments: list[tuple[Name, ast.AnnotationValue]] = []
        seen: set[str] = set()
        if cursor.accept("("):
            value = self.value(allow_name=True)
            if cursor.at("..") and name.text == "card":
                raise cursor.fault("')'", hint="'@card' comes right behind the edge's target type")
            if cursor.at("..") and misspelled(name.text) == "card":
                raise cursor.fault("')'", hint="did you mean '@card'?")
            while cursor.accept(","):
                key = name_of(cursor.expect_lower("an argument name"))
                if key.text in seen:
                    raise Fault(f"the argument '{key}' is given twice", key.span)
                seen.add(key.text)
                cursor.expect("=", " and the argument's value")
                arguments.append((key, self.value()))
            cursor.expect(")", " to close the annotation")
        return ast.Annotation(name, value, tuple(arguments), cursor.since(mark))

    def value(self, *, allow_name: bool = False) -> ast.AnnotationValue:
        token = self.cursor.token
        span = Span(token.start, token.end)
        if token.kind == STRING:
            self.cursor.take()
            try:
                return ast.AnnotationValue("string", decode_string(token), span)
            except Fault as fault:
                raise _coded(fault, "S2") from None
        if token.kind in (DIGITS, DECIMAL):
            self.cursor.take()
            return ast.AnnotationValue("number", token.text, span)
        if token.text in ("true", "false"):
            self.cursor.take()
            return ast.AnnotationValue("bool", token.text, span)
        if allow_name and token.kind == LOWER:
            self.cursor.take()
            return ast.AnnotationValue("name", token.text, span)
        raise self.cursor.fault("a string, a number, true or false" + (", or a name" if allow_name else ""))


def _coded(fault: Fault, code: str) -> Fault:
    return Fault(fault.message, fault.span, code=code, hint=fault.hint)


def _at_declaration(cursor: Cursor) -> bool:
    word, following = cursor.token.text, cursor.ahead()
    return word in _KEYWORDS and (following.kind == UPPER or (word == "merge" and following.text == "{"))


def _at_member(cursor: Cursor) -> bool:
    """Return True if parsing of a body can resume here: at its end, a rule, or a property at the start of a line."""
    token = cursor.token
    if token.text == "}" or _at_declaration(cursor):
        return True
    return cursor.starts_line() and (token.text == "@" or (token.kind == LOWER and cursor.ahead().text == ":"))
