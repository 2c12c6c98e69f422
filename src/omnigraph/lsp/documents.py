"""Texts that an editor shows, and the schema that belongs to each.

The schema of a query file is that of the graph of the nearest `omnigraph.yaml`, if it has one or `cli.graph` names
one; else that of the only `*.pg` beside the file; else that of the comment `// schema: path`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from omnigraph.config import FILE_NAME, Config, read_config
from omnigraph.errors import CompileError, OmniGraphError
from omnigraph.lang.utf16 import LineIndex
from omnigraph.query.editor import Language
from omnigraph.query.symbols import Symbol, symbol_at, symbols_of
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import compile_schema
from omnigraph.text_files import read_text_file

SCHEMA_COPY = "_schema.pg"
"""The readable copy of the schema in the folder of a graph."""
EMPTY = Catalog({}, {}, {})
_COMMENT = re.compile(r"^\s*//\s*schema:\s*(\S+)", re.MULTILINE)


@dataclass(frozen=True)
class Schema:
    """A schema, the file that shows it, and the graph that it is from."""

    text: str
    path: Path | None = None
    graph: str | None = None

    @cached_property
    def catalog(self) -> Catalog | None:
        """The catalog; None if the schema has errors."""
        try:
            return compile_schema(self.text)
        except CompileError:
            return None


@dataclass(frozen=True)
class Document:
    """A text, its path and its language."""

    path: Path
    text: str
    schema: Schema | None

    @property
    def language(self) -> Language:
        """The language, by the ending of the path."""
        return "pg" if self.path.suffix == ".pg" else "gq"

    @property
    def catalog(self) -> Catalog:
        """The types that the text can use; none without a valid schema."""
        found = None if self.schema is None else self.schema.catalog
        return EMPTY if found is None else found

    @cached_property
    def lines(self) -> LineIndex:
        """Lines and UTF-16 columns of the text."""
        return LineIndex(self.text)

    @cached_property
    def symbols(self) -> list[Symbol]:
        """The names of the text."""
        return symbols_of(self.text, self.language, self.catalog)

    def symbol_at(self, offset: int) -> Symbol | None:
        """Return the name at an offset."""
        return symbol_at(self.symbols, offset)


class Documents:
    """The texts of a session: open ones as they are shown, others as they are stored."""

    def __init__(self) -> None:
        self.open: dict[Path, str] = {}

    def get(self, path: Path) -> Document:
        """Return a document; a file that cannot be read is empty."""
        text = self._text(path) or ""
        own = path.suffix == ".pg"
        return Document(path, text, Schema(text, path) if own else self.schema_of(path, text))

    def schema_of(self, path: Path, text: str) -> Schema | None:
        """Return the schema of a query text; None if there is none."""
        for folder in path.parents:
            if (folder / FILE_NAME).is_file():
                found = self._of_config(folder / FILE_NAME)
                if found is not None:
                    return found
                break
        beside = sorted(path.parent.glob("*.pg"))
        if len(beside) == 1:
            return self._of_file(beside[0])
        named = _COMMENT.search(text)
        return None if named is None else self._of_file((path.parent / named[1]).resolve())

    def related(self, schema: Path) -> Iterator[Document]:
        """Yield the query files in the folder of a schema and the open ones that use it."""
        paths = {*schema.parent.glob("*.gq"), *(path for path in self.open if path.suffix == ".gq")}
        for path in sorted(paths):
            document = self.get(path)
            if document.schema is not None and document.schema.path == schema:
                yield document

    def _of_config(self, path: Path) -> Schema | None:
        """Return the schema of the graph that a configuration names."""
        try:
            config = read_config(path)
        except OmniGraphError:
            return None
        name = _graph_name(config)
        if name is None:
            return None
        address = config.graphs[name]
        folder = (path.parent / address.removeprefix("file://")).resolve()
        copy = folder / SCHEMA_COPY
        text = self._text(copy)
        if text is not None:
            return Schema(text, copy, str(folder))
        return _of_graph(address) if "://" in address else None

    def _of_file(self, path: Path) -> Schema | None:
        text = self._text(path)
        return None if text is None else Schema(text, path)

    def _text(self, path: Path) -> str | None:
        if path in self.open:
            return self.open[path]
        try:
            return read_text_file(str(path))
        except OmniGraphError:
            return None


def _graph_name(config: Config) -> str | None:
    chosen: Any = config.values.get("cli.graph")
    if chosen in config.graphs:
        return str(chosen)
    return next(iter(config.graphs)) if len(config.graphs) == 1 else None


def _of_graph(address: str) -> Schema | None:
    """Return the schema of a graph that is not on this machine; None if it cannot be read."""
    from omnigraph.graph_open import open as open_graph  # noqa: PLC0415 (it imports Lance)

    try:
        return Schema(str(open_graph(address, read_only=True).schema), None, address)
    except OmniGraphError:
        return None
