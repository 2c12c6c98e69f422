"""The model of large loads: the document shows its tables, and its sizes are those of a real graph."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from bench.scale_lookup import lookup_constants
from bench.scale_model import (
    DOCUMENT,
    TOLERANCE,
    Clock,
    Cluster,
    Constants,
    Speed,
    adjacency_stage,
    bucket_count,
    limits,
    load_stages,
    local,
    measure,
    measured_constants,
    new_graph,
    renewed,
    run_load,
    split_count,
    tables,
    upsert_stages,
    wall_s,
    write_input,
)

from omnigraph.engine.cache import disk_cache
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.pipeline.splits import plan_input

EDGES = 40_000


def test_document_shows_the_tables_of_the_model():
    text = DOCUMENT.read_text()
    assert renewed(text) == text, "run `python -m bench.scale_model --write`"
    assert all(table in text for table in tables().values())


def test_document_without_a_place_for_a_table_is_refused():
    with pytest.raises(ValueError, match="no place for the table 'constants'"):
        renewed("# Scale")


def test_bytes_per_edge_are_those_of_a_graph(tmp_path, tune):
    tune(segment_rows_min=100, id_segments_rows_min=1_000, adjacency_disk_edges_min=1_000)
    path = write_input(tmp_path / "input.jsonl", EDGES)
    graph = new_graph(tmp_path)
    run_load(InlineRunner(), graph, path, "append")
    root = tmp_path / "graph"
    abouts = [*(root / disk_cache.FOLDER).glob("*/about.json")]
    kinds = {about.parent: json.loads(about.read_text())["entry"]["what"][0] for about in abouts}
    found = {
        "input_bytes": path.stat().st_size,
        "disk_bytes": sum(map(_size, (root / "edges", root / "nodes"))),
        "adjacency_bytes": sum(_size(entry) for entry, kind in kinds.items() if kind == "adjacency"),
        "id_index_bytes": sum(_size(entry) for entry, kind in kinds.items() if kind == "ids"),
    }
    expected = {name: getattr(Constants(), name) for name in found}
    assert {name: size / EDGES for name, size in found.items()} == pytest.approx(expected, rel=TOLERANCE)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


@pytest.mark.parametrize(("size", "cores"), [(5 << 20, 4), (20 << 20, 2), (200 << 20, 2)])
def test_splits_are_those_of_the_pipeline(tmp_path, size, cores):
    path = tmp_path / "input.jsonl"
    with path.open("wb") as file:
        file.truncate(size)
    assert split_count(size, cores) == len(plan_input([str(path)], {}, cores).splits)


def test_buckets_grow_with_the_input_up_to_their_limit():
    assert [bucket_count(size, 4) for size in (1, 20 << 20, 10 << 30, 1 << 50)] == [1, 3, 80, 4096]


@pytest.mark.parametrize("edges", [10**5, 10**8, 10**10])
def test_more_cores_help_until_the_driver_is_left(edges):
    constants = Constants()
    for stages in (load_stages, lambda c, e, cluster: upsert_stages(c, e, e // 10, cluster)):
        one, many = stages(constants, edges, Cluster(1, 1)), stages(constants, edges, Cluster(100, 4))
        assert wall_s(many) <= wall_s(one)
        driver = [stage.wall_s for stage in many if stage.name.endswith("(driver)")]
        assert driver == [stage.wall_s for stage in one if stage.name.endswith("(driver)")]


def test_workers_beyond_the_cores_add_nothing(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    assert [local(workers).cores for workers in (1, 2, 4)] == [1, 2, 2]
    assert [local(workers).workers for workers in (1, 2, 4)] == [1, 2, 4]


def test_more_workers_than_cores_cost_their_tasks(monkeypatch):
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {0, 1})
    constants = Constants(task_s=0.5)
    read = {workers: load_stages(constants, 500_000, local(workers))[0] for workers in (2, 4)}
    assert [read[workers].slots for workers in (2, 4)] == [2, 2]
    assert read[4].cpu_s - read[2].cpu_s == pytest.approx(2 * 0.5), "two more splits"


def test_limits_are_reached_by_the_planned_size():
    found = dict(limits(Constants(), Cluster()))
    assert list(found.values()) == sorted(found.values())
    assert min(found.values()) < 10**10


def test_measurement_gives_the_constants_of_the_stages(tmp_path):
    found = measure(InlineRunner(), tmp_path, 400, 1)
    names = measured_constants(found, 400).keys()
    assert names <= Constants.__dataclass_fields__.keys()
    assert {"read", "check", "driver", "adjacency"} <= found.load.cpu_s.keys()
    assert {"read", "scan", "merge", "finalize", "driver"} <= found.upsert.cpu_s.keys()


def test_clock_adds_the_parts_of_one_name():
    clock = Clock()
    clock.add("scan", 1.0, 0.5)
    clock.add("scan", 2.0, 0.25)
    assert (clock.wall_s, clock.cpu_s) == ({"scan": 3.0}, {"scan": 0.75})


def test_speed_scales_the_rows_and_not_the_jobs():
    slow = Speed(rows=2.0, busy=1.0).scaled(Constants())
    assert (slow.read_s, slow.commit_s) == (2 * Constants().read_s, 2 * Constants().commit_s)
    assert (slow.job_s, slow.task_s, slow.disk_bytes) == (Constants().job_s, Constants().task_s, Constants().disk_bytes)


def test_adjacency_is_divided_among_workers():
    constants, edges = Constants(), 10**9
    alone, many = adjacency_stage(constants, edges, Cluster(1, 1)), adjacency_stage(constants, edges, Cluster(100, 4))
    assert (alone.slots, many.slots) == (1, 400)
    assert alone.cpu_s == pytest.approx(constants.adjacency_s * 1000)
    assert many.cpu_s - alone.cpu_s > 400 * 100 * constants.ids_hashed_s, "each task hashes the ids of all nodes"
    in_memory = adjacency_stage(constants, edges, replace(Cluster(100, 4), build_bytes=2**40))
    assert many.cpu_s - in_memory.cpu_s > 1000 * constants.spilled_s
    assert adjacency_stage(constants, 10**6, Cluster(100, 4)).slots == 1, "too few edges for three jobs"


def test_adjacency_has_the_tasks_of_a_load(tmp_path, tune):
    tune(adjacency_divided_edges_min=1, adjacency_disk_edges_min=1, adjacency_sample_pairs=10)
    tune(segment_rows_min=1, segment_part_rows_min=100)
    cluster = Cluster(1, 3, build_bytes=2**30)
    runner = Counting()
    run_load(runner, new_graph(tmp_path), write_input(tmp_path / "input.jsonl", 1000), "append")
    free = replace(Constants(), adjacency_s=0.0, ids_hashed_s=0.0, task_s=1.0)
    assert runner.tasks == {"number_edges": 1, "merge_pairs": 6, "place_values": 6}
    assert adjacency_stage(free, 1000, cluster).cpu_s >= sum(runner.tasks.values()), "small arrays have fewer ranges"


class Counting(InlineRunner):
    """Reports three workers, runs the tasks in this process and counts those of adjacency."""

    parallelism = 3

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[str, int] = {}

    def run(self, step, task, job, work, **more):
        if step in {"ends", "neighbours"}:
            name = inspect.getclosurevars(task).nonlocals["task"].__name__
            self.tasks[name] = self.tasks.get(name, 0) + len(work)
        return super().run(step, task, job, work, **more)


def test_lookups_give_constants_of_the_model(tmp_path):
    found = lookup_constants(tmp_path, 2_000)
    assert found.keys() <= Constants.__dataclass_fields__.keys()
    assert found["ids_hashed_s"] > 0


@pytest.mark.long
@pytest.mark.spark
def test_model_predicts_one_two_and_four_workers(tmp_path):
    """Processor seconds within 30 %, and times, if no other program runs."""
    arguments = ["--check", "--edges", "400000", "--rounds", "1", "--in", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "bench.scale_model", *arguments], capture_output=True, text=True, check=False
    )
    assert done.stdout.count("processor, ") == 6, done.stderr
    assert done.returncode == 0, done.stdout
