"""Answers that do not have the form of the interface: of a proxy, of another release, cut off or damaged."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.client.transport import session
from omnigraph.errors import Conflict, InputError, NotFound, OmniGraphError, OutcomeUnknown, Overloaded, RemoteError
from support.scripted_server import answer, scripted

QUERY = "query q() { match { $p: Person } return { $p.name } }"
INSERT = 'query add() { insert Person { name: "x" } }'
SCHEMA = "node Person { name: String @key }"
END = b"\xff\xff\xff\xff\0\0\0\0"


def _without_metadata() -> bytes:
    sink = pa.BufferOutputStream()
    table = pa.table({"name": ["x"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    found: bytes = sink.getvalue().to_pybytes()
    return found


BODIES = {
    "html": b"<html>Sign in</html>",
    "empty": b"",
    "array": b"[]",
    "object": b"{}",
    "deep": b'{"a":' * 5_000 + b"1" + b"}" * 5_000,
    "cut": b'{"branch": "ma',
    "encoding": b'{"branch": "\xff"}',
    "end marker": END,
    "no metadata": _without_metadata(),
    "damaged": b"\xff\xff\xff\xff\x10\0\0\0" + b"\xee" * 64,
    "lines": b'{"kind":"metadata"}\n[1]\n{"kind":"end"}\n',
    "typed": b'{"id":"x","type":"Person","data":{"born":{"$date":"soon"}},"graph_commit_id":"01A"}\n',
}
READS: dict[str, Callable[[Any], Any]] = {
    "query": lambda graph: graph.query(QUERY).to_pylist(),
    "to_batches": lambda graph: list(graph.to_batches("Person")),
    "get": lambda graph: graph.get("Person", "x"),
    "analyze": lambda graph: graph.analyze("degrees"),
    "commits": lambda graph: graph.commits(),
    "head": lambda graph: graph.head(),
    "tags": lambda graph: graph.tags(),
    "diff": lambda graph: list(graph.diff("a", "b")),
    "history": lambda graph: list(graph.history("Person", "x")),
    "changes": lambda graph: graph.changes(),
    "snapshot": lambda graph: graph.snapshot(),
    "plan_schema": lambda graph: graph.plan_schema(SCHEMA),
    "merge_preview": lambda graph: graph.merge_preview("a"),
}
WRITES: dict[str, Callable[[Any], Any]] = {
    "mutate": lambda graph: graph.mutate(INSERT),
    "unify": lambda graph: graph.unify("Person", keep="a", drop="b"),
    "load": lambda graph: graph.load([{"type": "Person", "data": {"name": "x"}}], mode="merge"),
    "apply_schema": lambda graph: graph.apply_schema(SCHEMA),
    "merge": lambda graph: graph.merge("a"),
    "branch_create": lambda graph: graph.branch_create("a"),
    "optimize": lambda graph: graph.optimize(),
}


@pytest.mark.parametrize("body", BODIES)
def test_reads(body: str) -> None:
    with scripted(lambda _: answer(200, BODIES[body])) as server, og.connect(server.url, retries=0) as graph:
        for name, call in READS.items():
            with pytest.raises(RemoteError) as caught:
                call(graph)
            assert caught.value.code == "incomplete_answer", name


@pytest.mark.parametrize("body", BODIES)
def test_the_outcome_of_a_write_is_not_known(body: str) -> None:
    with scripted(lambda _: answer(200, BODIES[body])) as server, og.connect(server.url, retries=0) as graph:
        for name, call in WRITES.items():
            with pytest.raises(OutcomeUnknown) as caught:
                call(graph)
            key = server.requests[-1].headers["idempotency-key"]
            assert caught.value.idempotency_key == key, name
            assert key in str(caught.value.hint)


@pytest.mark.parametrize("body", ["html", "end marker", "no metadata", "damaged"])
def test_asynchronous_calls(body: str) -> None:
    async def scenario(url: str) -> None:
        async with await og.aconnect(url, retries=0) as graph:
            for call in (graph.query(QUERY), graph.get("Person", "x"), graph.commits()):
                with pytest.raises(RemoteError):
                    await call
            with pytest.raises(RemoteError):
                [batch async for batch in graph.to_batches("Person")]
            with pytest.raises(OutcomeUnknown):
                await graph.mutate(INSERT)

    with scripted(lambda _: answer(200, BODIES[body])) as server:
        asyncio.run(scenario(server.url))


@pytest.mark.parametrize("status", [400, 409, 500])
@pytest.mark.parametrize("body", BODIES)
def test_errors_of_other_programs(status: int, body: str) -> None:
    with scripted(lambda _: answer(status, BODIES[body])) as server, og.connect(server.url, retries=0) as graph:
        with pytest.raises(RemoteError) as caught:
            graph.query(QUERY)
        assert caught.value.status == status


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"class": "Bewildered", "code": "conflict", "reason": "bewildered"}, Conflict),
        ({"class": "NotFound", "code": "gone_for_good", "reason": "x"}, NotFound),
        ({"code": "gone_for_good", "reason": "x"}, OmniGraphError),
        (
            {"class": "TypeCheckError", "code": "bad_request", "reason": "x", "diagnostics": [{"kind": "new"}]},
            InputError,
        ),
        ({"class": "MergeConflict", "code": "conflict", "reason": "x", "merge_conflicts": [{"kind": "new"}]}, Conflict),
        (
            {"class": "Overloaded", "code": "too_many_requests", "reason": "x", "overload": {"scope": "moon"}},
            Overloaded,
        ),
        ({"code": "bad_request", "reason": "x", "later": {"a": [1]}, "hint": "think"}, InputError),
    ],
)
def test_errors_of_a_later_release(members: dict[str, Any], expected: type[OmniGraphError]) -> None:
    refusal = answer(418, {"error": "it is so", **members})
    with scripted(lambda _: refusal) as server, og.connect(server.url, retries=0) as graph:
        with pytest.raises(expected) as caught:
            graph.query(QUERY)
        assert not isinstance(caught.value, RemoteError)
        assert (caught.value.message, caught.value.hint) == ("it is so", members.get("hint"))


BLOB = {"ETag": '"e"', "Omnigraph_Snapshot_Id": "01A"}


def test_a_range_of_another_length() -> None:
    """A proxy that ignores `Range` returns the whole value."""

    def script(request: Any) -> bytes:
        if request.method == "HEAD":
            return b'HTTP/1.1 200 X\r\nContent-Length: 10\r\nETag: "e"\r\nOmnigraph-Snapshot-Id: 01A\r\n\r\n'
        return answer(200, b"0123456789", **BLOB)

    with scripted(script) as server, og.connect(server.url, retries=0) as graph:
        blob = graph.blob("Person", "x", "photo")
        assert blob.read() == b"0123456789"
        with pytest.raises(RemoteError, match="range of 3"):
            blob.read(4, 3)


@pytest.mark.parametrize("head", [b"", b'ETag: "e"\r\n', b'ETag: "e"\r\nOmnigraph-Snapshot-Id: 01A\r\n'])
def test_a_blob_without_its_headers(head: bytes) -> None:
    script = b"HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n" + head + b"\r\n"
    with scripted(lambda _: script) as server, og.connect(server.url, retries=0) as graph:
        with pytest.raises(RemoteError) as caught:
            graph.blob("Person", "x", "photo")
        assert caught.value.code == "incomplete_answer"


def test_the_size_of_a_blob_behind_a_proxy_without_head() -> None:
    def script(request: Any) -> bytes:
        if request.method == "HEAD":
            return b"HTTP/1.1 405 X\r\nContent-Length: 0\r\n\r\n"
        first, _, last = request.headers["range"].removeprefix("bytes=").partition("-")
        part = b"0123456789"[int(first) : int(last) + 1]
        return answer(206, part, Content_Range=f"bytes {first}-{last}/10", **BLOB)

    with scripted(script) as server, og.connect(server.url, retries=0) as graph:
        blob = graph.blob("Person", "x", "photo")
        assert (blob.size, blob.read()) == (10, b"0123456789")


ENDLESS = b"HTTP/1.1 %d X\r\nTransfer-Encoding: chunked\r\n\r\n" + b"10000\r\n" + b" " * 65_536 + b"\r\n"


@pytest.mark.parametrize("status", [200, 500])
def test_answers_without_an_end(monkeypatch: pytest.MonkeyPatch, status: int) -> None:
    """The server sends a part of its answer and keeps the connection open."""
    monkeypatch.setattr(session, "ERROR_BYTES_MAX", 20_000)
    monkeypatch.setattr(session, "DOCUMENT_BYTES_MAX", 20_000)

    async def scenario(url: str) -> None:
        async with await og.aconnect(url, retries=0) as graph:
            with pytest.raises(RemoteError):
                await graph.commits()

    with scripted(lambda _: ENDLESS % status) as server:
        with og.connect(server.url, retries=0) as graph:
            with pytest.raises(RemoteError) as caught:
                graph.commits()
            assert caught.value.status == status
            with pytest.raises(OutcomeUnknown if status == 200 else RemoteError):
                graph.mutate(INSERT)
        asyncio.run(scenario(server.url))
