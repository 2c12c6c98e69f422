"""HTML forms of objects, for notebooks.

Classes of lower layers describe themselves as a view, a plain dataclass, and return `html_of(view)` from `_repr_html_`.
`omnigraph.notebook` registers the function that draws each class of view. It is imported when the first view is drawn.
"""

from __future__ import annotations

from functools import singledispatch
from importlib import import_module
from pathlib import Path
from typing import Any

_DRAWING = "omnigraph.notebook"
"""The package that draws views, imported by name: the layers below it do not depend on it."""


@singledispatch
def html_of(view: object) -> str:
    """Return the HTML form of a view."""
    import_module(_DRAWING)
    draw = html_of.dispatch(type(view))
    if draw is html_of.dispatch(object):
        raise NotImplementedError(f"'{_DRAWING}' does not draw {type(view).__name__}")
    return draw(view)


def show(shown: object) -> Any:
    """Return the widget of a result, a difference or a schema; its static form without `anywidget`."""
    widget = import_module(f"{_DRAWING}.widget")
    return widget.show(widget.Answers(shown), shown)


def save(shown: object, path: str | Path) -> Path:
    """Write a result, a difference or a schema as one HTML file that loads nothing."""
    written: Path = import_module(f"{_DRAWING}.saved_page").save(shown, path)
    return written


def show_graph(graph: object, what: object, *options: object) -> Any:
    """Return the widget of a part of a graph; see `Graph.show`."""
    return import_module(f"{_DRAWING}.graph_view").show_graph(graph, what, *options)
