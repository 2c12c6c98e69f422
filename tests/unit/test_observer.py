"""The observer: what the engine reports about reads, writes, caches and storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.observer import (
    Phase,
    Progress,
    Step,
    current,
    observed,
    outgoing_headers,
    set_process_observer,
    timed,
)
from omnigraph.versioning.write.transaction import Transaction, WriteOptions
from omnigraph.versioning.write.write import write

SCHEMA = "node Person { name: String @key age: I64? }"
ADD = "query add($name: String) { insert Person { name: $name } }"
COUNT = "query all() { match { $p: Person } return { count($p) as n } }"
ADULTS = "query adults() { match { $p: Person { age: 40 } } return { $p.name } order { $p.name asc } }"


class Recorder:
    """An observer that keeps everything."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.hashes: list[str] = []
        self.names: list[str] = []
        self.steps: list[Step] = []
        self.progress: Progress | None = None

    def planned(self, name: str, plan_hash: Callable[[], str], progress: Progress | None) -> None:
        self.names.append(name)
        self.hashes.append(plan_hash())
        self.progress = progress

    def phase(self, name: Phase, started: float, ended: float, steps: Sequence[Step] = ()) -> None:
        self.steps += steps
        assert ended >= started
        self.events[name] += 1

    def missed(self, cache: str) -> None:
        self.events[f"missed {cache}"] += 1

    def committed(self, kind: str, seconds: float) -> None:
        assert seconds > 0
        self.events[f"committed {kind}"] += 1

    def retried(self) -> None:
        self.events["retried"] += 1

    def headers(self) -> Mapping[str, str]:
        return {"traceparent": "t"}

    def called(self, service: str, operation: str, seconds: float) -> None:
        assert seconds >= 0
        self.events[f"{service} {operation}"] += 1


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.init(tmp_path / "g", SCHEMA)
    graph.mutate(ADD, params={"name": "ana"})
    return graph


def test_a_read_reports_its_plan_and_its_phases(graph: og.Graph) -> None:
    recorder = Recorder()
    with observed(recorder):
        graph.query(ADULTS)
        first = Counter(recorder.events)
        graph.query(ADULTS)
    assert (first["compile"], first["run"], first["missed plans"]) == (1, 1, 1)
    assert first["missed tables"] > 0
    assert (recorder.events["run"], recorder.events["missed plans"]) == (2, 1)
    assert recorder.events["missed tables"] == first["missed tables"]
    assert recorder.hashes == [graph.explain(ADULTS).plan_hash] * 2
    assert recorder.names == ["adults"] * 2


def test_a_page_reports_as_a_read_does(graph: og.Graph) -> None:
    recorder = Recorder()
    with observed(recorder):
        graph.query(ADULTS, page=5)
    assert (recorder.events["compile"], recorder.events["run"], len(recorder.hashes)) == (1, 1, 1)


def test_a_profile_reports_its_steps(graph: og.Graph) -> None:
    recorder = Recorder()
    with observed(recorder):
        assert outgoing_headers() == {"traceparent": "t"}
        graph.query(ADULTS)
        assert recorder.steps == []
        graph.profile(ADULTS)
    assert next(step.name for step in recorder.steps) == "NodeScan"
    assert outgoing_headers() == {}


def test_a_running_query_shows_its_rows(graph: og.Graph) -> None:
    graph.load([{"type": "Person", "data": {"name": f"p{n}"}} for n in range(7)], mode="append")
    recorder = Recorder()
    with observed(recorder):
        graph.query("query every() { match { $p: Person } return { $p.name } }")
    assert recorder.progress is not None
    assert recorder.progress.rows == 8


def test_a_write_reports_its_phases_its_commit_and_its_storage(graph: og.Graph) -> None:
    recorder = Recorder()
    with observed(recorder):
        graph.mutate(ADD, params={"name": "ben"})
    events = recorder.events
    assert {events[name] for name in ("compile", "run", "stage", "publish", "committed mutation")} == {1}
    assert events["storage table_write"] == 1
    assert events["storage manifest_publish"] == 1
    assert recorder.hashes == [graph.explain(ADD).plan_hash]


def test_a_write_that_starts_over_reports_it(graph: og.Graph) -> None:
    recorder = Recorder()
    attempts = 0

    def prepare(_: Transaction) -> None:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            graph.mutate(ADD, params={"name": "faster"})

    with observed(recorder):
        write(graph._context.repository, prepare, WriteOptions(always_commit=True))
    assert attempts == 2
    assert (recorder.events["retried"], recorder.events["committed write"]) == (1, 1)


def test_the_caches_count_hits_and_misses(graph: og.Graph) -> None:
    plans, tables = graph._context.plans, graph._context.cache
    graph.query(COUNT)
    before = (plans.hits, plans.misses, tables.misses)
    graph.query(COUNT)
    assert (plans.hits, plans.misses, tables.misses) == (before[0] + 1, before[1], before[2])
    assert len(plans) >= 1


def test_the_observer_of_the_process_receives_what_no_operation_does() -> None:
    everything, own = Recorder(), Recorder()

    @timed("embedding", "embed")
    def work() -> int:
        return 7

    assert current() is None
    assert work() == 7
    set_process_observer(everything)
    try:
        assert work() == 7
        with observed(own):
            assert work() == 7
    finally:
        set_process_observer(None)
    assert everything.events == own.events == Counter({"embedding embed": 1})
