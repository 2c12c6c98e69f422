"""The driver of a bulk load publishes once, starts over if the branch moved, and leaves no files."""

from __future__ import annotations

import json
import multiprocessing
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine import tuning
from omnigraph.errors import Conflict, ConstraintViolation, ExpectedVersionMismatch, KeyConflict
from omnigraph.graph import Graph
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.operations.load.load_result import LoadResult
from omnigraph.pipeline.load import begin_job, load_source
from omnigraph.pipeline.orphan_jobs import JobLease, discard, sweep
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.stage_task import stage_rows
from omnigraph.pipeline.staged_input import FileSource, RowSource
from omnigraph.versioning.write.transaction import WriteOptions
from support.writes import SHELVES, beside, ids_of, new_graph, reopened, rows_of, shelf


@pytest.fixture
def graph(tmp_path):
    return new_graph(tmp_path, SHELVES, shelf("a", note="x", cap=3), shelf("b"), beside("a", "b", id_="e"))


class Interfering(InlineRunner):
    """Calls a function before a step of the job."""

    def __init__(self, step: str, act: Callable[[], Any]) -> None:
        super().__init__()
        self.steps: list[str] = []
        self._step = step
        self._act: Callable[[], Any] | None = act

    def run(self, step, task, job, work, **more):
        self.steps.append(step)
        if step == self._step and self._act is not None:
            act, self._act = self._act, None
            act()
        return super().run(step, task, job, work, **more)


def bulk(graph: Graph, root: Path, records: list[Any], mode: str = "merge", **more: Any) -> LoadResult:
    path = root / "bulk.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    source = FileSource(plan_input([str(path)], {}, 1, split_bytes=60))
    runner = more.pop("runner", None) or InlineRunner()
    return load_source(graph._repository, runner, source, LoadRequest(mode, WriteOptions(**more)))


def data_files(graph: Graph) -> list[Path]:
    return sorted(Path(graph.uri).glob("*/*/data/*.lance"))


def leftovers(graph: Graph) -> list[Path]:
    return list((Path(graph.uri) / "__staging").glob("*"))


def test_upsert_keeps_row_ids(graph, tmp_path):
    def identities() -> dict[str, tuple[int, int]]:
        table = graph.snapshot().table("node:Shelf")
        rows = table.read(["id", "_rowid", "_row_created_at_version"]).to_pylist()
        return {row["id"]: (row["_rowid"], row["_row_created_at_version"]) for row in rows}

    before = identities()
    bulk(graph, tmp_path, [shelf("b", note="new"), shelf("c"), shelf("a"), shelf("d")])
    after = identities()
    assert {key: after[key] for key in before} == before
    assert len({row for row, _ in after.values()}) == 4
    assert rows_of(graph, "Shelf")["a"] == {"code": "a", "note": "x", "cap": 3}
    assert graph.verify() == []


def test_moved_branch_is_validated_again_but_not_read_again(graph, tmp_path):
    runner = Interfering("finalize", lambda: reopened(graph).load([shelf("c", note="first")], mode="append"))
    bulk(graph, tmp_path, [shelf("c", note="second"), shelf("d")], runner=runner)
    assert runner.steps.count("read") == 1
    assert runner.steps.count("merge") == 2
    assert rows_of(graph, "Shelf")["c"]["note"] == "second"
    assert graph.verify() == []


def test_concurrent_rows_are_validated(graph, tmp_path):
    runner = Interfering("check", lambda: reopened(graph).load([shelf("c")], mode="append"))
    with pytest.raises(KeyConflict, match="the id 'c' exists already"):
        bulk(graph, tmp_path, [shelf("c")], "append", runner=runner)


def test_input_is_read_again_after_a_schema_change(graph, tmp_path):
    longer = SHELVES.replace("cap: I32?", "cap: I32?  wide: Bool?")
    runner = Interfering("finalize", lambda: reopened(graph).apply_schema(longer))
    bulk(graph, tmp_path, [shelf("c")], runner=runner)
    assert runner.steps.count("read") == 2
    assert rows_of(graph, "Shelf")["c"] == {"code": "c", "note": None, "cap": None, "wide": None}


def test_load_with_expected_version_does_not_start_over(graph, tmp_path):
    runner = Interfering("finalize", lambda: reopened(graph).load([shelf("c")], mode="append"))
    with pytest.raises(ExpectedVersionMismatch):
        bulk(graph, tmp_path, [shelf("d")], runner=runner, expected_versions={"node:Shelf": 2})
    assert ids_of(graph, "Shelf") == ["a", "b", "c"]


def test_failed_load_leaves_no_file(graph, tmp_path):
    before = data_files(graph)
    with pytest.raises(ConstraintViolation):
        bulk(graph, tmp_path, [shelf("c"), beside("c", "nowhere")])
    assert data_files(graph) == before
    assert leftovers(graph) == []


def test_interrupted_load_leaves_no_file(graph, tmp_path):
    def interrupt() -> None:
        raise KeyboardInterrupt

    before = data_files(graph)
    with pytest.raises(KeyboardInterrupt):
        bulk(graph, tmp_path, [shelf("c"), shelf("d")], runner=Interfering("finalize", interrupt))
    assert data_files(graph) == before
    assert leftovers(graph) == []


def test_rewritten_fragments_are_removed(graph, tmp_path):
    before = len(data_files(graph))
    bulk(graph, tmp_path, [shelf("a"), shelf("c")])  # one split: a replaces a row, c does not
    assert len(data_files(graph)) == before + 1


def test_small_input_has_one_bucket(graph, tmp_path):
    class Wide(InlineRunner):
        parallelism = 16

        def run(self, step, task, job, work, **more):
            tasks.setdefault(step, []).append(len(work))
            return super().run(step, task, job, work, **more)

    tasks: dict[str, list[int]] = {}
    bulk(graph, tmp_path, [shelf("c"), beside("a", "c")], runner=Wide())
    assert (tasks["merge"], tasks["check"]) == ([1], [1])


def test_merge_of_nodes_compares_no_rows(graph, tmp_path):
    """A merge writes one row per id, so their keys are not compared again."""
    runner = Interfering("never", lambda: None)
    bulk(graph, tmp_path, [shelf("a", note="new"), shelf("c"), shelf("c", cap=4)], runner=runner)
    assert "check" not in runner.steps
    assert rows_of(graph, "Shelf")["c"] == {"code": "c", "note": None, "cap": 4}


@pytest.mark.parametrize("scanned", [0, 1_000], ids=["by row id", "by scan"])
@pytest.mark.parametrize("held", [1, 1 << 20], ids=["many files", "one file"])
def test_merge_keeps_the_values_of_fragments_with_deleted_rows(tmp_path, scanned, held):
    graph = new_graph(tmp_path, SHELVES)
    for first in (0, 50):
        graph.load([shelf(f"s{n}", note=f"note {n}", cap=n) for n in range(first, first + 50)], mode="append")
    graph.mutate("query q() { delete Shelf where cap < 30 }")
    with tuning.replaced(scanned_rows_per_hit=scanned, staged_bytes=held):
        changed = [shelf(f"s{n}", note="changed") for n in range(0, 100, 3)]
        bulk(graph, tmp_path, [*changed, shelf("s31", cap=7)])
    expected = {f"s{n}": (f"note {n}", n) for n in range(30, 100)}
    expected |= {f"s{n}": ("changed", n if n >= 30 else None) for n in range(0, 100, 3)}
    expected["s31"] = ("note 31", 7)
    assert {id_: (row["note"], row["cap"]) for id_, row in rows_of(graph, "Shelf").items()} == expected
    assert graph.verify() == []


def test_repeated_job_makes_one_commit(graph, tmp_path):
    first = bulk(graph, tmp_path, [shelf("c")], "append", idempotency_key="night-1")
    again = bulk(graph, tmp_path, [shelf("c")], "append", idempotency_key="night-1")
    assert again.commit_id == first.commit_id
    assert again.tables == first.tables == (("node:Shelf", 1),)
    assert graph.commit(first.commit_id).metadata["rows"] == {"node:Shelf": 1}


# -- dead drivers ------------------------------------------------------------------------------------


def _die_in_the_middle(uri: str, folder: str) -> None:
    import omnigraph as og  # noqa: PLC0415

    runner = Interfering("check", lambda: os._exit(9))
    bulk(og.open(uri, sync=False, environ={}), Path(folder), [shelf("x"), shelf("y")], "append", runner=runner)


def test_job_with_dead_driver_is_swept(graph, tmp_path):
    before = data_files(graph)
    process = multiprocessing.get_context("spawn").Process(target=_die_in_the_middle, args=(graph.uri, str(tmp_path)))
    process.start()
    process.join()
    assert process.exitcode == 9
    assert len(data_files(graph)) > len(before)
    assert len(leftovers(graph)) == 1
    assert reopened(graph).recover() == []
    assert leftovers(graph) == []
    assert data_files(graph) == before
    bulk(graph, tmp_path, [shelf("x"), shelf("y")], "append")
    assert ids_of(graph, "Shelf") == ["a", "b", "x", "y"]
    assert len(data_files(graph)) == sum(
        len(graph.snapshot().table(key).dataset.get_fragments()) for key in ("node:Shelf", "edge:Beside")
    )


def test_running_job_is_not_swept(graph):
    with JobLease(graph._repository, "01RUNNING") as lease:
        assert sweep(graph._repository).removed == []
        assert (Path(graph.uri) / lease.folder / "job.json").exists()
    assert leftovers(graph) == []


def test_task_that_outlives_its_job_removes_its_files(graph):
    before = data_files(graph)
    job = begin_job(graph._repository, "main", "append", {}, seconds_max=60)

    def rows():
        yield from pa.table({"code": ["late"]}).to_batches()
        discard(graph._repository, job.id)

    with pytest.raises(Conflict, match="has ended"):
        stage_rows(job, 0, "Shelf", rows())
    assert leftovers(graph) == []
    assert data_files(graph) == before


def test_files_written_after_a_sweep_are_removed_by_age(graph):
    before = data_files(graph)
    job = begin_job(graph._repository, "main", "append", {}, seconds_max=60)
    stage_rows(job, 0, "Shelf", pa.table({"code": ["late"]}).to_batches())
    folder = Path(graph.uri) / job.folder
    (folder / "job.json").unlink()
    assert sweep(graph._repository).removed == []
    hours_ago = time.time() - 7200
    for path in (*folder.iterdir(), folder):
        os.utime(path, (hours_ago, hours_ago))
    assert sweep(graph._repository).removed == [job.id]
    assert leftovers(graph) == []
    assert data_files(graph) == before


# -- row sources -------------------------------------------------------------------------------------


def rows_source(parts: list[pa.Table]) -> RowSource:
    return RowSource(0, lambda job: (stage_rows(job, n, "Shelf", part.to_batches()) for n, part in enumerate(parts)))


def test_rows_in_several_parts(graph):
    parts = [pa.table({"code": ["c", "d"]}), pa.table({"code": pa.array([], pa.utf8())}), pa.table({"code": ["e"]})]
    result = load_source(graph._repository, InlineRunner(), rows_source(parts), LoadRequest("append"))
    assert result.tables == (("node:Shelf", 3),)
    assert ids_of(graph, "Shelf") == ["a", "b", "c", "d", "e"]


def test_wrong_row_is_numbered_over_all_parts(graph):
    parts = [pa.table({"code": ["c", None, "d"]}), pa.table({"code": [None, "e", "c"]})]
    request = LoadRequest("append", set_aside=True)
    result = load_source(graph._repository, InlineRunner(), rows_source(parts), request)
    assert [(reject.line, reject.rule) for reject in result.rejected] == [
        (2, "required"),
        (4, "required"),
        (6, "unique"),
    ]


def test_overwrite_without_rows_empties_a_table(graph):
    empty = [pa.table({"code": pa.array([], pa.utf8())})]
    graph.load([beside("a", "a")], mode="overwrite")
    result = load_source(graph._repository, InlineRunner(), rows_source([]), LoadRequest("overwrite"))
    assert result.tables == ()
    with pytest.raises(ConstraintViolation, match="still points at it"):
        load_source(graph._repository, InlineRunner(), rows_source(empty), LoadRequest("overwrite"))
