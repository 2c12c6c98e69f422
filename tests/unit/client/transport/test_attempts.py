"""Repetition of requests: after lost connections, overload and answers of other programs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

import omnigraph as og
from omnigraph.client.transport import attempts
from omnigraph.client.transport.attempts import Attempts
from omnigraph.errors import (
    Cancelled,
    IncompatibleFormat,
    KeyConflict,
    OmniGraphError,
    OutcomeUnknown,
    Overloaded,
    QueryTimeout,
    RemoteError,
    StorageError,
    Unauthorized,
)
from omnigraph.wire.document import encoder
from omnigraph.wire.errors import error_document
from support.scripted_server import answer, cutting_proxy, scripted
from support.waiting import WAIT_S, wait_until

QUERY = "query q() { match { $p: Person } return { $p.name } }"
INSERT = "query add($name: String) { insert Person { name: $name } }"
CHANGED = {
    "branch": "main",
    "query_name": "add",
    "affected_nodes": 1,
    "affected_edges": 0,
    "actor_id": None,
    "commit": None,
}


@pytest.fixture(autouse=True)
def _short_delays(monkeypatch):
    monkeypatch.setattr(attempts, "FIRST_DELAY_S", 0.001)


def refused(error, status: int, **headers: str) -> bytes:
    """Return the answer of a server to an error."""
    return answer(status, encoder.encode(error_document(error)), **headers)


def busy() -> Overloaded:
    return Overloaded("busy", scope="server", retry_after_s=0, limit="queue_s")


def answering(*answers):
    """Return a script that gives each answer once, and the last one from then on."""
    remaining = list(answers)

    def script(_):
        return remaining.pop(0) if len(remaining) > 1 else remaining[0]

    return script


@pytest.mark.parametrize(
    "lost", [None, refused(busy(), 503, Retry_After="0"), answer(502, b"<html>Bad Gateway</html>")]
)
def test_a_write_is_repeated_under_its_key(lost):
    with scripted(answering(lost, answer(200, CHANGED))) as server, og.connect(server.url) as graph:
        assert graph.mutate(INSERT, {"name": "x"}).affected_nodes == 1
    keys = [request.headers["idempotency-key"] for request in server.requests]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert len(keys[0]) == 26
    assert len({request.headers["x-request-id"] for request in server.requests}) == 2


@pytest.mark.parametrize("lost", [None, answer(504, b"Gateway Timeout")])
def test_a_write_whose_answers_are_all_lost(lost):
    with scripted(answering(lost)) as server, og.connect(server.url, retries=2) as graph:
        with pytest.raises(OutcomeUnknown) as caught:
            graph.mutate(INSERT, {"name": "x"})
        with pytest.raises(OutcomeUnknown):
            graph.mutate(INSERT, {"name": "x"}, idempotency_key="mine")
    assert caught.value.idempotency_key == server.requests[0].headers["idempotency-key"]
    assert caught.value.idempotency_key in str(caught.value.hint)
    assert [request.headers["idempotency-key"] for request in server.requests[3:]] == ["mine"] * 3


def test_an_overload_that_lasts():
    with scripted(answering(refused(busy(), 503, Retry_After="0"))) as server, og.connect(server.url) as graph:
        with pytest.raises(Overloaded) as caught:
            graph.mutate(INSERT, {"name": "x"})
        assert caught.value.limit == "queue_s"
        assert len(server.requests) == 5
        with pytest.raises(Overloaded):
            graph.query(QUERY)


@pytest.mark.parametrize(
    ("refusal", "hint"),
    [
        (answer(503, b"busy", Retry_After="7"), "may have answered; retry after 7 s"),
        (
            answer(429, b"slow down", Retry_After="Fri, 01 Jan 2027 00:00:00 GMT"),
            "retry after Fri, 01 Jan 2027 00:00:00",
        ),
        (refused(StorageError("off", hint="wait"), 503, Retry_After="5"), "wait; retry after 5 s"),
        (refused(StorageError("off"), 503, Retry_After="5"), "retry after 5 s"),
        (refused(busy(), 503, Retry_After="0"), "nothing was executed; retry after 0 s"),
    ],
)
def test_the_hint_tells_when_to_retry(refusal, hint):
    with scripted(answering(refusal)) as server, og.connect(server.url, retries=0) as graph:
        with pytest.raises(OmniGraphError) as caught:
            graph.query(QUERY)
        assert hint in str(caught.value.hint)


def test_a_format_that_the_server_does_not_know_is_not_repeated():
    script = answering(refused(IncompatibleFormat("too new"), 503, Retry_After="5"))
    with scripted(script) as server, og.connect(server.url) as graph:
        with pytest.raises(IncompatibleFormat):
            graph.query(QUERY)
        assert len(server.requests) == 1


def test_an_answer_of_another_program():
    with scripted(answering(answer(404, b"x" * 600))) as server:
        graph = og.connect(server.url)
        with graph, pytest.raises(RemoteError, match="status 404") as caught:
            graph.query(QUERY)
    assert (caught.value.status, caught.value.text, len(server.requests)) == (404, "x" * 500, 1)


def test_redirects_are_not_followed():
    with scripted(answering(answer(307, Location="http://127.0.0.1:1/query"))) as server:
        with (
            og.connect(server.url, token="secret") as graph,
            pytest.raises(RemoteError, match="redirects to") as caught,
        ):
            graph.query(QUERY)
        assert caught.value.code == "redirected"
        assert len(server.requests) == 1


def test_a_server_that_does_not_answer():
    with scripted(answering(b"")) as server, og.connect(server.url, timeout_s=0.2) as graph:
        with pytest.raises(QueryTimeout, match=r"within 0\.2 s"):
            graph.query(QUERY)
        assert server.closed.wait(10)


def test_a_cancelled_read_closes_its_connection():
    with scripted(answering(b"")) as server, og.connect(server.url) as graph:
        cancel = og.Cancellation()
        timer = threading.Timer(0.1, cancel.cancel)
        timer.start()
        with pytest.raises(Cancelled):
            graph.query(QUERY, cancel=cancel)
        assert server.closed.wait(10)
        with pytest.raises(Cancelled):
            graph.query(QUERY, cancel=cancel)
        assert len(server.requests) == 1


def cancellable_write(outcome: bytes):
    """Return a script whose write waits until the operation is stopped."""
    stopped = threading.Event()

    def script(request):
        if request.method == "DELETE":
            stopped.set()
            return answer(200, {})
        assert stopped.wait(10)
        return outcome

    return script


@pytest.mark.parametrize("published", [False, True])
def test_a_cancelled_write_is_stopped_on_the_server(published):
    outcome = answer(200, CHANGED) if published else refused(Cancelled("stopped"), 409)
    with scripted(cancellable_write(outcome)) as server, og.connect(server.url) as graph:
        cancel = og.Cancellation()
        timer = threading.Timer(0.1, cancel.cancel)
        timer.start()
        if published:
            assert graph.mutate(INSERT, {"name": "x"}, cancel=cancel).affected_nodes == 1
        else:
            with pytest.raises(Cancelled):
                graph.mutate(INSERT, {"name": "x"}, cancel=cancel)
        write, stop = server.requests
        assert stop.target == f"/operations/{write.headers['x-request-id']}"


@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("by", ["task", "cancellation"])
def test_a_cancelled_asynchronous_write(published, by):
    outcome = answer(200, CHANGED) if published else refused(Cancelled("stopped"), 409)

    async def scenario(url: str) -> None:
        async with await og.aconnect(url) as graph:
            cancel = og.Cancellation()
            call = asyncio.ensure_future(graph.mutate(INSERT, {"name": "x"}, cancel=cancel))
            await wait_until(lambda: server.requests, "the request")
            if by == "task":
                call.cancel()
            else:
                cancel.cancel()
            if published:
                assert (await call).affected_nodes == 1
                return
            error = og.aio.WriteCancelled if by == "task" else Cancelled
            with pytest.raises(error) as caught:
                await call
            assert caught.value.idempotency_key == server.requests[0].headers["idempotency-key"]

    with scripted(cancellable_write(outcome)) as server:
        asyncio.run(scenario(server.url))


def test_a_cancelled_asynchronous_read_closes_its_connection():
    async def scenario(url: str) -> None:
        async with await og.aconnect(url) as graph:
            call = asyncio.ensure_future(graph.query(QUERY))
            await wait_until(lambda: len(server.requests) == 1, "the first request")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            cancel = og.Cancellation()
            call = asyncio.ensure_future(graph.query(QUERY, cancel=cancel))
            await wait_until(lambda: len(server.requests) == 2, "the second request")
            cancel.cancel()
            with pytest.raises(Cancelled):
                await call

    with scripted(answering(b"")) as server:
        asyncio.run(scenario(server.url))
        assert server.closed.wait(10)


def test_asynchronous_repetition():
    async def scenario(url: str) -> None:
        async with await og.aconnect(url, retries=1) as graph:
            assert (await graph.mutate(INSERT, {"name": "x"})).affected_nodes == 1
            with pytest.raises(OutcomeUnknown):
                await graph.mutate(INSERT, {"name": "y"})

    with scripted(answering(None, answer(200, CHANGED), None)) as server:
        asyncio.run(scenario(server.url))
        assert len(server.requests) == 4


def test_a_lost_answer_writes_once(local, server):
    """The proxy cuts the connection when the answer of the server arrives: the write is published."""
    local.branch_create("cut")
    before = len(local.commits("cut"))
    cuts = ["/mutate", "/load/ndjson", "/query"]
    with cutting_proxy(server.port, cuts) as url, og.connect(url, branch="cut") as graph:
        result = graph.mutate(INSERT, {"name": "once"})
        loaded = graph.load([{"type": "Person", "data": {"name": "twice"}}], mode="append")
        assert len(graph.query(QUERY)) == len(local.query(QUERY, branch="cut"))
    assert [commit.id for commit in local.commits("cut")][: -before or None] == [loaded.commit_id, result.commit_id]
    assert loaded.repeated
    assert cuts == []


LATER = refused(busy(), 503, Retry_After="20")


@pytest.fixture
def delay_begun(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a client begins the delay before a repetition."""
    begun = threading.Event()
    pauses = Attempts._pauses

    def observed(attempts: Attempts) -> Iterator[float]:
        begun.set()
        yield from pauses(attempts)

    monkeypatch.setattr(Attempts, "_pauses", observed)
    return begun


@pytest.mark.parametrize("write", [False, True])
def test_a_cancellation_ends_the_delay_before_a_repetition(write, delay_begun):
    with scripted(answering(LATER)) as server, og.connect(server.url) as graph:
        cancel = og.Cancellation()
        timer = threading.Thread(target=lambda: (delay_begun.wait(WAIT_S), cancel.cancel()))
        timer.start()
        with pytest.raises(Cancelled):
            graph.mutate(INSERT, {"name": "x"}, cancel=cancel) if write else graph.query(QUERY, cancel=cancel)
        timer.join()
        assert len(server.requests) == 1


def test_a_cancellation_after_a_lost_write():
    cancel = og.Cancellation()
    with scripted(lambda _: cancel.cancel()) as server, og.connect(server.url) as graph:
        with pytest.raises(OutcomeUnknown) as caught:
            graph.mutate(INSERT, {"name": "x"}, cancel=cancel)
        assert caught.value.idempotency_key == server.requests[0].headers["idempotency-key"]
        assert [request.method for request in server.requests].count("POST") == 1


@pytest.mark.parametrize("by", ["task", "cancellation"])
@pytest.mark.parametrize("write", [False, True])
def test_an_asynchronous_cancellation_ends_the_delay(by, write, delay_begun):
    async def scenario(url: str) -> None:
        async with await og.aconnect(url) as graph:
            cancel = og.Cancellation()
            call = graph.mutate(INSERT, {"name": "x"}, cancel=cancel) if write else graph.query(QUERY, cancel=cancel)
            task = asyncio.ensure_future(call)
            assert await asyncio.to_thread(delay_begun.wait, WAIT_S)
            assert len(server.requests) == 1
            if by == "task":
                task.cancel()
            else:
                cancel.cancel()
            with pytest.raises((Cancelled, asyncio.CancelledError)) as caught:
                await task
            if write and by == "task":
                assert isinstance(caught.value, og.aio.WriteCancelled)
                assert caught.value.settled
            assert all(request.method == "DELETE" for request in server.requests[1:])

    with scripted(answering(LATER)) as server:
        asyncio.run(scenario(server.url))


@pytest.mark.parametrize(
    "second",
    [
        answer(500, b"oops"),
        answer(404, b"<html>"),
        answer(307, Location="/x"),
        refused(Unauthorized("expired"), 401),
        refused(IncompatibleFormat("too new"), 503),
    ],
)
def test_a_write_whose_repetition_tells_no_outcome(second):
    with scripted(answering(None, second)) as server, og.connect(server.url) as graph:
        with pytest.raises(OutcomeUnknown) as caught:
            graph.mutate(INSERT, {"name": "x"})
        assert len(server.requests) == 2
        assert caught.value.idempotency_key == server.requests[0].headers["idempotency-key"]


def test_a_write_whose_repetition_is_refused():
    """The server knows the key: an error of the write itself is its outcome."""
    refusal = refused(KeyConflict("node:Person", "x", "taken"), 409)
    with scripted(answering(None, refusal)) as server, og.connect(server.url) as graph, pytest.raises(KeyConflict):
        graph.mutate(INSERT, {"name": "x"})


def test_a_graph_that_is_closed_during_a_write():
    def script(_):
        graph.close()

    with scripted(script) as server:
        graph = og.connect(server.url)
        with pytest.raises(OutcomeUnknown):
            graph.mutate(INSERT, {"name": "x"})
