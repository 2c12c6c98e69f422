"""Answers of the language server protocol. Positions are lines and UTF-16 columns, both from 0."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lsprotocol import types as lsp

from omnigraph.errors import Diagnostic, InputError, OmniGraphError, ParseError
from omnigraph.lsp.documents import Document, Documents, Schema
from omnigraph.query.editor import complete_text, format_text, hover_text, lint_text
from omnigraph.query.symbols import DECLARATIONS, Symbol
from omnigraph.query.syntax.parser import parse_queries

RUN, EXPLAIN = "omnigraph.run", "omnigraph.explain"
_SUGGESTION = re.compile(r"did you mean '([^']+)'\?")
_REPLACEMENT = re.compile(r"\nhint: write '?([^'…\n]+)'?\Z")
_CALL_OF_TEXT = re.compile(r'\w+\((".*")\)')
_KINDS = {
    "keyword": lsp.CompletionItemKind.Keyword,
    "type": lsp.CompletionItemKind.Class,
    "edge": lsp.CompletionItemKind.Reference,
    "property": lsp.CompletionItemKind.Property,
    "variable": lsp.CompletionItemKind.Variable,
    "function": lsp.CompletionItemKind.Function,
    "scalar": lsp.CompletionItemKind.TypeParameter,
    "annotation": lsp.CompletionItemKind.Property,
}
_SYMBOLS = {
    "query": lsp.SymbolKind.Function,
    "type": lsp.SymbolKind.Class,
    "property": lsp.SymbolKind.Property,
}
_SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "info": lsp.DiagnosticSeverity.Information,
}
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


def range_of(document: Document, start: int, end: int) -> lsp.Range:
    """Return a range of characters as lines and columns."""
    return lsp.Range(*(lsp.Position(*document.lines.position(at)) for at in (start, end)))


def offset_of(document: Document, position: lsp.Position) -> int:
    """Return the offset in characters of a position."""
    return document.lines.offset(position.line, position.character)


def diagnostics(document: Document) -> list[lsp.Diagnostic]:
    """Return the errors and warnings of a text; without a schema, the syntax errors of queries."""
    if document.language == "gq" and (document.schema is None or document.schema.catalog is None):
        try:
            parse_queries(document.text, document.path.name)
        except ParseError as error:
            return [_diagnostic(document, each) for each in error.diagnostics]
        return []
    report = lint_text(
        document.text, document.language, document.catalog, query_path=document.path.name, schema_source={}
    )
    found = [_diagnostic(document, each) for result in report.results for each in result.diagnostics]
    definitions = {each.name: each for each in document.symbols if each.kind == "query" and each.is_definition}
    for result in report.results:
        at = definitions.get(result.name)
        found += (_note(document, at, "warning", text, None) for text in result.warnings)
    for finding in report.findings:
        found += (_diagnostic(document, each) for each in finding.diagnostics)
        if finding.diagnostics:
            continue
        if document.language == "pg":
            at = next((each for each in document.symbols if each.name == finding.type_name), None)
            found.append(_note(document, at, finding.severity, finding.message, finding.code))
        elif finding.type_name is None:
            at = definitions.get(finding.query_names[0])
            found.append(_note(document, at, finding.severity, finding.message, finding.code))
    return found


def _diagnostic(document: Document, error: Diagnostic) -> lsp.Diagnostic:
    stored = document.text.encode("utf-8", "surrogatepass")
    start, end = (len(stored[:at].decode("utf-8", "surrogatepass")) for at in (error.start, error.end))
    hint = None if error.hint is None else str(error.hint)
    return lsp.Diagnostic(
        range_of(document, start, max(end, start)),
        error.message if hint is None else f"{error.message}\nhint: {hint}",
        severity=lsp.DiagnosticSeverity.Error,
        code=error.code,
        source="omnigraph",
    )


def _note(document: Document, at: Symbol | None, severity: str, text: str, code: str | None) -> lsp.Diagnostic:
    start, end = (0, 0) if at is None else (at.start, at.end)
    place = range_of(document, start, end)
    return lsp.Diagnostic(place, text, severity=_SEVERITIES[severity], code=code, source="omnigraph")


def completion(document: Document, offset: int) -> lsp.CompletionList:
    """Return the words that can stand at an offset."""
    found = complete_text(document.text, offset, document.language, document.catalog)
    place = range_of(document, found.start, found.end)
    items = [
        lsp.CompletionItem(
            each.text,
            kind=_KINDS[each.kind],
            detail=each.type,
            documentation=each.description,
            text_edit=lsp.TextEdit(place, each.text),
        )
        for each in found.candidates
    ]
    return lsp.CompletionList(is_incomplete=False, items=items)


def hover(document: Document, offset: int) -> lsp.Hover | None:
    """Return the description of the word at an offset."""
    found = hover_text(document.text, offset, document.language, document.catalog)
    if found is None:
        return None
    text = f"```{document.language}\n{found.title}\n```" + (f"\n\n{found.description}" if found.description else "")
    content = lsp.MarkupContent(lsp.MarkupKind.Markdown, text)
    return lsp.Hover(content, range_of(document, found.start, found.end))


def definition(documents: Documents, document: Document, offset: int) -> lsp.Location | None:
    """Return the place where the name at an offset is declared."""
    return next((place for place, symbol in _occurrences(documents, document, offset) if symbol.is_definition), None)


def references(documents: Documents, document: Document, offset: int, *, declaration: bool) -> list[lsp.Location]:
    """Return the places where the name at an offset is used."""
    found = _occurrences(documents, document, offset)
    return [place for place, symbol in found if declaration or not symbol.is_definition]


def _occurrences(documents: Documents, document: Document, offset: int) -> Iterator[tuple[lsp.Location, Symbol]]:
    """Yield the occurrences of the name at an offset: in its text, in the schema, and in the queries of the schema."""
    wanted = document.symbol_at(offset)
    if wanted is None:
        return
    for each in _affected(documents, document, wanted):
        for symbol in each.symbols:
            if symbol.is_same(wanted):
                place = range_of(each, symbol.start, symbol.end)
                yield lsp.Location(each.path.as_uri(), place), symbol


def _affected(documents: Documents, document: Document, symbol: Symbol) -> Iterator[Document]:
    """Yield the documents that can contain a name."""
    path = None if document.schema is None else document.schema.path
    if symbol.kind in ("variable", "query") or path is None:
        yield document
        return
    yield documents.get(path)
    others = {each.path: each for each in documents.related(path)}
    if document.language == "gq":
        others.setdefault(document.path, document)
    yield from others.values()


def rename(documents: Documents, document: Document, offset: int, name: str) -> lsp.WorkspaceEdit:
    """Rename a variable, or a type of a schema: with its uses in queries, and with `@rename_from`."""
    wanted = document.symbol_at(offset)
    plain = name.removeprefix("$")
    if wanted is None or wanted.kind not in ("variable", "type", "edge"):
        raise InputError("variables and types can be renamed", hint="place the cursor on one of them")
    lower = wanted.kind == "variable"
    if not _NAME.match(plain) or plain[0].isupper() == lower:
        case = "a lower-case letter" if lower else "an upper-case letter"
        raise InputError(f"'{name}' is no name of a {wanted.kind}", hint=f"it begins with {case}")
    edits: dict[str, list[lsp.TextEdit]] = {}
    for each in _affected(documents, document, wanted):
        found = [symbol for symbol in each.symbols if symbol.is_same(wanted)]
        texts = [_edit(each, symbol, plain) for symbol in found]
        if each.language == "pg":
            texts += (_hint(each, symbol) for symbol in found if symbol.is_definition and not _has_hint(each, symbol))
        if texts:
            edits[each.path.as_uri()] = texts
    return lsp.WorkspaceEdit(changes=edits)


def _edit(document: Document, symbol: Symbol, name: str) -> lsp.TextEdit:
    new = f"${name}" if symbol.kind == "variable" else name
    if symbol.kind == "edge" and document.text[symbol.start].islower():
        new = name[0].lower() + name[1:]
    return lsp.TextEdit(range_of(document, symbol.start, symbol.end), new)


def _head(document: Document, symbol: Symbol) -> str:
    """The text behind the name of a declaration, up to its body or the next declaration."""
    rest = document.text[symbol.end :]
    stop = re.search(rf"\{{|^\s*(?:{'|'.join(DECLARATIONS)})\b", rest, re.MULTILINE)
    return rest if stop is None else rest[: stop.start()]


def _has_hint(document: Document, symbol: Symbol) -> bool:
    return "@rename_from" in _head(document, symbol)


def _hint(document: Document, symbol: Symbol) -> lsp.TextEdit:
    """Return the edit that adds a rename hint: behind the name of a node type, behind the ends of an edge type."""
    ends = re.match(r"\s*:\s*\w+\s*->\s*\w+", _head(document, symbol))
    at = symbol.end + (0 if ends is None else ends.end())
    return lsp.TextEdit(range_of(document, at, at), f' @rename_from("{symbol.name}")')


def formatting(document: Document) -> list[lsp.TextEdit]:
    """Return the edit that formats a text; none if it has a syntax error or is formatted."""
    try:
        text = format_text(document.text, document.language)
    except OmniGraphError:
        return []
    return [] if text == document.text else [lsp.TextEdit(range_of(document, 0, len(document.text)), text)]


def symbols(document: Document) -> list[lsp.DocumentSymbol]:
    """Return the declarations of a text, with the properties of types."""
    found: list[tuple[lsp.DocumentSymbol, list[lsp.DocumentSymbol]]] = []
    for each in document.symbols:
        if not each.is_definition or each.kind not in _SYMBOLS:
            continue
        place, children = range_of(document, each.start, each.end), list[lsp.DocumentSymbol]()
        item = lsp.DocumentSymbol(each.name, _SYMBOLS[each.kind], place, place, children=children)
        if each.kind == "property" and found:
            found[-1][1].append(item)
        else:
            found.append((item, children))
    return [item for item, _ in found]


def code_actions(document: Document, found: list[lsp.Diagnostic]) -> list[lsp.CodeAction]:
    """Return the corrections that hints of diagnostics propose."""
    actions = []
    for each in found:
        correction = next(_corrections(document, each), None)
        if correction is not None:
            edit = lsp.WorkspaceEdit(changes={document.path.as_uri(): [correction]})
            title = f"Replace by '{correction.new_text}'"
            kind = lsp.CodeActionKind.QuickFix
            actions.append(lsp.CodeAction(title, kind=kind, diagnostics=[each], edit=edit, is_preferred=True))
    return actions


def _corrections(document: Document, found: lsp.Diagnostic) -> Iterator[lsp.TextEdit]:
    """Yield the replacements that a hint names."""
    suggestion = _SUGGESTION.search(found.message)
    if suggestion is not None:
        yield lsp.TextEdit(found.range, suggestion[1])
    written = _REPLACEMENT.search(found.message)
    if written is None:
        return
    start, end = (offset_of(document, place) for place in (found.range.start, found.range.end))
    call = _CALL_OF_TEXT.fullmatch(written[1])
    at = -1 if call is None else document.text.find(call[1], start, end)
    if call is not None and at >= 0:
        # The error marks a comparison, the hint replaces its text.
        start, end = at, at + len(call[1])
    edit = lsp.TextEdit(range_of(document, start, end), written[1])
    if _corrects(document, start, end, written[1]):
        yield edit


def _corrects(document: Document, start: int, end: int, by: str) -> bool:
    """Return True if a replacement leaves fewer errors; other hints describe a form, not the text at the place."""
    text = document.text[:start] + by + document.text[end:]
    schema = Schema(text, document.path) if document.language == "pg" else document.schema
    return len(diagnostics(Document(document.path, text, schema))) < len(diagnostics(document))


def code_lenses(document: Document) -> list[lsp.CodeLens]:
    """Return the commands above each query, where a graph is configured; one with parameters is explained only."""
    if document.language != "gq" or document.schema is None or document.schema.graph is None:
        return []
    try:
        tree = parse_queries(document.text)
    except OmniGraphError:
        return []
    lenses = []
    for query in tree.queries:
        if query.is_mutation or query.is_bare:
            continue
        place = range_of(document, query.name.span.start, query.name.span.end)
        arguments: list[Any] = [document.path.as_uri(), query.name.text]
        titles = [("Explain", EXPLAIN)] if query.params else [("Run", RUN), ("Explain", EXPLAIN)]
        lenses += [lsp.CodeLens(place, command=lsp.Command(title, name, arguments=arguments)) for title, name in titles]
    return lenses


def execute(document: Document, command: str, name: str) -> str:
    """Run or explain a query of a text on the graph of its schema; return the rows or the plan as text."""
    from omnigraph.graph_open import open as open_graph  # noqa: PLC0415 (it imports Lance)

    if document.schema is None or document.schema.graph is None:
        raise InputError("no graph is configured for this file", hint="name one under 'graphs:' in omnigraph.yaml")
    graph = open_graph(document.schema.graph, read_only=True)
    return str(graph.query(document.text, name) if command == RUN else graph.explain(document.text, name))
