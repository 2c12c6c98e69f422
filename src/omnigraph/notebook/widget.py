"""The widget of a notebook: the picture, list and table of a document, and answers to its questions.

Python answers from the graph: no server, no port, no token. Questions are messages `{number, ask, …}`; each answer is
`{number, answer}` or `{number, problem}`. The widget only reads. Without `anywidget`, and where notebooks are rendered
without Python, the static HTML form is shown, which every display carries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Protocol, cast

from omnigraph.engine.result.result import Result, batch_values
from omnigraph.errors import InputError, OmniGraphError
from omnigraph.notebook.document import Document, document_of
from omnigraph.operations.exploration.neighbors import NeighborPage
from omnigraph.schema.catalog import Catalog
from omnigraph.ui import STATIC
from omnigraph.versioning.feed.row_history import Blame
from omnigraph.wire.json_values import row_value

ROWS = 1_000
"""Rows of the first page, and of each further one."""
NEIGHBORS = 25
Answer = dict[str, Any]
Read = Callable[[str], Any]


class ShownGraph(Protocol):
    """What a widget asks of a graph; `Graph` has more parameters."""

    def query(
        self, query: str, /, params: Mapping[str, Any] | None = None, *, branch: str | None = None, at: Any = None
    ) -> Result:
        """Run a query."""

    def get(self, type_name: str, id: str, *, branch: str | None = None, at: Any = None) -> dict[str, Any] | None:
        """Return a row."""

    def neighbors(
        self,
        type_name: str,
        id: str,
        edge: str | None = None,
        direction: str | None = None,
        *,
        limit: int = 100,
        after: str | None = None,
        branch: str | None = None,
        at: Any = None,
    ) -> NeighborPage:
        """Return one page of neighbours."""

    def blame(self, type_name: str, id: str, *, branch: str | None = None, at: Any = None) -> list[Blame]:
        """Return the last commit of each property."""

    def catalog(self, branch: str | None = None, at: Any = None) -> Catalog:
        """Return the types."""

    def snapshot(self, branch: str | None = None, at: Any = None) -> Any:
        """Return a point of history."""


class Answers:
    """Answers the questions of one widget.

    `graph` answers about nodes; `read` runs what is shown again at another point of history. Without them, the widget
    does not offer these questions.
    """

    def __init__(
        self, shown: Any, graph: ShownGraph | None = None, read: Read | None = None, at: str | None = None
    ) -> None:
        self._shown = shown
        self._graph = graph
        self._read = read
        self._at = at
        self._questions: dict[str, Callable[[Mapping[str, Any]], Answer]] = {}
        if isinstance(shown, Result):
            self._questions["page"] = self._page
        if graph is not None:
            self._questions |= {"expand": self._expand, "why": self._why}
        if read is not None:
            self._questions["as_of"] = self._as_of

    def document(self) -> Document:
        """Return what is shown first."""
        return {**document_of(self._shown, ROWS), "asks": sorted(self._questions)}

    def answer(self, question: Mapping[str, Any]) -> Answer:
        """Return the answer to a message; a refused question is a problem, not an error of the kernel."""
        number = question.get("number")
        try:
            ask = self._questions.get(str(question.get("ask")))
            if ask is None:
                raise InputError(f"the widget does not answer '{question.get('ask')}'")
            return {"number": number, "answer": ask(question)}
        except OmniGraphError as error:
            return {"number": number, "problem": {"error": str(error), "code": error.code}}

    def _expand(self, question: Mapping[str, Any]) -> Answer:
        assert self._graph is not None
        type_name, id_ = _node(question)
        after = question.get("after")
        cursor = str(after) if after is not None else None
        return self._graph.neighbors(type_name, id_, limit=NEIGHBORS, after=cursor, at=self._at).to_json(row_value)

    def _why(self, question: Mapping[str, Any]) -> Answer:
        assert self._graph is not None
        type_name, id_ = _node(question)
        return {"blame": [each.to_json(row_value) for each in self._graph.blame(type_name, id_, at=self._at)]}

    def _page(self, question: Mapping[str, Any]) -> Answer:
        start = question.get("start")
        if not isinstance(start, int) or start < 0:
            raise InputError("'start' is the number of the first row")
        seen = 0
        for batch in cast(Result, self._shown).batches(ROWS):
            if seen + batch.num_rows > start:
                values = batch_values(batch.slice(start - seen))
                return {"rows": [list(row) for row in zip(*values, strict=True)]}
            seen += batch.num_rows
        return {"rows": []}

    def _as_of(self, question: Mapping[str, Any]) -> Answer:
        assert self._read is not None
        at = str(question.get("at") or "")
        self._shown = self._read(at)
        self._at = at or None
        return self.document()


def _node(question: Mapping[str, Any]) -> tuple[str, str]:
    return str(question.get("type")), str(question.get("id"))


class StaticDisplay:
    """What is shown without `anywidget`: the static form."""

    selected: tuple[()] = ()

    def __init__(self, shown: Any) -> None:
        self._shown = shown

    def _repr_html_(self) -> str:
        return static_html(self._shown)


def static_html(shown: Any) -> str:
    """Return the form without scripts."""
    return cast(str, shown._repr_html_())  # the protocol of notebooks


def show(answers: Answers, shown: Any) -> Any:
    """Return a widget, or the static form if `anywidget` is not installed (extra `notebook`)."""
    try:
        import_module("anywidget")
    except ImportError:
        return StaticDisplay(shown)
    from omnigraph.notebook.any_widget import GraphWidget  # noqa: PLC0415

    return GraphWidget(answers, static_html(shown))


def module_text() -> str:
    """Return the module that draws the widget."""
    return (STATIC / "widget.js").read_text(encoding="utf-8")
