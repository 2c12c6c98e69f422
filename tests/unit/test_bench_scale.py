"""The benchmark of large data, with little of it."""

from __future__ import annotations

import pytest
from bench.scale import MEASUREMENTS, TARGETS, Corpus, main, report, run


def test_every_measurement_runs_in_a_process_of_its_own(tmp_path):
    pytest.importorskip("duckdb")
    corpus = Corpus(str(tmp_path), documents=300, text=120, dimensions=4, memory="256MiB")
    found = run(corpus, [*MEASUREMENTS])
    assert [*found] == [*MEASUREMENTS]
    figures = {figure: value for values in found.values() for figure, value in values.items()}
    assert figures.keys() >= TARGETS.keys()
    assert all(value >= 0 for name, value in figures.items() if not name.startswith("first") or name.endswith(" ms"))
    assert "first point read ms" in report(found)
    assert "build" not in run(corpus, ["build", "get"]), "existing data is used"


def test_an_unknown_measurement_is_refused(capsys):
    assert main(["--only", "nothing"]) == 2
    assert "there are build, point" in capsys.readouterr().err
