"""Answers of route functions: what a handler returns, before its encoding for the wire."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.engine.result.result import Result
from omnigraph.wire.document import Document
from omnigraph.wire.queries import TargetDocument


@dataclass(frozen=True)
class Answer:
    """A JSON document with a status, the commit that it shows or made, and further headers."""

    document: Document
    status: int = 200
    commit: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Rows:
    """The rows of a query; `Accept` selects JSON, NDJSON, Arrow or CSV."""

    result: Result
    target: TargetDocument


@dataclass(frozen=True)
class Content:
    """A complete body that is not a document, such as a page."""

    body: bytes
    media_type: str
    """The media type; empty if there is no body."""
    headers: Mapping[str, str] = field(default_factory=dict)
    status: int = 200
    commit: str | None = None


Chunk = bytes | memoryview
"""A part of a body."""


@dataclass(frozen=True)
class Chunks:
    """A body that is produced while it is sent. The iterator is closed at the end and on a disconnect.

    Everything that can fail early fails before the first chunk; a later failure cuts the connection.
    """

    chunks: Iterator[Chunk]
    media_type: str
    status: int = 200
    commit: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Background:
    """Work that continues after the answer 202, as an operation; its document is the result of the operation."""

    work: Callable[[], Document]


@dataclass(frozen=True)
class Events:
    """An event stream: `poll` returns the next events as bytes, empty if nothing happened, None at the end."""

    poll: Callable[[], bytes | None]
    commit: str | None = None


Reply = Document | Answer | Rows | Content | Chunks | Events | Background
"""The return type of a route function."""
