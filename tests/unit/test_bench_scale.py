"""The benchmark of large data, with little of it."""

from __future__ import annotations

import importlib.util

import pytest
from bench.scale.__main__ import MEASUREMENTS, TARGETS, main, report, run
from bench.scale.corpus import Corpus

PEERS = ("text", "nearest")
"""Measurements beside LanceDB, which is not a dependency of the tests."""


def test_every_measurement_runs_in_a_process_of_its_own(tmp_path):
    pytest.importorskip("duckdb")
    little = {"documents": 300, "text": 120, "dimensions": 4, "large_texts": 21, "large_text": 9_000, "edges": 900}
    corpus = Corpus(str(tmp_path), memory="256MiB", **little)
    peers = importlib.util.find_spec("lancedb") is not None
    names = [name for name in MEASUREMENTS if peers or name not in PEERS]
    found = run(corpus, names)
    assert [*found] == names
    figures = {figure: value for values in found.values() for figure, value in values.items()}
    wanted = [name for name in TARGETS if peers or not _of_a_peer(name)]
    assert figures.keys() >= {*wanted}
    assert all(value >= 0 for name, value in figures.items() if not name.startswith("first") or name.endswith(" ms"))
    assert "first point read ms" in report(found)
    assert run(corpus, ["build"]) == {}, "existing data is used"


def _of_a_peer(figure: str) -> bool:
    return figure.endswith("LanceDB") or figure.startswith("kNN")


def test_an_unknown_measurement_is_refused(capsys):
    assert main(["--only", "nothing"]) == 2
    assert "there are build, point" in capsys.readouterr().err
