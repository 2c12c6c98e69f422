"""Results that are read while they arrive."""

from __future__ import annotations

import asyncio
import gc

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.client import rows
from omnigraph.client.transport import session
from omnigraph.errors import InputError, RemoteError
from support.scripted_server import answer, scripted
from support.server import serving

COUNT = 60_000
ALL = "query q() { match { $p: Person } return { $p.name, $p.n } order { $p.n } }"


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    graph = og.init(tmp_path_factory.mktemp("rows") / "g.omni", "node Person { name: String @key  n: I64 }")
    names = [f"a person with the number {n:09}" for n in range(COUNT)]
    graph.load({"Person": pa.table({"name": names, "n": range(COUNT)})}, mode="append")
    with serving(graph.uri, flags={"unauthenticated": True}) as running:
        yield graph, running


@pytest.fixture
def remote(large):
    with og.connect(large[1].url) as graph:
        yield graph


def is_streamed(result: og.Result) -> bool:
    return isinstance(result._rows, rows.StreamedRows)


def test_a_large_result_arrives_in_batches(large, remote):
    result = remote.query(ALL)
    assert is_streamed(result)
    assert len(result) == COUNT
    assert next(iter(result))["p.n"] == 0
    expected = large[0].query(ALL).to_arrow()
    assert result.to_arrow().equals(expected)
    assert result.to_pylist()[-1] == {"p.name": f"a person with the number {COUNT - 1:09}", "p.n": COUNT - 1}
    assert all(batch.num_rows <= 100 for batch in remote.query(ALL).batches(100))


@pytest.mark.parametrize("kept", [1, 200_000, 64 * 1024 * 1024])
def test_every_pass_gives_all_rows(remote, monkeypatch, kept):
    """A result that is too large to be kept is requested again at its commit."""
    monkeypatch.setattr(rows, "KEPT_BYTES", kept)
    result = remote.query(ALL)
    first, second = result.batches(5_000), result.batches(7_000)
    seen: list[list[int]] = [[], []]
    for _ in range(20):
        for position, batches in enumerate((first, second)):
            batch = next(batches, None)
            seen[position] += [] if batch is None else batch.column("p.n").to_pylist()
    assert seen == [list(range(COUNT))] * 2 or [len(numbers) for numbers in seen] == [COUNT, COUNT]
    assert [row["p.n"] for row in result] == list(range(COUNT))


def test_a_dropped_result_closes_its_connection(large, remote):
    result = remote.query(ALL)
    next(result.batches(10))
    del result
    gc.collect()
    assert large[1].becomes_idle()
    assert len(remote.query("match { $p: Person } return { count($p) as n }")) == 1


def test_tables_arrive_in_batches(large, remote):
    reader = remote.to_batches("Person")
    assert sum(batch.num_rows for batch in reader) == COUNT
    partly = remote.to_batches("Person", batch_rows=10)
    assert partly.read_next_batch().num_rows == 10
    del partly
    gc.collect()
    assert large[1].becomes_idle()


def test_an_asynchronous_result_is_read_whole(large):
    async def scenario():
        async with await og.aconnect(large[1].url) as graph:
            result = await graph.query(ALL)
            assert not is_streamed(result)
            assert len(result.to_arrow()) == COUNT
            async for batch in graph.to_batches("Person"):
                assert batch.num_rows
                break

    asyncio.run(scenario())
    assert large[1].becomes_idle()


def test_a_stream_that_is_cut_off():
    sink = pa.BufferOutputStream()
    schema = pa.schema([("p.n", pa.int64())], metadata={"graph_commit_id": "01A", "row_count": "100000"})
    with pa.ipc.new_stream(sink, schema) as writer:
        for _ in range(10):
            writer.write_batch(pa.record_batch([pa.array(range(10_000))], schema=schema))
    body = sink.getvalue().to_pybytes()
    head = answer(200, body, Content_Type="application/vnd.apache.arrow.stream")
    with scripted(lambda _: head[: len(head) - 100_000]) as server, og.connect(server.url, retries=0) as graph:
        server.cut_after_answer = True
        result = graph.query(ALL)
        assert len(result) == 100_000
        with pytest.raises(RemoteError, match=r"connection to .* was lost"):
            result.to_arrow()


def arrow_answer(rows: int = 10_000, batches: int = 10, count: int | None = None) -> bytes:
    """Return the answer of a query with batches of numbers; `count` is the number of rows that the answer states."""
    sink = pa.BufferOutputStream()
    stated = rows * batches if count is None else count
    schema = pa.schema([("p.n", pa.int64())], metadata={"graph_commit_id": "01A", "row_count": str(stated)})
    with pa.ipc.new_stream(sink, schema) as writer:
        for _ in range(batches):
            writer.write_batch(pa.record_batch([pa.array(range(rows))], schema=schema))
    return answer(200, sink.getvalue().to_pybytes(), Content_Type="application/vnd.apache.arrow.stream")


def test_results_that_are_dropped_unread_give_their_connections_back(monkeypatch):
    monkeypatch.setattr(session, "CONNECTIONS_MAX", 2)
    with scripted(lambda _: arrow_answer()) as server, og.connect(server.url, timeout_s=5) as graph:
        for _ in range(5):
            assert len(graph.query(ALL)) == 100_000
            graph.to_batches("Person")
            graph.export()
            gc.collect()


def test_open_results_that_hold_every_connection(monkeypatch):
    monkeypatch.setattr(session, "CONNECTIONS_MAX", 2)
    answer = arrow_answer()
    with scripted(lambda _: answer) as server, og.connect(server.url, timeout_s=1.0) as graph:
        held = [graph.query(ALL), graph.query(ALL)]
        with pytest.raises(RemoteError, match="2 answers") as caught:
            graph.query(ALL)
        assert (caught.value.code, len(server.requests)) == ("no_free_connection", 2)
        with pytest.raises(RemoteError, match="2 answers"):
            graph.mutate('insert Person { name: "x" }')
        assert len(held.pop().to_arrow()) == 100_000
        assert len(graph.query(ALL)) == 100_000

    async def scenario(url: str) -> None:
        async with await og.aconnect(url, timeout_s=1.0) as graph:
            open_streams = [graph.to_batches("Person"), graph.to_batches("Person")]
            for stream in open_streams:
                await anext(stream)
            with pytest.raises(RemoteError, match="2 answers"):
                await graph.query(ALL)
            for stream in open_streams:
                await stream.aclose()
            assert len(await graph.query(ALL)) == 100_000

    with scripted(lambda _: answer) as server:
        asyncio.run(scenario(server.url))


def test_a_second_pass_after_a_lost_connection_is_complete():
    whole = arrow_answer()
    answers = [whole[:-100_000], whole]
    with scripted(lambda _: answers.pop(0)) as server, og.connect(server.url, retries=0) as graph:
        server.cut_after_answer = True
        result = graph.query(ALL)
        with pytest.raises(RemoteError, match="was lost"):
            result.to_arrow()
        assert len(result.to_arrow()) == len(result) == 100_000


@pytest.mark.parametrize("count", [99_999, 100_001])
def test_a_stated_count_that_is_wrong(count):
    with scripted(lambda _: arrow_answer(count=count)) as server, og.connect(server.url, retries=0) as graph:
        result = graph.query(ALL)
        for _ in range(2):
            with pytest.raises(RemoteError, match="100000 rows") as caught:
                result.to_arrow()
            assert caught.value.code == "incomplete_answer"


def test_a_result_of_a_closed_graph():
    with scripted(lambda _: arrow_answer()) as server:
        with og.connect(server.url) as graph:
            result = graph.query(ALL)
        for _ in range(2):
            with pytest.raises(InputError, match="closed") as caught:
                result.to_arrow()
            assert caught.value.code == "graph_closed"
