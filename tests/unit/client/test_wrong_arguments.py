"""Arguments that cannot be sent as they are."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph as og
from omnigraph.errors import InputError

COUNT = "match { $p: Person } return { count($p) as n }"


@pytest.mark.parametrize("timeout", [float("inf"), 1e300])
def test_a_time_limit_beyond_any_time(local: og.Graph, remote: og.RemoteGraph, timeout: float) -> None:
    assert len(local.query(COUNT, timeout=timeout)) == len(remote.query(COUNT, timeout=timeout)) == 1


def test_a_time_limit_is_a_number(local: og.Graph, remote: og.RemoteGraph) -> None:
    for graph in (local, remote):
        with pytest.raises(InputError, match="NaN"):
            graph.query(COUNT, timeout=float("nan"))


def test_a_key_is_a_text(local: og.Graph, remote: og.RemoteGraph) -> None:
    key: Any = 5
    for graph in (local, remote):
        with pytest.raises(InputError, match="a str"):
            graph.mutate('insert Person { name: "key" }', idempotency_key=key)
