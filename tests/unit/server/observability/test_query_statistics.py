"""Statistics of plans: sums, order, the window of an hour, and bounds."""

from __future__ import annotations

from omnigraph.server.observability.query_statistics import PLANS_MAX, PlanStatistics, QueryStatistics

START = 1_800_000_000.0


def run(plan: str, seconds: float, *, query: str | None = None, rows: int = 0, graph: str = "kb") -> PlanStatistics:
    return PlanStatistics(graph, plan, query, 1, seconds, seconds, rows)


def test_plans_are_summed_and_ordered_by_time() -> None:
    statistics = QueryStatistics()
    statistics.add(run("a", 1.0, query="first", rows=2), START)
    statistics.add(run("b", 5.0), START + 60)
    statistics.add(run("a", 3.0, query="second", rows=4), START + 120)
    statistics.add(run("a", 3.0, graph="other"), START + 120)
    found = statistics.top(20, START + 120)
    assert [(plan.graph, plan.plan_hash, plan.seconds) for plan in found] == [
        ("kb", "b", 5.0),
        ("kb", "a", 4.0),
        ("other", "a", 3.0),
    ]
    assert (found[1].count, found[1].max_s, found[1].rows, found[1].query) == (2, 3.0, 6, "second")
    assert len(statistics.top(1, START + 120)) == 1


def test_what_is_older_than_an_hour_is_forgotten() -> None:
    statistics = QueryStatistics()
    statistics.add(run("a", 1.0), START)
    assert statistics.top(20, START + 59 * 60)
    assert not statistics.top(20, START + 60 * 60)
    statistics.add(run("a", 2.0), START + 60 * 60)
    assert [plan.seconds for plan in statistics.top(20, START + 60 * 60)] == [2.0]


def test_the_plans_of_a_minute_are_bounded() -> None:
    statistics = QueryStatistics()
    for number in range(PLANS_MAX + 10):
        statistics.add(run(f"p{number}", 1.0), START)
    statistics.add(run("p0", 1.0), START)
    assert len(statistics.top(PLANS_MAX * 2, START)) == PLANS_MAX
    assert statistics.top(1, START)[0].count == 2


def test_reading_changes_nothing() -> None:
    statistics = QueryStatistics()
    for second in (0, 60):
        statistics.add(run("a", 1.0), START + second)
    assert statistics.top(1, START + 60) == statistics.top(1, START + 60)
