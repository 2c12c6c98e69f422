"""The base install: neither numba nor llvmlite can be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from omnigraph.engine import kernels
from support.writes import edge, new_graph, node

SCHEMA = """
node Doc { name: String @key  text: String @index  size: I64?  vec: Vector(4) }
edge Cites: Doc -> Doc
"""
QUERIES = {
    "text": 'match { $d: Doc } return { $d.name } order { bm25($d.text, "red stone") } limit 7',
    "vector": "match { $d: Doc } return { $d.name } order { nearest($d.vec, [1, 2, 3, 4]) } limit 7",
    "fused": (
        "match { $d: Doc } return { $d.name } "
        'order { rrf(nearest($d.vec, [4, 1, 0, 2]), bm25($d.text, "blue")) } limit 7'
    ),
    "walk": 'match { $a: Doc { name: "d0" }  $a cites{1,9} $b } return { count($b) as n }',
    "cycles": "match { $a cites $b  $b cites $c  $c cites $a } return { count($a) as n }",
    "sums": "match { $d: Doc  $d.size > 3 } return { sum($d.size) as total, count($d) as n }",
}
SCRIPT = f"""
import json, logging, sys

sys.modules["numba"] = sys.modules["llvmlite"] = None  # an import of either raises ModuleNotFoundError
logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(message)s")

import omnigraph as og
from omnigraph.engine import kernels, tuning

with tuning.replaced(kernel_build_s=0.0, kernel_load_s=0.0, kernel_compile_s=0.0, bfs_small_frontier=0):
    graph = og.open(sys.argv[1])
    rows = {{name: graph.query(text).to_pylist() for name, text in {QUERIES!r}.items()}}
    profile = str(graph.profile({QUERIES["walk"]!r}))
loaded = kernels.load()
print(json.dumps({{"rows": rows, "loaded": loaded, "profile": profile}}))
"""


def run_without_numba(uri: str, cache: Path) -> tuple[dict[str, Any], str]:
    """Run the queries in a process without numba; return its findings and its log."""
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, uri],
        env={**os.environ, "OMNIGRAPH_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found, done.stderr


def test_every_loop_has_a_fallback(tmp_path: Path) -> None:
    words = ("red", "stone", "blue", "river")
    docs = [
        node(
            "Doc",
            name=f"d{at}",
            text=" ".join(words[(at * step) % 4] for step in range(1, 6)),
            size=at % 11,
            vec=[at % 5, at % 3, at % 7, 1],
        )
        for at in range(300)
    ]
    cites = [edge("Cites", f"d{at}", f"d{(at * 7 + step) % 300}") for at in range(300) for step in (1, 2, 50)]
    graph = new_graph(tmp_path / "g.omni", SCHEMA, *docs, *cites)
    assert kernels.load(), "this process compares with compiled loops"
    expected = {name: graph.query(text).to_pylist() for name, text in QUERIES.items()}

    found, log = run_without_numba(graph.uri, tmp_path / "cache")
    assert found["rows"] == expected
    assert found["loaded"] is False
    assert found["profile"].endswith(f"note: {kernels.NOT_INSTALLED}")
    assert log.count(kernels.NOT_INSTALLED) >= 1
    assert "note:" not in str(graph.profile(QUERIES["walk"]))
