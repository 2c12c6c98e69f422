"""Modules that a command does not import: imports are most of the time of a short command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph as og

NOT_FOR_A_READ = (
    # libraries
    "IPython",
    "cedarpy",
    "httpcore2",
    "mcp",
    "mcp_types",
    "networkx",
    "numba",
    "obstore",
    "pandas",
    "prompt_toolkit",
    "pyarrow.parquet",
    "pydantic",
    "pyspark",
    "rich",
    "snowballstemmer",
    "starlette",
    "uvicorn",
    # packages of other operations
    "omnigraph.aio",
    "omnigraph.client",
    "omnigraph.demo",
    "omnigraph.embedding",
    "omnigraph.engine_choice",
    "omnigraph.engine.algorithms",
    "omnigraph.engine.ingest.record_reader",
    "omnigraph.engine.kernels.bfs_kernels",
    "omnigraph.engine.paths.find_paths",
    "omnigraph.engine.plan.explain",
    "omnigraph.engine.search.analyzer",
    "omnigraph.engine.search.inverted_index",
    "omnigraph.engine.search.vector_scan",
    "omnigraph.engine.write.constraints",
    "omnigraph.engine.write.statements",
    "omnigraph.graph_history",
    "omnigraph.graph_io",
    "omnigraph.graph_maintenance",
    "omnigraph.graph_tables",
    "omnigraph.mcp",
    "omnigraph.notebook",
    "omnigraph.operations.authorization.access",
    "omnigraph.operations.analysis",
    "omnigraph.operations.load",
    "omnigraph.operations.merge",
    "omnigraph.operations.migrate",
    "omnigraph.operations.mutate",
    "omnigraph.operations.paging",
    "omnigraph.pipeline",
    "omnigraph.policy",
    "omnigraph.query.lint",
    "omnigraph.schema.check",
    "omnigraph.schema.migrate",
    "omnigraph.schema.parser",
    "omnigraph.server",
    "omnigraph.spark",
    "omnigraph.versioning.compare.diff",
    "omnigraph.versioning.feed",
    "omnigraph.versioning.upkeep.maintenance",
    "omnigraph.wire",
)
"""Modules that a read of one node does not import; a package stands for all its modules."""

NOT_FOR_HELP = (*NOT_FOR_A_READ, "lance", "numpy", "pyarrow", "omnigraph.engine", "omnigraph.graph", "omnigraph.query")
NOT_FOR_HELP = tuple(name for name in NOT_FOR_HELP if name != "omnigraph.wire")

RUN = """
import json, sys
from omnigraph.cli.process_settings import own_process
from omnigraph.cli.main import run
own_process()
code = run(json.loads(sys.argv[1]))
print(json.dumps(sorted(sys.modules)), file=sys.stderr)
sys.exit(code)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    graph = og.init(folder / "g.omni", "node Person {\n    name: String @key\n    age: I32?\n}\n")
    graph.load([{"type": "Person", "data": {"name": "Ada", "age": 36}}], mode="merge")
    (folder / "omnigraph.yaml").write_text("graphs: { people: { uri: ./g.omni } }\ncli: { graph: people }\n")
    (folder / "q.gq").write_text("query p($n: String) { match { $p: Person { name: $n } } return { $p.age } }\n")
    return folder


def imported(words: list[str], folder: Path, code: int = 0) -> tuple[str, set[str]]:
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(words)], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout, set(json.loads(done.stderr.splitlines()[-1]))


def unwanted(modules: set[str], names: tuple[str, ...]) -> list[str]:
    return sorted(name for name in names if any(one == name or one.startswith(f"{name}.") for one in modules))


@pytest.mark.parametrize("form", ["csv", "json", "jsonl", "kv"])
def test_a_point_read_imports_what_it_needs(folder: Path, form: str) -> None:
    words = ["read", "-q", "q.gq", "-n", "p", "-p", "n=Ada", "--format", form]
    out, modules = imported(words, folder)
    assert "36" in out
    assert {"lance", "pyarrow.dataset"} <= modules
    allowed = {"omnigraph.wire"} if form in ("json", "jsonl") else set()
    assert unwanted(modules, tuple(name for name in NOT_FOR_A_READ if name not in allowed)) == []
    commands = {name for name in modules if name.startswith("omnigraph.cli.commands.") and name.count(".") == 4}
    assert commands == {"omnigraph.cli.commands.data.read", "omnigraph.cli.commands.admin.retired"}


def test_help_imports_no_engine(folder: Path) -> None:
    _, modules = imported(["--help"], folder)
    assert unwanted(modules, NOT_FOR_HELP) == []


def test_the_head_of_a_branch_imports_no_merge(folder: Path) -> None:
    """Writers read the head before a conditional write."""
    code = (
        "import sys, omnigraph as og\n"
        "print(og.open(sys.argv[1]).head().branch)\n"
        "print([name for name in ('omnigraph.graph_history', 'omnigraph.operations.merge') if name in sys.modules])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "g.omni")], capture_output=True, text=True, check=True
    )
    assert done.stdout == "main\n[]\n"


def test_pandas_is_usable_after_a_read() -> None:
    """A command that hides pandas from pyarrow does not disable it."""
    code = (
        "import sys\n"
        "from omnigraph.large_modules import importing_large_modules\n"
        "with importing_large_modules(pandas=False):\n"
        "    import lance\n"
        "assert 'pandas' not in sys.modules\n"
        "import pyarrow as pa\n"
        "frame = pa.table({'a': [1, 2]}).to_pandas()\n"
        "import pandas\n"
        "print(type(frame) is pandas.DataFrame, pa.table(frame).to_pydict())\n"
    )
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True {'a': [1, 2]}\n"


def test_a_program_that_calls_run_keeps_pandas(folder: Path) -> None:
    """Only the program hides pandas: a test or notebook that calls `run` may pass objects of pandas to pyarrow."""
    pytest.importorskip("pandas")
    code = RUN.replace("own_process()\n", "")
    words = ["read", "-q", "q.gq", "-n", "p", "-p", "n=Ada"]
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(words)], cwd=folder, capture_output=True, text=True, check=True
    )
    assert "pandas" in json.loads(done.stderr.splitlines()[-1])
