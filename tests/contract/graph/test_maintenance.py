"""Maintenance does the same in every form of a graph."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from support.graph_variants import Body, Variants, failure


def optimize(graph: Any) -> Any:
    graph.branch_create("o/1")
    one = graph.on("o/1")
    first = one.optimize(message="compact", idempotency_key="key-of-o1")
    again = graph.optimize("o/1", idempotency_key="key-of-o1")
    indexed = one.ensure_indices(message="index")
    errors = [failure(lambda: graph.optimize("nowhere")), failure(lambda: graph.ensure_indices("nowhere"))]
    return [first, again, one.optimize(), indexed, errors, one.commits(limit=2)]


def cleanup(graph: Any) -> Any:
    kept = graph.cleanup(keep=1_000, confirm=True, message="nothing")
    errors = [failure(graph.cleanup), failure(lambda: graph.cleanup(keep=-1))]
    shown = [[each.table_key, each.folder, each.error] for each in graph.cleanup(older_than=timedelta(seconds=0.5))]
    return [kept, shown, errors]


def checks(graph: Any) -> Any:
    return [graph.verify(), graph.verify(deep=True), graph.recover()]


BODIES = [optimize, cleanup, checks]


@pytest.mark.parametrize("body", BODIES, ids=lambda body: body.__name__)
def test_every_form_does_the_same(written: Variants, body: Body) -> None:
    written.check(body)
