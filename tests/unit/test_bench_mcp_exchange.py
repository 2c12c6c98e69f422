"""The benchmark of MCP exchanges measures tools and plain routes on a running server."""

from __future__ import annotations

from bench import mcp_exchange


def test_every_exchange_is_measured():
    found = mcp_exchange.figures(calls=2)
    assert len(found) == 12
    assert min(value for name, value in found.items() if name.endswith(", ms")) > 0
