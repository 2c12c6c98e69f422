"""Stored queries of a server: reads that the server knows by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.client.call import Call
from omnigraph.client.messages import ARROW, Request, json_body, path_of
from omnigraph.client.query_texts import sent_params
from omnigraph.client.rows import result_of
from omnigraph.client.transport.address import Settings
from omnigraph.client.transport.sync_loop import SyncLoop
from omnigraph.engine.result.result import Result
from omnigraph.wire.requests.queries import InvokeRequest


def invoke_read(settings: Settings, name: str, params: Mapping[str, Any], branch: str) -> Result:
    """Run a stored read and return its rows; the server refuses a stored mutation."""
    loop = SyncLoop(settings)
    try:
        return loop.run(_invoke(name, params, branch))
    finally:
        loop.close()


def _invoke(name: str, params: Mapping[str, Any], branch: str) -> Call[Result]:
    input = InvokeRequest(params=sent_params(params), branch=branch, expect_mutation=False)
    request = Request(method="POST", path=path_of("queries", name), body=json_body(input), accept=ARROW)
    # The answer is read whole, so that its rows are never requested again.
    return result_of((yield request), lambda _: request)
