"""Responses: a failure cuts a stream, is reported, and frees what the request holds."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.server.messages.responses import EventResponse, StreamResponse
from omnigraph.server.scheduling.execution import Execution, Stream
from support.server import ServerUnderTest


def sent_by(response: StreamResponse | EventResponse) -> tuple[bool, list[Any]]:
    """Send a response to a client that stays connected; return whether it is complete, and the messages."""
    messages: list[Any] = []

    async def send(message: Any) -> None:
        messages.append(message)

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def run() -> bool:
        try:
            return await response.send(send, {}, receive)
        finally:
            await response.close()

    return asyncio.run(run()), messages


def test_an_unexpected_failure_cuts_a_stream() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"second"
        raise ZeroDivisionError

    errors: list[BaseException] = []
    held = ExitStack()
    freed: list[bool] = []
    held.callback(freed.append, True)
    stream = Stream(Execution(reads=1), "reads", chunks())
    response = StreamResponse(200, {}, stream, b"first", Cancellation(), errors.append, held)
    complete, messages = sent_by(response)
    assert (complete, [type(error) for error in errors], freed) == (False, [ZeroDivisionError], [True])
    assert [message.get("body") for message in messages] == [None, b"first", b"second"]


def test_an_unexpected_failure_cuts_an_event_stream() -> None:
    def poll() -> bytes | None:
        raise ZeroDivisionError

    errors: list[BaseException] = []
    execution = Execution(reads=1)
    response = EventResponse({}, poll, execution, "streams", Cancellation(), errors.append, b"id: 1\n\n")
    complete, messages = sent_by(response)
    assert (complete, [type(error) for error in errors]) == (False, [ZeroDivisionError])
    assert messages[-1]["more_body"]


def test_head_of_a_stream_ends_at_once_and_states_no_length(server: ServerUnderTest) -> None:
    for path, accept in (("/changes/stream", "text/event-stream"), ("/commits", "application/x-ndjson")):
        reply = server.request("HEAD", path, headers={"Accept": accept})
        assert (reply.status, reply.body, reply.headers.get("content-length")) == (200, b"", None)
        assert reply.headers["content-type"].startswith(accept)
    execution = server.app.server.execution
    assert [lane.running for lane in execution.lanes.values()] == [0] * len(execution.lanes)
