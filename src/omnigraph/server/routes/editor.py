"""Services of editors: completion, description and format of texts."""

from __future__ import annotations

from omnigraph.errors import InputError
from omnigraph.lang.utf16 import from_utf16, utf16_length
from omnigraph.query.editor import format_text
from omnigraph.server.caller import Caller
from omnigraph.wire.editor import CompletionDocument, FormatDocument, HoverDocument, HoverWordDocument
from omnigraph.wire.requests.editor import EditorRequest, FormatRequest


def complete(caller: Caller, body: EditorRequest) -> CompletionDocument:
    """Return the words that can stand at a position of a text."""
    found = caller.graph.complete(body.text, _offset(body), language=body.language, branch=body.branch)
    document = CompletionDocument.of(found.to_json())
    document.start, document.end = _shown(body, found.start), _shown(body, found.end)
    return document


def hover(caller: Caller, body: EditorRequest) -> HoverDocument:
    """Return the description of the word at a position of a text."""
    found = caller.graph.hover(body.text, _offset(body), language=body.language, branch=body.branch)
    if found is None:
        return HoverDocument(None)
    word = HoverWordDocument.of(found.to_json())
    word.start, word.end = _shown(body, found.start), _shown(body, found.end)
    return HoverDocument(word)


def format_source(caller: Caller, body: FormatRequest) -> FormatDocument:
    """Return a text in the standard layout."""
    formatted = format_text(body.text, body.language)
    return FormatDocument(formatted, formatted != body.text)


def _offset(body: EditorRequest) -> int:
    """Return the position of a request in characters."""
    if body.offsets == "unicode":
        return body.offset
    if body.offset > utf16_length(body.text):
        raise InputError(f"the offset {body.offset} lies behind the text", code="bad_offset")
    return from_utf16(body.text, body.offset)


def _shown(body: EditorRequest, offset: int) -> int:
    """Return a position in characters in the unit of the request."""
    return offset if body.offsets == "unicode" else utf16_length(body.text[:offset])
