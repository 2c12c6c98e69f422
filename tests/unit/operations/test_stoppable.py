"""`cancel` and `timeout` of loads, merges, exports and reads of history. The tests count checkpoints; none waits."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.aio import AsyncGraph
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import Cancelled, InputError, QueryTimeout
from omnigraph.storage.lance import staging
from support.writes import edge, node

SCHEMA = """
node P { name: String @key  n: I64?  rank: F64? }
edge Knows: P -> P
"""
PEOPLE = [node("P", name=f"p{at}", n=at) for at in range(12)]
KNOWS = [edge("Knows", f"p{at}", f"p{(at + 1) % 12}") for at in range(12)]
MORE = [node("P", name=f"q{at}", n=at) for at in range(40)]


class Counting(Cancellation):
    """Cancels at the nth checkpoint."""

    __slots__ = ("nth", "seen")

    def __init__(self, nth: int = 0) -> None:
        self.held_bytes = 0
        self.seen = 0
        self.nth = nth

    @property
    def cancelled(self) -> bool:  # type: ignore[override]
        self.seen += 1
        return self.seen >= self.nth > 0


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("template") / "g.omni"
    graph = og.init(folder, SCHEMA, sync=False)
    graph.load(PEOPLE + KNOWS, mode="merge")
    graph.branch_create("work")
    graph.on("work").mutate('update P set { n: 100 } where name = "p1"')
    graph.mutate('update P set { n: 200 } where name = "p2"')
    return folder


@pytest.fixture
def graph(tmp_path: Path, template: Path) -> og.Graph:
    shutil.copytree(template, tmp_path / "g.omni")
    return og.open(tmp_path / "g.omni", sync=False)


Call = Callable[..., Any]


def exhausted(call: Callable[..., Any]) -> Call:
    return lambda graph, **how: list(call(graph, **how))


READS: dict[str, Call] = {
    "export": exhausted(lambda graph, **how: graph.export(**how)),
    "export to a file": lambda graph, **how: graph.export(Path(graph.uri).parent / "out.jsonl", **how),
    "export to a folder": lambda graph, **how: graph.export(Path(graph.uri).parent / "out", format="parquet", **how),
    "diff": exhausted(lambda graph, **how: graph.diff("work", "main", **how)),
    "export_diff": lambda graph, **how: graph.export_diff("work", "main", Path(graph.uri).parent / "diff", **how),
    "commit_changes": lambda graph, **how: graph.commit_changes("work", **how),
    "changes": lambda graph, **how: graph.changes(start="beginning", **how),
    "changes_baseline": exhausted(lambda graph, **how: graph.changes_baseline(**how)),
    "history": exhausted(lambda graph, **how: graph.history("P", "p2", **how)),
    "blame": lambda graph, **how: graph.blame("P", "p2", **how),
    "analyze": lambda graph, **how: graph.analyze("pagerank", **how),
    "to_arrow": lambda graph, **how: graph.to_arrow("P", **how),
    "merge_preview": lambda graph, **how: graph.merge_preview("work", **how),
    "revert_preview": lambda graph, **how: graph.revert_preview("main", **how),
}
WRITES: dict[str, Call] = {
    "load": lambda graph, **how: graph.load(MORE, mode="merge", **how),
    "load a file": lambda graph, **how: graph.load(rows_file(graph), mode="append", engine="memory", **how),
    "load as a job": lambda graph, **how: graph.load(rows_file(graph), mode="merge", engine="auto", **how),
    "load a table": lambda graph, **how: graph.load(
        {"P": pa.table({"name": [f"t{at}" for at in range(40)]})}, mode="append", **how
    ),
    "mutate": lambda graph, **how: graph.mutate("update P set { n: n + 1 } where n >= 0", **how),
    "ingest": lambda graph, **how: graph.ingest(MORE, branch="main", **how),
    "merge": lambda graph, **how: graph.merge("work", delete_branch=True, **how),
    "revert": lambda graph, **how: graph.revert("main", **how),
    "analyze and write": lambda graph, **how: graph.analyze("pagerank", write="rank", **how),
}


def rows_file(graph: og.Graph) -> Path:
    path = Path(graph.uri).parent / "more.jsonl"
    path.write_text("".join(f'{{"type":"P","data":{{"name":"q{at}","n":{at}}}}}\n' for at in range(40)))
    return path


@pytest.fixture(autouse=True)
def small_batches(tune: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    tune(jsonl_block_bytes=64, memory_load_bytes_max=512)
    monkeypatch.setattr(staging, "_BATCH_ROWS", 7)


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_stopped_operation_does_not_start(graph: og.Graph, name: str) -> None:
    call, head = (READS | WRITES)[name], graph.snapshot().commit_id
    stopped = Cancellation()
    stopped.cancel()
    with pytest.raises(Cancelled, match="was cancelled"):
        call(graph, cancel=stopped)
    with pytest.raises(QueryTimeout, match="took longer than 0 s") as caught:
        call(graph, timeout=0)
    assert (caught.value.resource, caught.value.limit) == ("time", 0)
    assert graph.snapshot().commit_id == head
    with pytest.raises(InputError, match="a timeout is a number of seconds"):
        call(graph, timeout="1")


@pytest.mark.parametrize("name", READS)
def test_read_stops_at_any_checkpoint(graph: og.Graph, name: str) -> None:
    call, folder = READS[name], Path(graph.uri).parent
    counting = Counting()
    left = {path.name for path in folder.iterdir()}
    seen = 0
    while True:
        seen += 1
        counting = Counting(seen)
        try:
            call(graph, cancel=counting)
        except Cancelled:
            outputs = {path for path in folder.iterdir() if path.name not in left}
            assert not [file for path in outputs for file in path.rglob("*") if file.is_file()]
            continue
        break
    assert seen > 2


@pytest.mark.parametrize("name", WRITES)
def test_write_stops_at_any_checkpoint_before_its_publish(graph: og.Graph, name: str) -> None:
    call, head = WRITES[name], graph.snapshot().commit_id
    for nth in range(1, 400):
        try:
            call(graph, cancel=Counting(nth))
        except Cancelled as error:
            message = error.message
        else:
            break
        assert "nothing was written" in message
        assert graph.snapshot().commit_id == head
        folder = Path(graph.uri)
        assert not [file for file in folder.glob("__staging/**/*") if file.is_file()]
        assert not [file for file in folder.glob("__recovery/*") if file.is_file()]
    else:
        pytest.fail("the write never ended")
    assert nth > 3
    assert graph.snapshot().commit_id != head
    assert graph.verify() == []


def test_published_merge_deletes_its_branch_despite_a_late_cancellation(graph: og.Graph) -> None:
    result = None
    for nth in range(1, 400):
        try:
            result = graph.merge("work", delete_branch=True, cancel=Counting(nth))
            break
        except Cancelled:
            assert "work" in graph.branches()
    assert result is not None
    assert result.branch_deleted
    assert graph.branches() == ["main"]


def test_iterators_stop_between_items(graph: og.Graph) -> None:
    calls: list[Callable[[Cancellation], Iterator[Any]]] = [
        lambda cancel: iter(graph.export(cancel=cancel)),  # type: ignore[arg-type]
        lambda cancel: iter(graph.diff("work", "main", cancel=cancel)),
        lambda cancel: graph.changes_baseline(cancel=cancel),
        lambda cancel: graph.history("P", "p2", cancel=cancel),
    ]
    for call in calls:
        cancel = Cancellation()
        items = call(cancel)
        assert next(items)
        assert len(graph.query("match { $p: P } return { $p.name }")) == 12, "the limit ends with each item"
        cancel.cancel()
        with pytest.raises(Cancelled):
            next(items)


def test_operation_ends_with_the_call_of_an_async_graph(graph: og.Graph) -> None:
    async def scenario() -> None:
        async with AsyncGraph(graph) as session:
            stopped = Cancellation()
            stopped.cancel()
            with pytest.raises(Cancelled):
                await session.load(MORE, mode="merge", cancel=stopped)
            with pytest.raises(QueryTimeout):
                await session.to_arrow("P", timeout=0)
            items = await session.export(timeout=600)
            assert not isinstance(items, int)
            assert len([item async for item in items]) == 24
            with pytest.raises(QueryTimeout):
                async for _ in session.diff("work", "main", timeout=0):
                    pass
            assert (await session.load(MORE, mode="merge", cancel=Cancellation(), timeout=600)).commit_id

    asyncio.run(scenario())
