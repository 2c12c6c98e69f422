"""The commit graph of a log."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omnigraph.cli.io.commit_graph import graph_lines


def drawn(*commits: tuple[str, str]) -> list[str]:
    return [f"{prefix} {id_ or ''}".rstrip() for prefix, id_ in graph_lines((c, list(p)) for c, p in commits)]


def test_linear_history():
    assert drawn(("b", "a"), ("a", "")) == ["* b", "* a"]


def test_fork():
    assert drawn(("c", "a"), ("b", "a"), ("a", "")) == ["* c", "| * b", "|/", "* a"]


def test_merge():
    assert drawn(("d", "cb"), ("c", "a"), ("b", "a"), ("a", "")) == ["* d", "|\\", "* | c", "| * b", "|/", "* a"]


def test_lane_joins_across_another():
    assert drawn(("e", "a"), ("d", "b"), ("c", "a"), ("b", "a"), ("a", "")) == [
        "* e",
        "| * d",
        "| | * c",
        "| * | b",
        "|/ /",
        "|/",
        "* a",
    ]


def test_unrelated_histories():
    assert drawn(("d", ""), ("c", "a"), ("a", "")) == ["* d", "* c", "* a"]
    assert drawn(("d", "b"), ("c", "a"), ("b", ""), ("a", "")) == ["* d", "| * c", "* | b", " /", "* a"]


@given(st.lists(st.lists(st.integers(0, 30), max_size=2, unique=True), max_size=30))
def test_every_commit_is_drawn_once_in_order(parents):
    """Commit `n` has parents below `n`; the newest comes first."""
    commits = [(str(n), [str(p) for p in found if p < n]) for n, found in enumerate(parents)][::-1]
    lines = list(graph_lines(commits))
    assert [id_ for _, id_ in lines if id_ is not None] == [id_ for id_, _ in commits]
    assert all((prefix.count("*") == 1) == (id_ is not None) for prefix, id_ in lines)
