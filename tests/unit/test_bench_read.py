"""The read benchmark on its smallest graph: every workload runs and has the answers of a second system."""

from __future__ import annotations

import pytest
from bench.read import before
from bench.read.report import OURS, Line, Timing, short, table
from bench.read.side_by_side import WORKLOADS, run
from bench.read.workloads import Workload


def test_every_workload_has_the_answer_of_sqlite(tmp_path):
    lines, peaks, graphs = run("XS", tmp_path, [OURS, "sqlite"], rounds=1, seconds=0)
    assert [line.workload for line in lines] == list(WORKLOADS)
    for line in lines:
        assert set(line.timings) == ({OURS, "sqlite"} if line.workload.sqlite else {OURS})
    assert set(peaks) == {OURS, "sqlite"}
    assert graphs == {OURS}
    shown = table(lines, [OURS, "sqlite"], graphs)
    assert all(workload.name in shown for workload in WORKLOADS)


def test_workloads_below_target_are_reported_by_name():
    def line(name: str, **ms: float) -> Line:
        workload = Workload(name, "", at_least=2, graph_peers_only=name == "graph only")
        return Line(workload, {system: Timing(p50, p50) for system, p50 in ms.items()})

    lines = [
        line("fast", omnigraph=1, kuzu=2),
        line("slow", omnigraph=1, kuzu=1.9, sqlite=9),
        line("graph only", omnigraph=1, kuzu=3, sqlite=0.1),
        line("alone", omnigraph=1),
    ]
    assert short(lines, frozenset({OURS, "kuzu"})) == ["slow"]
    assert "SHORT" in table(lines, [OURS, "kuzu", "sqlite"], frozenset({OURS, "kuzu"})).splitlines()[2]


@pytest.mark.skipif(not (before.ROOT / ".git").exists(), reason="an older commit is needed")
def test_an_older_commit_runs_the_same_workloads(tmp_path):
    found = before.compare("XS", tmp_path, "HEAD", rounds=2, seconds=0, only="hop")
    assert [one.name for one in found if "BM25" in one.name] == ["BM25 top 10 behind a hop"]
    assert all(one.now_ms > 0 and len(one.ratios) == 2 for one in found)
    assert not [path for path in tmp_path.iterdir() if path.name != "XS"], "temporary files must be removed"


def test_regressions_are_reported_by_name():
    found = [before.Compared("same", 1.0, 1.0, (1.0, 1.04, 2.0)), before.Compared("worse", 1.0, 1.2, (1.1, 1.2, 0.9))]
    shown = before.table(found, "0123456789abcdef").splitlines()
    assert [line.endswith("SLOWER") for line in shown] == [False, False, True, False]
    assert "1.07" in shown[-1]
