"""The public names and the contents of the distribution."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import omnigraph

ROOT = Path(__file__).parent.parent


def test_public_names():
    assert omnigraph.__all__ == [
        "F32",
        "F64",
        "I32",
        "I64",
        "U32",
        "U64",
        "AsyncGraph",
        "AsyncRemoteGraph",
        "Cancellation",
        "Card",
        "Check",
        "Edge",
        "Ends",
        "Graph",
        "Implements",
        "Index",
        "Inherited",
        "Key",
        "Limits",
        "Mark",
        "Mixin",
        "Named",
        "Node",
        "Note",
        "Range",
        "RemoteGraph",
        "Renamed",
        "Result",
        "SchemaDraft",
        "Snapshot",
        "Unique",
        "Valid",
        "Vector",
        "__version__",
        "aconnect",
        "aopen",
        "connect",
        "edges",
        "errors",
        "from_frames",
        "from_networkx",
        "infer_schema",
        "init",
        "models_of",
        "open",
        "schema_of",
        "spark",
    ]
    assert all(hasattr(omnigraph, name) for name in omnigraph.__all__)
    assert dir(omnigraph) == sorted(omnigraph.__all__)


def test_import_loads_no_heavy_module():
    heavy = ("lance", "pyarrow", "numpy", "obstore", "pyspark", "httpcore2", "stamina")
    code = f"import sys, omnigraph; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_distribution_contains_py_typed():
    assert files("omnigraph").joinpath("py.typed").is_file()


def test_console_script_and_module_are_the_same_program():
    found = {point.name: point.value for point in entry_points(group="console_scripts")}
    assert found["omnigraph"] == found["og"] == "omnigraph.cli.entry:main"


def test_tour_runs():
    command = [sys.executable, ROOT / "examples/tour.py", "--engine", "memory"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("$ omnigraph") >= 20
    for said in ("Floods: the harbour basin", "merge review/spring -> main: merged", "verify ./station.omni: sound"):
        assert said in done.stdout
    for said in ("did you mean 'Person'?", "harbour-watch (divergent_update)", "src 'nobody' not found in Person"):
        assert said in done.stderr
    for said in ('"p.title": "Harbour watch"', "HTTP/1.1 403 Forbidden", "'main' is protected", "exit code 0"):
        assert said in done.stdout
    assert done.stdout.endswith("cd omnigraph-demo && ../.venv/bin/omnigraph ui station.omni\n")


def test_import_contracts_detect_a_violation(tmp_path):
    """An import against the direction of the layers fails the lint."""
    source = tmp_path / "src"
    subprocess.run(["cp", "-r", ROOT / "src", source], check=True)
    module = source / "omnigraph/schema/catalog.py"
    module.write_text(module.read_text() + "\nfrom omnigraph.query import ast  # noqa\n")
    (tmp_path / "pyproject.toml").write_text((ROOT / "pyproject.toml").read_text())
    lint = Path(sys.executable).parent / "lint-imports"
    env = {"PYTHONPATH": str(source), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    command = [lint, "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "BROKEN" in done.stdout
