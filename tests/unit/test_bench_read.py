"""The read benchmark on its smallest graph: every workload runs and has the answers of a second system."""

from __future__ import annotations

import pytest
from bench.read import acceptance, before
from bench.read.report import OURS, Line, Timing, short, table
from bench.read.side_by_side import WORKLOADS, Disagreement, compare, run
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
        workload = Workload(name, (), "", at_least=2, graph_peers_only=name == "graph only")
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


def test_formulations_and_new_processes_have_the_answers_of_sqlite(tmp_path):
    chosen = [one for one in WORKLOADS if one.name in ("1 hop from a key", "nearest 10")]
    found = acceptance.accept("XS", tmp_path, [OURS, "sqlite"], chosen, rounds=1, seconds=0, runs=1)
    assert [set(one.peers) for one in found] == [{"sqlite"}, set()]
    assert all(len(one.forms) >= 3 and 0 < one.best <= one.worst for one in found[:1])
    assert [set(one.first) for one in found] == [{OURS, "sqlite"}, {OURS}]
    assert all(one.name in acceptance.table(found) for one in found)


def test_missed_requirements_are_named():
    def accepted(name: str, peer: float, sqlite: float, first: float) -> acceptance.Accepted:
        peers = {"kuzu": peer, "sqlite": sqlite}
        return acceptance.Accepted(name, {"written": 1.0, "backwards": 9.0}, peers, {OURS: 1.0, "kuzu": first})

    assert list(accepted("triangles", 2, 2, 1).short()) == []
    assert list(accepted("triangles", 1.9, 1.9, 0.9).short()) == ["peers", "SQLite", "new process"]
    assert list(accepted("point lookup by key", 2, 0.4, 1).short()) == []


def test_approximate_answers_are_compared_by_their_overlap(capsys):
    workload = Workload("near", (), "", overlap=0.5)
    compare(workload, "peer", [[("a",), ("b",)]], [[("b",), ("c",)]])
    assert "50%" in capsys.readouterr().out
    with pytest.raises(Disagreement):
        compare(workload, "peer", [[("a",), ("b",)]], [[("c",), ("d",)]])
    with pytest.raises(Disagreement):
        compare(Workload("exact", (), ""), "peer", [[("a",)]], [[("b",)]])
