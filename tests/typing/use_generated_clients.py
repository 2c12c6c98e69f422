"""Uses of generated clients, checked by mypy: graphs fit their protocols, and rows have the types of their columns."""

from __future__ import annotations

from datetime import date
from typing import assert_type

import omnigraph as og
from generated import client, client_async


def call(graph: og.Graph, remote: og.RemoteGraph) -> None:
    assert_type(client.list_(graph)[0]["big"], int | None)
    assert_type(client.list_(graph, from_="x", date=date(2000, 1, 1))[0]["p.name"], str)
    assert_type(client.people(remote, graph_=["x"])[0]["card"]["of"]["size"], float | None)
    assert_type(client.paths(graph, name="x")[0]["names"], list[str])
    assert_type(client.forget(remote, name="x").commit, str | None)


async def call_later(graph: og.AsyncGraph, remote: og.AsyncRemoteGraph) -> None:
    assert_type((await client_async.list_(graph))[0]["born"], date | None)
    assert_type((await client_async.forget(remote, name="x")).nodes, int)
