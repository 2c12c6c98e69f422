"""The example `spark_load.py` runs."""

from __future__ import annotations

import runpy
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "spark_load.py"


def test_example_runs(spark, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    runpy.run_path(str(EXAMPLE), run_name="__main__")
    output = capsys.readouterr().out
    assert "rejected:" in output
    assert "100 samples changed on branch 'recalibrated'" in output
    assert "fast_forward" in output or "merged" in output
