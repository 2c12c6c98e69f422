"""HTML forms are registered by class of view."""

from __future__ import annotations

import pytest

import omnigraph.notebook  # noqa: F401 (registers the functions that draw)
from omnigraph.display import html_of
from omnigraph.engine.result.result import ResultView
from omnigraph.engine.result.result_graph import ResultGraph
from omnigraph.versioning.compare.changeset import ChangeSetView


def test_views_are_drawn_by_their_class():
    view = ResultView(["n"], [[1, 2]], 7, [0], ResultGraph())
    assert "the first 2 of 7 rows" in html_of(view)
    assert "changes: 0; schema: add node A" in html_of(ChangeSetView("changes", (), True, ("add node A",)))


def test_unregistered_objects_are_refused():
    with pytest.raises(NotImplementedError, match="does not draw object"):
        html_of(object())
