"""Inputs of the services of editors."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from omnigraph.wire.requests.exploration import Offsets
from omnigraph.wire.requests.request import Branch, Request

TextLanguage = Annotated[
    Literal["gq", "pg"], Meta(description="The language of the text: queries (`gq`) or a schema (`pg`).")
]
EditorText = Annotated[str, Meta(max_length=1_000_000, description="The text of the editor.")]


class FormatRequest(Request, kw_only=True):
    """A text to format."""

    text: EditorText
    language: TextLanguage = "gq"


class EditorRequest(FormatRequest, kw_only=True):
    """A position in a text."""

    offset: Annotated[int, Meta(ge=0, description="The position in the text, in the unit of `offsets`.")]
    offsets: Offsets = "unicode"
    branch: Branch | None = None
