"""GraphML text → its nodes and edges, one at a time.

The parser is expat, the one below `xml.etree.ElementTree.iterparse`: it reads in bounded memory and knows the line of
each element. Entities are not expanded and no other file is read: a file that declares an entity is refused. Elements
without a counterpart (ports, hyperedges, nested graphs) are reported with the node or edge that has them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NoReturn
from xml.parsers import expat

from omnigraph.checkpoints import checked
from omnigraph.engine import tuning
from omnigraph.engine.graph_files.xml_ids import NAMESPACE
from omnigraph.engine.ingest.csv_text import record_too_large
from omnigraph.errors import InputError

_SEPARATOR = " "
"""Between the namespace and the local name of an element."""
_DEPTH_MAX = 100
_LABELS = ("NodeLabel", "EdgeLabel")
"""Elements of yEd with the text of a node or edge."""
LABEL = "label"
"""The name of the text that yEd draws."""
_UNSUPPORTED = {"port": "a <port>", "graph": "a nested <graph>", "hyperedge": "a <hyperedge>"}


@dataclass
class Key:
    """A declared attribute."""

    id: str
    name: str
    domain: str
    type: str
    default: str | None = None
    is_type: bool = False
    """True if the values are the names of types, in a file of an export."""
    own_type: str | None = None
    """The type of the property, in a file of an export."""


@dataclass
class Element:
    """A node or edge, with its values by key."""

    kind: str
    line: int
    attributes: dict[str, str]
    values: dict[str, str] = field(default_factory=dict)
    encoded: set[str] = field(default_factory=set)
    """Keys whose values are JSON texts."""
    label: str | None = None
    """The text that yEd draws."""
    unsupported: str | None = None
    """An element inside that has no counterpart."""
    is_directed: bool = True


class GraphmlParser:
    """Parses a file; `keys` and `has_typed_ids` are known when the first node or edge is returned."""

    def __init__(self, source: str) -> None:
        self.keys: dict[str, Key] = {}
        self.has_typed_ids = False
        self._source = source
        self._done: deque[Element] = deque()
        self._open: list[str] = []
        self._skipped: int | None = None
        self._element: Element | None = None
        self._key: Key | None = None
        self._data_key: str | None = None
        self._text: list[str] | None = None
        self._size = 0
        self._directed = True
        self._parser = expat.ParserCreate(namespace_separator=_SEPARATOR)
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._characters
        self._parser.EntityDeclHandler = self._refuse_entity
        self._parser.SkippedEntityHandler = self._refuse_entity
        self._parser.ExternalEntityRefHandler = self._refuse_entity

    def parse(self, chunks: Iterable[bytes]) -> Iterator[Element]:
        """Yield the nodes and edges of a text."""
        for chunk in checked(chunks):
            self._feed(chunk)
            while self._done:
                yield self._done.popleft()
        self._feed(b"", is_last=True)
        while self._done:
            yield self._done.popleft()

    def _feed(self, chunk: bytes, *, is_last: bool = False) -> None:
        try:
            self._parser.Parse(chunk, is_last)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code) or "not well-formed"
            raise self._unreadable(f"is not valid XML: {reason}, line {error.lineno}") from None
        except (LookupError, ValueError) as error:
            # Raised for the encoding that the file names, and by no handler.
            raise self._unreadable(f"is not valid XML: {error}", hint="save it as UTF-8") from None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        local = name.rpartition(_SEPARATOR)[2]
        self._open.append(local)
        if len(self._open) > _DEPTH_MAX:
            raise self._unreadable(f"has elements that are nested more than {_DEPTH_MAX} deep")
        if len(self._open) == 1:
            if local != "graphml":
                raise self._unreadable(f"is not GraphML: its root is <{local}>")
            self.has_typed_ids = attributes.get(f"{NAMESPACE}{_SEPARATOR}ids") == "typed"
        if self._skipped is not None or self._data_key is not None:
            self._start_inside(local)
        elif local == "key":
            self._key = _key(attributes)
            self.keys[self._key.id] = self._key
        elif local == "default" and self._key is not None:
            self._text = []
        elif local == "data" and self._element is not None:
            self._data_key = attributes.get("key", "")
            self._text = []
            if attributes.get(f"{NAMESPACE}{_SEPARATOR}encoding") == "json":
                self._element.encoded.add(self._data_key)
        elif local in ("node", "edge", "hyperedge"):
            self._begin(local, attributes)
        elif local in _UNSUPPORTED and self._element is not None:
            self._element.unsupported = _UNSUPPORTED[local]
            self._skipped = len(self._open)
        elif local == "graph":
            self._directed = attributes.get("edgedefault") != "undirected"

    def _start_inside(self, local: str) -> None:
        """Begin an element inside a value, such as a shape of yEd, or inside an element that is skipped."""
        if self._data_key is not None:
            self._keep_label(self._open[-2])
            self._text = [] if local in _LABELS else None

    def _begin(self, local: str, attributes: dict[str, str]) -> None:
        self._element = Element(local, self._parser.CurrentLineNumber, attributes)
        self._size = sum(map(len, attributes.values()))
        given = attributes.get("directed")
        self._element.is_directed = self._directed if given is None else given.strip().lower() in ("true", "1")
        if local == "hyperedge":
            self._element.unsupported = _UNSUPPORTED[local]
            self._skipped = len(self._open)
        if "sourceport" in attributes or "targetport" in attributes:
            self._element.unsupported = _UNSUPPORTED["port"]

    def _characters(self, text: str) -> None:
        if self._text is not None:
            self._size += len(text)
            if self._size > tuning.current.record_bytes_max:
                raise record_too_large(self._source, self._parser.CurrentLineNumber)
            self._text.append(text)

    def _end(self, name: str) -> None:
        local = name.rpartition(_SEPARATOR)[2]
        depth = len(self._open)
        self._open.pop()
        if self._data_key is not None:
            self._end_inside(local)
        elif self._skipped is not None:
            if depth == self._skipped:
                self._skipped = None
                if local == "hyperedge":
                    self._finish()
        elif local == "default" and self._key is not None:
            self._key.default, self._text = "".join(self._text or ()), None
        elif local == "key":
            self._key = None
        elif local in ("node", "edge") and self._element is not None:
            self._finish()

    def _end_inside(self, local: str) -> None:
        """End a value, or an element inside it."""
        element = self._element
        assert element is not None, "a value is inside a node or edge"
        assert self._data_key is not None, "a value has a key"
        if local == "data" and self._open[-1] == element.kind:
            if self._text is not None:
                element.values[self._data_key] = "".join(self._text)
            self._data_key = self._text = None
        else:
            self._keep_label(local)
            self._text = None

    def _keep_label(self, local: str) -> None:
        """Keep the text of a label of yEd, which ends with the label or at the first element inside it."""
        if local in _LABELS and self._text is not None and self._element is not None:
            self._element.label = self._element.label or "".join(self._text).strip() or None

    def _finish(self) -> None:
        assert self._element is not None, "an element ends that has begun"
        self._done.append(self._element)
        self._element = None
        self._size = 0

    def _refuse_entity(self, name: str, *_: Any) -> NoReturn:
        raise self._unreadable(
            f"declares or uses the entity '{str(name)[:80]}', line {self._parser.CurrentLineNumber}",
            hint="entities are not expanded and no other file is read; write the text itself",
        )

    def _unreadable(self, message: str, hint: str | None = None) -> InputError:
        return InputError(f"'{self._source}' {message}", code="unreadable_file", hint=hint)


def _key(attributes: dict[str, str]) -> Key:
    id_ = attributes.get("id", "")
    return Key(
        id_,
        attributes.get("attr.name", id_),
        attributes.get("for", "all"),
        attributes.get("attr.type", "string").lower(),
        is_type=attributes.get(f"{NAMESPACE}{_SEPARATOR}role") == "type",
        own_type=attributes.get(f"{NAMESPACE}{_SEPARATOR}type"),
    )
