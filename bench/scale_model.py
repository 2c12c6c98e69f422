"""A model of the cost of bulk loads on many executors, computed from measured constants.

`Constants` has what was measured, `load_stages` and `upsert_stages` compute the stages of a load and of an upsert on a
`Cluster`, and `limits` the sizes at which something breaks. docs/scale.md has the tables that `tables` makes:
`python -m bench.scale_model --write` renews them, and a test compares them.

`--measure` prints the constants of this machine; `bench.scale_lookup` measures those of many nodes. `--check` loads and
upserts edges with 1, 2 and 4 local workers and compares the time with the model (target: within 30 %). The speed of the
machine is measured before and after each measurement, with the same tasks in as many processes at once as there are
workers: they share caches, and other programs slow them down. Processor seconds are always judged, times only if the
machine is idle.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, fields, replace
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import omnigraph as og
from bench.pipeline import spent
from bench.storage import folder
from omnigraph.engine import tuning
from omnigraph.engine.adjacency.parallel_build import ENDS_KIND, KINDS, pairs_at_once, rows_at_once
from omnigraph.engine.cache.shared_arrays import SharedArray
from omnigraph.graph_handle import context_of
from omnigraph.operations.derived import build_after_load
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.pipeline.adjacency_task import build_adjacency
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import InlineRunner, Runner
from omnigraph.pipeline.segment_task import build_segments
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource
from omnigraph.spark import SessionOptions, SparkRunner, open_session
from omnigraph.spark.runner import use_one_thread
from omnigraph.versioning.write.transaction import WriteOptions

DOCUMENT = Path(__file__).parent.parent / "docs" / "scale.md"
SCHEMA = """\
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: Date?  weight: F32? }
"""
EDGES_PER_NODE = 10
NODE_ID_BYTES = 74
"""Memory that a lookup needs for the id of a node of 17 bytes (`edge_ends.bucket_count`)."""
TOLERANCE = 0.3
BUSY_MAX = 1.3
"""Times are not judged if a processor second takes longer than this."""
_MILLION = 1_000_000


def _constant(default: float, unit: str, meaning: str) -> Any:
    return field(default=default, metadata={"unit": unit, "meaning": meaning})


@dataclass(frozen=True)
class Constants:
    """Measured constants. Times are processor seconds of one core."""

    input_bytes: float = _constant(138, "bytes per edge", "JSONL, with an explicit id and the tenth part of a node")
    disk_bytes: float = _constant(35, "bytes per edge", "Lance files of edges and nodes")
    adjacency_bytes: float = _constant(17.6, "bytes per edge", "mapped: neighbours in both directions, ends of edges")
    id_index_bytes: float = _constant(8, "bytes per edge", "mapped: id index")
    read_s: float = _constant(2.2, "s per million records", "decode, check, write fragments and keys")
    check_s: float = _constant(0.8, "s per million records", "ids, ends of edges")
    index_s: float = _constant(0.17, "s per million edges", "id index")
    adjacency_s: float = _constant(0.5, "s per million edges", "neighbours and ends of edges, on the workers")
    spilled_s: float = _constant(0.4, "s per million edges", "added if the ids of nodes exceed the memory of a task")
    ids_written_s: float = _constant(0.11, "s per million nodes", "write these ids to files by hash")
    ids_hashed_s: float = _constant(0.07, "s per million nodes and task", "read and hash the ids of nodes")
    scan_s: float = _constant(0.12, "s per million committed rows", "find the rows of an upsert")
    merge_s: float = _constant(1.0, "s per million upserted rows", "apply records, write fragments")
    delete_s: float = _constant(0.2, "s per million upserted rows", "mark replaced rows")
    commit_s: float = _constant(0.19, "s per million committed rows", "commit of an upsert by Lance, in the driver")
    commit_bytes: float = _constant(52, "bytes per upserted row", "memory of that commit in the driver")
    unfiltered_s: float = _constant(
        0.31,
        "s per million committed rows",
        f"added if more than {tuning.Tuning.id_filter_rows_max:,} rows are upserted",
    )
    open_s: float = _constant(0.00012, "s per file and bucket", "open a file of shuffled keys on a local disk")
    job_s: float = _constant(0.12, "s per job", "start and end of a Spark job")
    task_s: float = _constant(0.02, "s per task", "start and end of a Spark task; open its table and files")
    publish_s: float = _constant(0.1, "s per load", "plan, table commits and publish, in the driver")


@dataclass(frozen=True)
class Cluster:
    """Executors of equal size; a Python worker uses one core."""

    executors: int = 100
    cores_each: int = 4
    cores_max: int | None = None
    """The cores that all workers share; None if each worker has its own."""
    build_bytes: int = 2**30
    """The memory of a task for the construction of a structure; a quarter of the share of its worker."""

    @property
    def workers(self) -> int:
        """The number of tasks that are started at once; the work is divided among them."""
        return self.executors * self.cores_each

    @property
    def cores(self) -> int:
        """The number of tasks that make progress at once."""
        return self.workers if self.cores_max is None else min(self.workers, self.cores_max)


def local(workers: int) -> Cluster:
    """Workers on this machine: more workers than cores take turns."""
    return Cluster(workers, 1, len(os.sched_getaffinity(0)))


@dataclass(frozen=True)
class Stage:
    """The cost of a stage. `slots` is the number of cores that it can use; 1 for the driver."""

    name: str
    cpu_s: float
    slots: int
    jobs_s: float = 0.0

    @property
    def wall_s(self) -> float:
        """Time from start to end."""
        return self.jobs_s + self.cpu_s / self.slots


def split_count(size: float, cores: int) -> int:
    """The number of splits of an input, as `pipeline.splits` divides it."""
    limits = tuning.current
    return math.ceil(size / max(limits.split_bytes_min, min(limits.split_bytes_max, size / cores)))


def bucket_count(size: float, cores: int) -> int:
    """The number of buckets of a load, as `pipeline.load` chooses it."""
    limits = tuning.current
    busy = min(cores, math.ceil(size / limits.bucket_bytes_min))
    return max(1, busy, min(limits.buckets_max, math.ceil(size / limits.bucket_bytes)))


def load_stages(constants: Constants, edges: int, cluster: Cluster) -> list[Stage]:
    """The stages of a load of edges and a tenth as many nodes into an empty graph."""
    c, cores, workers = constants, cluster.cores, cluster.workers
    millions = edges / _MILLION
    records = millions * (1 + 1 / EDGES_PER_NODE)
    size = edges * c.input_bytes
    splits, buckets = split_count(size, workers), bucket_count(size, workers)
    # A split has four files: ids of nodes and of edges, and both ends.
    opened = 4 * splits * buckets * c.open_s
    parts = min(workers, tuning.current.segments_max // 2) if edges >= 2 * tuning.current.segment_part_rows_min else 1
    index = Stage("id index", millions * c.index_s, 1)
    if parts > 1:
        index = Stage("id index", index.cpu_s + parts * c.task_s, min(cores, parts), c.job_s)
    return [
        Stage("read", records * c.read_s + splits * c.task_s, min(cores, splits), c.job_s),
        Stage("check", records * c.check_s + opened + buckets * c.task_s, min(cores, buckets), c.job_s),
        index,
        adjacency_stage(c, edges, cluster),
        Stage("publish (driver)", c.publish_s, 1),
    ]


def adjacency_stage(constants: Constants, edges: int, cluster: Cluster) -> Stage:
    """The neighbours and ends of edges, as `pipeline.adjacency_task` divides them."""
    c, workers, memory = constants, cluster.workers, cluster.build_bytes
    millions, nodes = edges / _MILLION, edges // EDGES_PER_NODE
    if workers < 2 or edges < tuning.current.adjacency_divided_edges_min:
        return Stage("adjacency", millions * c.adjacency_s, 1)
    array = SharedArray(Path(), ENDS_KIND, edges)
    numbered = math.ceil(edges / len(next(array.ranges(rows_at_once(memory, edges, workers)))))
    merged = max(min(workers, edges // tuning.current.segment_part_rows_min), math.ceil(edges / pairs_at_once(memory)))
    tasks = numbered + 2 * merged + 2 * len(KINDS) * workers
    cpu = millions * c.adjacency_s + numbered * nodes / _MILLION * c.ids_hashed_s + tasks * c.task_s
    jobs = 3
    if nodes * NODE_ID_BYTES > memory:
        cpu += millions * c.spilled_s + nodes / _MILLION * c.ids_written_s + workers * c.task_s
        jobs += 1
    return Stage("adjacency", cpu, min(cluster.cores, numbered), jobs * c.job_s)


def upsert_stages(constants: Constants, edges: int, upserted: int, cluster: Cluster) -> list[Stage]:
    """The stages of an upsert of existing edges."""
    c, cores, workers = constants, cluster.cores, cluster.workers
    millions, changed = edges / _MILLION, upserted / _MILLION
    size = upserted * c.input_bytes
    buckets = bucket_count(size + edges * (1 + 1 / EDGES_PER_NODE) * 64, workers)
    splits = split_count(size, workers)
    fragments = math.ceil(edges / tuning.current.staged_rows)
    few = upserted <= tuning.current.id_filter_rows_max
    scanned = c.scan_s if few else c.scan_s + c.unfiltered_s
    ends = millions / EDGES_PER_NODE * c.scan_s
    opened = 4 * splits * buckets * c.open_s
    checked = changed * c.check_s + ends + opened + 2 * buckets * c.task_s
    return [
        Stage("read", changed * c.read_s + splits * c.task_s, min(cores, splits), c.job_s),
        Stage("scan", millions * scanned + fragments * c.task_s, cores, c.job_s),
        Stage("merge", changed * c.merge_s + buckets * c.task_s, min(cores, buckets), c.job_s),
        Stage("check", checked, min(cores, buckets), 2 * c.job_s),
        Stage("delete", changed * c.delete_s + fragments * c.task_s, cores, c.job_s),
        Stage("commit (driver)", millions * c.commit_s, 1),
        Stage("publish (driver)", c.publish_s, 1),
    ]


def wall_s(stages: Sequence[Stage]) -> float:
    """The time of all stages, one after the other."""
    return sum(stage.wall_s for stage in stages)


def cpu_s(stages: Sequence[Stage]) -> float:
    """The processor seconds of all stages, in tasks and in the driver; those of the JVM are not part of it."""
    return sum(stage.cpu_s for stage in stages)


# -- tables of the document --------------------------------------------------------------------------

SIZES = (10**8, 10**9, 10**10)
UPSERT_SHARE = 100
"""One row in this many is upserted."""
_DRIVER_BYTES = 16 * 2**30
_ROWS_MAX = 2**31
"""Row numbers of the read engine have 32 bits with a sign."""
_PATIENCE_S = 3600.0


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _power(number: float) -> str:
    exponent = math.floor(math.log10(number))
    factor = number / 10**exponent
    digits = str(exponent).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{digits}" if f"{factor:.1f}" == "1.0" else f"{factor:.1f} · 10{digits}"


def _duration(seconds: float) -> str:
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.1f} s"


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


def constants_table(constants: Constants) -> str:
    """The measured constants."""
    rows = [
        (one.metadata["meaning"], f"{getattr(constants, one.name):g}", str(one.metadata["unit"]))
        for one in fields(constants)
    ]
    return _table(("what", "value", "unit"), rows)


def rates_table(constants: Constants) -> str:
    """Rows per second and core."""
    c = constants
    steps = {
        "load": c.read_s,
        "validate": c.check_s,
        "index": c.index_s,
        "adjacency": c.adjacency_s,
        "merge": c.merge_s,
    }
    return _table(("step", "rows per second and core"), [(name, f"{_MILLION / s:,.0f}") for name, s in steps.items()])


def sizes_table(constants: Constants, cluster: Cluster) -> str:
    """The size of the data."""
    c = constants
    mapped = c.adjacency_bytes + c.id_index_bytes
    figures: dict[str, Callable[[int], str]] = {
        "input": lambda edges: _bytes(edges * c.input_bytes),
        "tables on disk": lambda edges: _bytes(edges * c.disk_bytes),
        "search structures on disk, mapped": lambda edges: _bytes(edges * mapped),
        "fragments": lambda edges: f"{math.ceil(edges / tuning.current.staged_rows):,}",
        "splits × buckets": lambda edges: (
            f"{split_count(edges * c.input_bytes, cluster.workers):,} × "
            f"{bucket_count(edges * c.input_bytes, cluster.workers):,}"
        ),
        "input per bucket": lambda edges: _bytes(
            edges * c.input_bytes / bucket_count(edges * c.input_bytes, cluster.workers)
        ),
    }
    rows = [(name, *(make(edges) for edges in SIZES)) for name, make in figures.items()]
    return _table(("edges", *map(_power, SIZES)), rows)


def stages_table(make: Callable[[int], list[Stage]]) -> str:
    """The time of each stage at each size."""
    stages = [make(edges) for edges in SIZES]
    rows = [(one.name, *(_duration(found[at].wall_s) for found in stages)) for at, one in enumerate(stages[0])]
    total = ("**all**", *(f"**{_duration(wall_s(found))}**" for found in stages))
    return _table(("stage", *(f"{_power(edges)} edges" for edges in SIZES)), [*rows, total])


def limits(constants: Constants, cluster: Cluster) -> list[tuple[str, float]]:
    """What breaks, and the number of edges from which on it does."""
    c, tuned = constants, tuning.current
    size = tuned.buckets_max * tuned.bucket_bytes
    return sorted(
        [
            ("an edge table has more rows than the read engine can number (2³¹)", float(_ROWS_MAX)),
            ("adjacency takes an hour, because each task hashes the ids of all nodes", _adjacency_hour(c, cluster)),
            (
                f"the id index takes an hour on {tuned.segments_max // 2} workers",
                _PATIENCE_S * (tuned.segments_max // 2) / c.index_s * _MILLION,
            ),
            (
                "the commit of an upsert takes an hour, because it visits all row ids",
                _PATIENCE_S / c.commit_s * _MILLION,
            ),
            (
                f"the commit of an upsert of one row in {UPSERT_SHARE} needs 16 GiB in the driver",
                _DRIVER_BYTES / c.commit_bytes * UPSERT_SHARE,
            ),
            (
                f"an upsert of one row in {UPSERT_SHARE} exceeds the id filter; all committed ids are shuffled",
                float(tuned.id_filter_rows_max * UPSERT_SHARE),
            ),
            (f"a load has {tuned.buckets_max:,} buckets, and their size grows with the input", size / c.input_bytes),
            ("opening files of keys takes as long as checking the rows", _opens_as_long_as_checks(c, cluster)),
        ],
        key=lambda one: one[1],
    )


def _opens_as_long_as_checks(constants: Constants, cluster: Cluster) -> float:
    """The number of edges from which on the check of a load mostly opens files: splits × buckets is quadratic."""

    def is_reached(edges: float) -> bool:
        check = load_stages(constants, int(edges), cluster)[1]
        rows_s = edges / _MILLION * (1 + 1 / EDGES_PER_NODE) * constants.check_s
        rows_s += bucket_count(edges * constants.input_bytes, cluster.workers) * constants.task_s
        return check.cpu_s > 2 * rows_s

    return _first(is_reached)


def _adjacency_hour(constants: Constants, cluster: Cluster) -> float:
    """The number of edges from which on adjacency takes an hour: tasks × nodes is quadratic."""
    return _first(lambda edges: adjacency_stage(constants, int(edges), cluster).wall_s > _PATIENCE_S)


def _first(is_reached: Callable[[float], bool]) -> float:
    """The least number of edges for which a condition holds, if it holds for all larger ones."""
    low, high = 1.0e6, 1.0e14
    for _ in range(60):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if is_reached(middle) else (middle, high)
    return low


def limits_table(constants: Constants, cluster: Cluster) -> str:
    """What breaks first."""
    return _table(("from edges", "what happens"), [(_power(at), what) for what, at in limits(constants, cluster)])


def tables(constants: Constants | None = None, cluster: Cluster | None = None) -> dict[str, str]:
    """Name → table, for the document."""
    c, cluster = constants or Constants(), cluster or Cluster()
    return {
        "constants": constants_table(c),
        "rates": rates_table(c),
        "sizes": sizes_table(c, cluster),
        "load": stages_table(lambda edges: load_stages(c, edges, cluster)),
        "upsert": stages_table(lambda edges: upsert_stages(c, edges, edges // UPSERT_SHARE, cluster)),
        "limits": limits_table(c, cluster),
    }


def renewed(text: str) -> str:
    """The text of the document with the tables of the model."""
    for name, table in tables().items():
        first, last = f"<!-- table: {name} -->\n", f"<!-- end: {name} -->"
        before, _, rest = text.partition(first)
        _, _, after = rest.partition(last)
        if not rest or last not in rest:
            raise ValueError(f"the document has no place for the table '{name}'")
        text = f"{before}{first}\n{table}\n\n{last}{after}"
    return text


# -- measurement -------------------------------------------------------------------------------------


def write_input(path: Path, edges: int, step: int = 1) -> Path:
    """Write persons and edges between them; with `step`, only some edges, with other weights."""
    nodes = max(edges // EDGES_PER_NODE, 1)
    ends = np.random.default_rng(7).integers(0, nodes, (edges, 2)).tolist()
    with path.open("w") as file:
        if step == 1:
            file.writelines(
                f'{{"type":"Person","data":{{"name":"person-{n:08}","age":{n % 90}}}}}\n' for n in range(nodes)
            )
        for number in range(0, edges, step):
            a, b = ends[number]
            file.write(
                f'{{"edge":"Knows","from":"person-{a:08}","to":"person-{b:08}","data":{{"id":"edge-{number:010}",'
                f'"since":"20{a % 24:02}-01-{b % 28 + 1:02}","weight":{(a + step) % 100 / 100}}}}}\n'
            )
    return path


@dataclass
class Clock:
    """Wall-clock seconds of the parts of a run, and processor seconds of its tasks."""

    wall_s: dict[str, float] = field(default_factory=dict)
    cpu_s: dict[str, float] = field(default_factory=dict)

    def add(self, name: str, wall: float, cpu: float) -> None:
        """Add a part."""
        self.wall_s[name] = self.wall_s.get(name, 0.0) + wall
        self.cpu_s[name] = self.cpu_s.get(name, 0.0) + cpu

    def timed(self, name: str, run: Callable[[], Any]) -> Any:
        """Run a part in this process."""
        wall, cpu = time.perf_counter(), time.process_time()
        found = run()
        self.add(name, time.perf_counter() - wall, time.process_time() - cpu)
        return found


class _Clocked:
    """Runs tasks and measures them where they run."""

    def __init__(self, runner: Runner, clock: Clock) -> None:
        self._runner, self._clock = runner, clock
        self.parallelism = runner.parallelism
        self.on_this_machine = runner.on_this_machine

    def run(self, step: str, task: Any, job: Any, work: Sequence[Any], **more: Any) -> Iterator[Any]:
        def measured(job: Any, unit: Any) -> tuple[Any, float]:
            import time  # noqa: PLC0415 (runs in a worker)

            start = time.process_time()
            return task(job, unit), time.process_time() - start

        start = time.perf_counter()
        answers = list(self._runner.run(step, measured, job, work, **more))
        if work:
            self._clock.add(step, time.perf_counter() - start, sum(seconds for _, seconds in answers))
        return iter([answer for answer, _ in answers])


def run_load(runner: Runner, graph: Any, path: Path, mode: str) -> tuple[float, Clock]:
    """Load a file; return the time, and the time of each part."""
    clock = Clock()
    clocked = _Clocked(runner, clock)
    context = context_of(graph)
    request = LoadRequest("merge" if mode == "merge" else "append", WriteOptions("main"), environ={})
    start, cpu = time.perf_counter(), time.process_time()
    source = FileSource(plan_input([str(path)], {}, runner.parallelism))
    result = load_source(context.repository, clocked, source, request)
    inline = sum(clock.cpu_s.values()) if isinstance(runner, InlineRunner) else 0.0
    driver = time.perf_counter() - start - sum(clock.wall_s.values())
    clock.add("driver", driver, time.process_time() - cpu - inline)
    result = build_segments(context, clocked, result)
    result = build_adjacency(context, clocked, result)
    clock.timed("adjacency", lambda: build_after_load(context, result))
    return time.perf_counter() - start, clock


def new_graph(root: Path) -> Any:
    """An empty graph."""
    shutil.rmtree(root / "graph", ignore_errors=True)
    return og.init(root / "graph", SCHEMA, environ={})


@dataclass(frozen=True)
class Measured:
    """The best time of a load and of an upsert of a tenth of its edges, and the parts of these runs."""

    load_s: float
    upsert_s: float
    load: Clock
    upsert: Clock


def measure(runner: Runner, root: Path, edges: int, rounds: int) -> Measured:
    """Load and upsert several times and return the best times."""
    rows, changed = root / f"{edges}.jsonl", root / f"{edges}-changed.jsonl"
    if not changed.exists():
        write_input(rows, edges)
        write_input(changed, edges, 10)
    best: Measured | None = None
    for _ in range(rounds):
        graph = new_graph(root)
        load_s, load = run_load(runner, graph, rows, "append")
        upsert_s, upsert = run_load(runner, graph, changed, "merge")
        if best is None:
            best = Measured(load_s, upsert_s, load, upsert)
        if load_s < best.load_s:
            best = replace(best, load_s=load_s, load=load)
        if upsert_s < best.upsert_s:
            best = replace(best, upsert_s=upsert_s, upsert=upsert)
    assert best is not None
    return best


def measured_constants(found: Measured, edges: int) -> dict[str, float]:
    """The constants that a measurement gives, in seconds per million."""
    millions, changed = edges / _MILLION, edges / _MILLION / 10
    records = millions * (1 + 1 / EDGES_PER_NODE)
    load, upsert = found.load.cpu_s, found.upsert.cpu_s
    return {
        "read_s": load["read"] / records,
        "check_s": load["check"] / records,
        "index_s": load.get("index", 0.0) / millions,
        "adjacency_s": sum(load.get(part, 0.0) for part in ("ends", "neighbours", "adjacency")) / millions,
        "scan_s": upsert["scan"] / millions,
        "merge_s": upsert["merge"] / changed,
        "delete_s": upsert["finalize"] / changed,
        "commit_s": upsert["driver"] / millions,
    }


def measured_task_s(runner: Runner) -> float:
    """The processor seconds of a Spark task that does nothing, of all processes."""
    few, many = 1, 65

    def seconds(tasks: int) -> float:
        return median(spent(lambda: list(runner.run("empty", _nothing, None, range(tasks)))).cpu_s for _ in range(5))

    seconds(many)  # Start the workers.
    return (seconds(many) - seconds(few)) / (many - few)


def _nothing(job: None, unit: int) -> int:
    del job
    return unit


@dataclass(frozen=True)
class Speed:
    """The speed of a machine, measured with the tasks in a process, without Spark."""

    rows: float
    """Processor seconds per row, relative to the constants."""
    busy: float
    """Time per processor second: 1 on an idle machine."""

    def scaled(self, constants: Constants) -> Constants:
        """The constants with the row times of this machine; the times of Spark's jobs and tasks stay."""
        times = [one.name for one in fields(constants) if one.metadata["unit"].startswith("s per million")]
        return replace(constants, **{name: self.rows * getattr(constants, name) for name in times})


def in_process(constants: Constants, edges: int) -> list[Stage]:
    """The stages of a load and an upsert by the tasks in this process, without Spark."""
    constants, alone = replace(constants, job_s=0.0, task_s=0.0), Cluster(1, 1)
    return [*load_stages(constants, edges, alone), *upsert_stages(constants, edges, edges // 10, alone)]


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Limit the libraries of new processes to one thread, as in the workers of Spark."""
    before = dict(os.environ)
    use_one_thread()
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def speed(root: Path, edges: int, processes: int) -> Speed:
    """The speed while several processes work at once: they share caches, and other programs slow them down."""
    roots = [root / f"process-{number}" for number in range(processes)]
    with one_thread_each(), get_context("spawn").Pool(processes) as pool:
        times = pool.starmap(_alone, [(one, edges) for one in roots], chunksize=1)
    wall, cpu = (sum(found) / len(found) for found in zip(*times, strict=True))
    # More processes than cores take turns, which the stages account for.
    return Speed(cpu / cpu_s(in_process(Constants(), edges)), wall / cpu * local(processes).cores / processes)


def _alone(root: Path, edges: int) -> tuple[float, float]:
    root.mkdir(exist_ok=True)
    measure(InlineRunner(), root, edges, 1)  # Import modules, fill caches.
    start = time.process_time()
    found = measure(InlineRunner(), root, edges, 1)
    return found.load_s + found.upsert_s, time.process_time() - start


@dataclass(frozen=True)
class Checked:
    """A measured time and the one that the model expects on this machine."""

    name: str
    seconds: float
    expected: float
    judged: bool = True
    """False for a time on a busy machine: other programs determine it."""

    @property
    def ratio(self) -> float:
        """The measured time relative to the expected one."""
        return self.seconds / self.expected


def check(root: Path, edges: int, workers: Sequence[int], rounds: int) -> Iterator[Checked]:
    """Yield the times of loads and upserts with some numbers of workers.

    The model predicts processor seconds, and from them the time on an idle machine. The row times are those of one
    machine, so the speed of this one is measured before and after.
    """
    for count in workers:
        cluster = local(count)
        with open_session(SessionOptions(master=f"local[{count},4]")) as spark:
            runner = SparkRunner(spark)
            for _ in range(rounds):
                before = speed(root, edges // 4, count)
                measure(runner, root, edges, 1)  # Start all workers: Spark ends those that were idle for a minute.
                found = measure(runner, root, edges, 1)
                after = speed(root, edges // 4, count)
                now = Speed((before.rows + after.rows) / 2, (before.busy + after.busy) / 2)
                constants = now.scaled(Constants())
                load = load_stages(constants, edges, cluster)
                upsert = upsert_stages(constants, edges, edges // 10, cluster)
                idle = now.busy < BUSY_MAX
                yield Checked(f"load, {count} workers", found.load_s, now.busy * wall_s(load), idle)
                yield Checked(f"upsert, {count} workers", found.upsert_s, now.busy * wall_s(upsert), idle)
                used = sum(found.load.cpu_s.values()) + sum(found.upsert.cpu_s.values())
                yield Checked(f"processor, {count} workers", used, cpu_s([*load, *upsert]))


# -- command -----------------------------------------------------------------------------------------


def main(arguments: list[str]) -> int:
    """Print the tables, renew the document, or measure."""
    parser = argparse.ArgumentParser("python -m bench.scale_model")
    parser.add_argument("--write", action="store_true", help="renew the tables of docs/scale.md")
    parser.add_argument("--measure", action="store_true", help="print the constants of this machine")
    parser.add_argument("--check", action="store_true", help="compare the model with loads on 1, 2 and 4 local workers")
    parser.add_argument("--edges", type=int, default=2_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in", dest="root", type=Path, help="a folder that keeps the inputs from run to run")
    given = parser.parse_args(arguments)
    if given.write:
        DOCUMENT.write_text(renewed(DOCUMENT.read_text()))
        return 0
    if not (given.measure or given.check):
        print("\n\n".join(tables().values()))
        return 0
    with nullcontext(given.root) if given.root else folder() as root:
        root.mkdir(parents=True, exist_ok=True)
        if given.measure:
            with open_session(SessionOptions(master="local[2,4]")) as spark:
                runner = SparkRunner(spark)
                measure(runner, root, given.edges // 10, 1)
                best = measure(runner, root, given.edges, given.rounds)
                print(f"  {'task_s, empty':<20} {measured_task_s(runner):10.3f}", flush=True)
            for name, value in measured_constants(best, given.edges).items():
                print(f"  {name:<20} {value:10.3f}", flush=True)
            return 0
        found: dict[str, list[Checked]] = {}
        for one in check(root, given.edges, (1, 2, 4), given.rounds):
            found.setdefault(one.name, []).append(one)
            busy = "" if one.judged else ", the machine is busy"
            print(f"  {one.name:<24} {one.seconds:8.2f} s, expected {one.expected:8.2f} s{busy}", flush=True)
    ratios = {name: median(one.ratio for one in runs) for name, runs in found.items()}
    judged = [name for name, runs in found.items() if all(one.judged for one in runs)]
    for name, ratio in ratios.items():
        print(f"  {name:<24} median ratio {ratio:5.2f}{'' if name in judged else ', not judged'}")
    return 0 if all(abs(ratios[name] - 1) <= TOLERANCE for name in judged) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
