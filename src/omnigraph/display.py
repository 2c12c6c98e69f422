"""HTML forms of objects, for notebooks.

Classes of lower layers describe themselves as a view, a plain dataclass, and return `html_of(view)` from `_repr_html_`.
`omnigraph.notebook` registers the function that draws each class of view. Every `Graph` imports it.
"""

from __future__ import annotations

from functools import singledispatch


@singledispatch
def html_of(view: object) -> str:
    """Return the HTML form of a view."""
    raise NotImplementedError(f"'omnigraph.notebook' is not imported or does not draw {type(view).__name__}")
