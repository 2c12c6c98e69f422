"""Workers build the search structures of a bulk load; the driver builds what they do not."""

from __future__ import annotations

import errno
import fcntl
import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.cache import disk_cache
from omnigraph.engine.cache.build_turn import LOCK
from omnigraph.engine.exec.cancellation import Cancellation, OperationWatch
from omnigraph.engine.search import index_builder, inverted_index
from omnigraph.errors import StorageError
from omnigraph.graph_handle import context_of
from omnigraph.operations.derived import build_after_load
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.pipeline import segment_task
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.segment_task import build_segments
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource
from omnigraph.versioning.write.transaction import WriteOptions
from support.writes import new_graph, node, reopened, write_jsonl

SCHEMA = "node Doc { name: String @key  text: String? @index  vec: Vector(3)? }"
RANKED = 'query q() { match { $d: Doc } return { $d.name } order { bm25($d.text, "river stone") } limit 7 }'
NEAREST = "query q() { match { $d: Doc } return { $d.name } order { nearest($d.vec, [7, 1, 0]) } limit 5 }"
POINT = 'query q() { match { $d: Doc { name: "d33" } } return { $d.text } }'
QUERIES = (RANKED, NEAREST, POINT)
FILES, ROWS = 6, 60


class FourWorkers(InlineRunner):
    """Reports four workers and runs the tasks in this process."""

    parallelism = 4


class Failing(FourWorkers):
    """Cannot run the tasks that build segments."""

    def run(self, step, task, job, work, **more):
        if step == "index":
            raise StorageError("the workers are gone")
        return super().run(step, task, job, work, **more)


@pytest.fixture(autouse=True)
def small(tune):
    """Keep and divide the structures of small tables."""
    tune(
        segment_rows_min=5,
        postings_disk_rows_min=1,
        vector_disk_bytes_min=1,
        id_segments_rows_min=20,
        segment_part_rows_min=10,
    )


@pytest.fixture
def built(monkeypatch) -> list[int]:
    """The number of texts of each build of a text index."""
    seen: list[int] = []
    finish = index_builder.IndexBuild.row_arrays

    def counting(build: Any) -> Any:
        made = finish(build)
        seen.append(len(made["lengths"]))
        return made

    monkeypatch.setattr(index_builder.IndexBuild, "row_arrays", counting)
    return seen


def docs(start: int, stop: int) -> list[dict[str, Any]]:
    return [
        node("Doc", name=f"d{at}", text=f"river {'stone ' * (at % 7)}{at}", vec=[at, 1, 0]) for at in range(start, stop)
    ]


def bulk(graph: Any, root: Path, start: int, stop: int) -> LoadResult:
    """Load rows from several files, so that they are in several fragments."""
    root.mkdir()
    step = (stop - start) // FILES
    paths = [write_jsonl(root / f"{at:02}.jsonl", docs(at, at + step)) for at in range(start, stop, step)]
    source = FileSource(plan_input([str(path) for path in paths], {}, 1))
    request = LoadRequest("append", WriteOptions("main"), environ={})
    return load_source(context_of(graph).repository, InlineRunner(), source, request)


def segments(graph: Any, kind: str) -> list[int]:
    """The numbers of rows of the segments on disk."""
    folder = Path(graph.uri.removeprefix("file://")) / disk_cache.FOLDER
    entries = [json.loads(about.read_text())["entry"] for about in folder.glob("*/about.json")]
    found = {int(one["what"][-1]): one for one in entries if one["what"][0] == kind}
    return [sum(rows for _, rows, _ in found[number]["rows"]["pieces"]) for number in sorted(found)]


def test_workers_build_segments_that_queries_use(tmp_path, built):
    graph, plain = new_graph(tmp_path / "a", SCHEMA), new_graph(tmp_path / "b", SCHEMA, *docs(0, ROWS))
    built.clear()
    result = build_segments(context_of(graph), FourWorkers(), bulk(graph, tmp_path / "in", 0, ROWS))
    assert result.notes == ()
    assert built == segments(graph, inverted_index.WORDS) == segments(graph, "vectors") == segments(graph, "ids")
    assert len(built) > 2
    assert sum(built) == ROWS
    assert build_after_load(context_of(graph), result).notes == ()
    for query in QUERIES:
        expected = plain.query(query).to_rows()
        assert graph.query(query).to_rows() == expected
        assert reopened(graph).query(query).to_rows() == expected
    assert sum(built) == ROWS, "neither the driver nor a query built an index"


def test_later_rows_extend_the_segments_of_a_handle_that_searched(tmp_path, built):
    graph = new_graph(tmp_path / "a", SCHEMA)
    build_segments(context_of(graph), FourWorkers(), bulk(graph, tmp_path / "in", 0, ROWS))
    before = segments(graph, inverted_index.WORDS)
    for query in QUERIES:
        graph.query(query)
    result = build_segments(context_of(graph), FourWorkers(), bulk(graph, tmp_path / "more", ROWS, ROWS + 12))
    build_after_load(context_of(graph), result)
    assert segments(graph, inverted_index.WORDS)[: len(before) - 1] == before[:-1]
    plain = new_graph(tmp_path / "b", SCHEMA, *docs(0, ROWS + 12))
    count = len(built)
    for query in QUERIES:
        assert graph.query(query).to_rows() == plain.query(query).to_rows()
        assert reopened(graph).query(query).to_rows() == plain.query(query).to_rows()
    assert len(built) == count


def test_driver_builds_what_failing_workers_do_not(tmp_path, built, monkeypatch):
    graph = new_graph(tmp_path / "a", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", 0, ROWS)
    result = build_segments(context_of(graph), Failing(), loaded)
    assert result.notes == ("the workers did not build all search structures (the workers are gone)",)
    with monkeypatch.context() as patch:
        patch.setattr(segment_task, "write_segment", _fails)
        result = build_segments(context_of(graph), FourWorkers(), loaded)
    assert result.notes == ("the workers did not build all search structures (No space left on device)",)
    assert built == []
    build_after_load(context_of(graph), result)
    assert built == [ROWS]
    plain = new_graph(tmp_path / "b", SCHEMA, *docs(0, ROWS))
    assert graph.query(RANKED).to_rows() == plain.query(RANKED).to_rows()


def _fails(*_: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_cancellation_while_another_process_builds_is_a_note(tmp_path):
    graph = new_graph(tmp_path / "a", SCHEMA)
    loaded = bulk(graph, tmp_path / "in", 0, ROWS)
    context, cancellation = context_of(graph), Cancellation()
    context.cache.takes_turns = True
    folder = Path(graph.uri.removeprefix("file://")) / disk_cache.FOLDER
    folder.mkdir(exist_ok=True)
    cancellation.cancel()
    with (folder / LOCK).open("ab") as other, OperationWatch("load", None, cancellation).applied():
        fcntl.flock(other, fcntl.LOCK_EX)
        result = build_segments(context, FourWorkers(), loaded)
    assert result.notes == ("the workers did not build all search structures (cancelled)",)


def test_one_worker_leaves_the_segments_to_the_driver(tmp_path, built):
    graph = new_graph(tmp_path / "a", SCHEMA)
    result = bulk(graph, tmp_path / "in", 0, ROWS)
    assert build_segments(context_of(graph), InlineRunner(), result) is result
    assert built == []
