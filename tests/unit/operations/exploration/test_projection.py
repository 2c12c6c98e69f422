"""Projection of vectors to two dimensions."""

from __future__ import annotations

import numpy as np
import pytest

import omnigraph as og
from omnigraph.errors import InputError, TypeNotFound
from omnigraph.operations.exploration import projection
from omnigraph.operations.exploration.projection import principal_axes


def test_the_axes_have_the_largest_variance():
    random = np.random.default_rng(7)
    spread = random.normal(size=(500, 3)) * [10, 3, 0.1]
    turned = spread @ np.linalg.qr(random.normal(size=(3, 3)))[0] + [5, 5, 5]
    points = principal_axes(turned)
    assert points.std(axis=0) == pytest.approx([10, 3], rel=0.15)
    assert np.corrcoef(points.T)[0, 1] == pytest.approx(0, abs=1e-9)
    assert (principal_axes(turned) == points).all()
    single = principal_axes(np.array([[1.0], [3.0]]))
    assert single.tolist() == [[-1, 0], [1, 0]]


def test_nodes_without_a_vector_are_left_out(tmp_path, monkeypatch):
    schema = "node P { name: String @key\n v: Vector(2)?\n t: String? }"
    graph = og.init(tmp_path / "g", schema, sync=False, environ={})
    assert graph.projection("P", "v").num_rows == 0
    people = [{"name": f"p{at}", "v": [at, -at] if at != 3 else None} for at in range(9)]
    graph.load([{"type": "P", "data": person} for person in people], mode="merge")
    found = graph.projection("P", "v")
    assert found.column_names == ["id", "x", "y"]
    assert found["id"].to_pylist() == [f"p{at}" for at in range(9) if at != 3]
    assert graph.projection("P", "v") is found
    with pytest.raises(InputError, match="type 'P' has no vector 'name'") as caught:
        graph.projection("P", "name")
    assert caught.value.hint == "its vectors are: v"
    with pytest.raises(TypeNotFound):
        graph.projection("Q", "v")
    monkeypatch.setattr(projection, "ROWS_MAX", 3)
    graph.mutate('insert P { name: "new" }')
    assert graph.projection("P", "v")["id"].to_pylist() == ["p0", "p4", "p8"]
