"""The page on query planning names every rule and has the constants of the cost model."""

from __future__ import annotations

import re
from pathlib import Path

from omnigraph.engine.optimizer import cost

ROOT = Path(__file__).parents[4]
PAGE = (ROOT / "docs/query-planning.md").read_text()
OPTIMIZER_RULES = (
    "drop_implied_branches",
    "drop_repeated_hops",
    "first_rows",
    "fold_distinct",
    "join_far_part",
    "share_blocks",
)


def test_constants():
    listed = {name: float(ns.replace(",", "")) for name, ns in re.findall(r"`([A-Z_]+)` \| ([\d,.]+)", PAGE)}
    assert listed == {name: value for name, value in vars(cost).items() if re.fullmatch(r"[A-Z][A-Z_]*", name)}


def test_rules():
    folder = ROOT / "src/omnigraph/query/plan/rewrites"
    rules = {path.stem for path in folder.glob("*.py")} - {"__init__", "conditions"}
    assert {
        name for name in OPTIMIZER_RULES if not (ROOT / f"src/omnigraph/engine/optimizer/{name}.py").exists()
    } == set()
    assert set(re.findall(r"^\| `([a-z_]+)` \|", PAGE, re.M)) == rules | set(OPTIMIZER_RULES)
