"""Documents of the services of editors."""

from __future__ import annotations

from typing import Literal

from omnigraph.wire.document import Document

WordKindName = Literal["keyword", "type", "edge", "property", "variable", "function", "scalar", "annotation"]


class CandidateDocument(Document):
    """A word that can be written at a position; `type` is the type, the ends of an edge, or the usage of a function."""

    text: str
    kind: WordKindName
    type: str | None
    description: str | None


class CompletionDocument(Document):
    """The range of the incomplete word before a position, and the words that can replace it."""

    start: int
    end: int
    candidates: list[CandidateDocument]


class HoverWordDocument(Document):
    """The word at a position, as it is declared, and its description."""

    start: int
    end: int
    kind: WordKindName
    title: str
    description: str | None


class HoverDocument(Document):
    """The description of the word at a position; null if there is nothing to say."""

    hover: HoverWordDocument | None


class FormatDocument(Document):
    """A text in the standard layout."""

    text: str
    changed: bool
