"""Budgets: every answer fits, pages are complete, and clipped values state their length."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.mcp.budget import Budget, Page, clip_value, fit_page
from omnigraph.wire.document import encoder

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=300),
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(max_size=20), inner, max_size=5),
    max_leaves=10,
)
ROWS = st.lists(st.dictionaries(st.text(min_size=1, max_size=10), JSON, min_size=1, max_size=4), max_size=12)


@settings(max_examples=15)
@given(ROWS, st.integers(1_000, 6_000), st.integers(1, 50))
def test_pages_fit_and_lose_nothing(rows, tokens, limit):
    budget = Budget.of_tokens(tokens)
    seen, after = 0, 0
    for _ in range(len(rows) + 1):
        start = after

        def fetch(count: int, start: int = start) -> Page[None]:
            part = rows[start : start + count]
            more = start + count < len(rows)
            return Page(part, str(start + count) if more else None, None)

        page = fit_page(budget, limit, fetch)
        assert sum(2 * len(encoder.encode(item)) for item in page.items) <= budget.bytes
        seen += len(page.items)
        if page.next is None:
            break
        assert page.items
        after = int(page.next)
        assert after == seen
    assert seen == len(rows)


def test_long_values_are_clipped_with_their_length():
    assert clip_value("x" * 5000, 1000) == "x" * 1000 + "… (5,000 characters)"
    assert clip_value({"v": [0.5] * 384}, 1000) == {"v": [0.5, 0.5, 0.5, 0.5, "… (384 numbers)"]}
    assert clip_value(["a", [1, 2]], 1000) == ["a", [1, 2]]


@pytest.mark.parametrize("tokens", [1_000, 4_000])
def test_answers_of_tools_fit(endpoint, graph, tokens):
    text = "word " * 4_000
    graph.load([{"type": "Person", "data": {"name": f"p{n}", "bio": text, "age": n}} for n in range(50)], mode="merge")
    small = endpoint(result_tokens=tokens)
    calls = [
        ("query", {"query": "match { $p: Person } return { $p } order { $p.name }"}),
        ("query", {"query": "match { $p: Person } return { $p.bio, $p.name }"}),
        ("get", {"type": "Person", "id": "p1"}),
        ("history", {"type": "Person", "id": "p1"}),
        ("diff", {"from": "1", "to": "main"}),
        ("commits", {}),
        ("schema", {}),
        ("explain_error", {"code": "T7"}),
        ("adults", {"age": 0}),
        ("query", {"query": "match { $p: Persn } return { $p.nmae }"}),
    ]
    for tool, arguments in calls:
        answer = small.call(tool, arguments)
        size = len(json.dumps(answer.structured, ensure_ascii=False).encode()) + len(answer.text.encode())
        assert size <= tokens * 3.5, (tool, size)


def test_a_cut_answer_continues(endpoint, graph):
    graph.load([{"type": "Person", "data": {"name": f"p{n:03}", "bio": "b" * 400}} for n in range(60)], mode="merge")
    query = "match { $p: Person } return { $p.name as name, $p.bio as bio } order { $p.name }"
    names, after = [], None
    for _ in range(60):
        more = {"after": after} if after else {}
        answer = endpoint(result_tokens=1_000).call("query", {"query": query, **more}).structured
        names += [row["name"] for row in answer["rows"]]
        after = answer.get("next")
        if after is None:
            break
        assert "cut to its budget" in answer["note"]
    assert names == sorted(["ana", "bo", *(f"p{n:03}" for n in range(60))])
