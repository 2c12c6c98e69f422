"""After a purge, every read at every old commit equals that of a graph that never contained the subject."""

from __future__ import annotations

import pytest

import omnigraph as og
from support.purge_histories import PEOPLE, SUBJECT, Twins, changes_between, history_of, state_of


def check(tmp_path, seed: int, steps: int) -> None:
    twins = Twins.create(tmp_path, seed)
    for _ in range(steps):
        twins.step()
    twins.whole.load([{"type": "Person", "data": {"name": SUBJECT}}], mode="merge")
    twins.without.load([{"type": "Place", "data": {"name": "end"}}], mode="merge")
    before = [(c.id, c.parents, c.actor, c.created_us, c.message) for c in twins.whole.commits()]
    certificate = twins.whole.purge("Person", [SUBJECT], edges=True, reason="test")
    assert certificate.rows["node:Person"] == 1
    reopened = og.open(tmp_path / "whole")
    expected = [state_of(twins.without, without) for _, without in twins.commits]
    for graph in (twins.whole, reopened):
        assert [(c.id, c.parents, c.actor, c.created_us, c.message) for c in graph.commits()] == before
        for (whole, _), state in zip(twins.commits, expected, strict=True):
            assert state_of(graph, whole) == state
    for (a, b), (c, d) in zip(twins.commits, twins.commits[1:], strict=False):
        assert changes_between(reopened, a, c) == changes_between(twins.without, b, d)
    for name in PEOPLE:
        assert history_of(reopened, name) == history_of(twins.without, name)
    assert reopened.verify(deep=True) == []
    assert reopened.purge_verify([SUBJECT]).is_clean
    reopened.load([{"type": "Person", "data": {"name": "new", "age": 1}}], mode="merge")
    reopened.optimize()
    assert reopened.get("Person", "new")["age"] == 1
    assert reopened.verify(deep=True) == []


@pytest.mark.parametrize("seed", range(2))
def test_purged_graph_equals_one_without_the_subject(seed, tmp_path):
    check(tmp_path, seed, steps=10)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 130))
def test_purged_graph_equals_one_without_the_subject_long(seed, tmp_path):
    check(tmp_path, seed, steps=40)
