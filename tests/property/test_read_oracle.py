"""Random reads of random graphs return the rows of the oracle: at heads, after changes, on branches, in the past."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.engine import kernels
from omnigraph.engine.exec.adaptive import RunningPlan
from omnigraph.engine.exec.binding_table import BindingTable
from omnigraph.engine.exec.context import MatchTooLarge
from omnigraph.engine.exec.match_parts import parts_of
from omnigraph.engine.exec.pipeline import MatchPipeline
from omnigraph.engine.optimizer import cost, pattern_optimizer
from omnigraph.engine.optimizer.pattern_optimizer import PatternOptimizer
from omnigraph.engine.result.result import Result
from omnigraph.errors import CompileError, InputError
from omnigraph.query.plan import ir
from omnigraph.query.syntax.parser import parse_queries
from support.agreement import disagreement
from support.oracle.groups import Overflow
from support.oracle.paths import NegativeWeight, Unsure
from support.oracle.reading import answer
from support.random_reads.generator import RandomRead, ReadGenerator
from support.random_reads.graphs import Point, Subject, new_subject

SEED = 20_240_229


def in_pages(subject: Subject, asked: RandomRead, point: Point, random: Random) -> Result:
    """The same read page by page while the clock advances."""
    tables = []
    for page in subject.graph.pages(asked.text, params=asked.params, page=random.randint(1, 4), **point.where):
        tables.append(page.to_arrow())
        subject.clock.at += 1_000_000
    rows = pa.Table.from_batches([batch for table in tables for batch in table.to_batches()], tables[0].schema)
    return Result(rows, query_name="", commit_id="", elapsed_ms=0.0)


def ask(subject: Subject, random: Random) -> str | None:
    """Generate a read and run it on both; return the difference or None. Raise `CompileError` for an invalid read."""
    point = subject.somewhere()
    asked = ReadGenerator(random, point.world.catalog, subject.values).query()
    tree = parse_queries(asked.text).queries[0]
    subject.clock.at = 1_750_000_000_123_456
    result: Result | None = None
    code: str | None = None
    try:
        result = subject.graph.query(asked.text, params=asked.params, **point.where)
        paged = tree.body.order and len(result) < 100 and random.random() < 0.3
        pages = in_pages(subject, asked, point, random) if paged else None
    except InputError as error:
        if error.code not in ("negative_weight", "overflow"):
            raise
        code = error.code
    finally:
        subject.clock.at = None
    wrong: str | None
    try:
        expected = answer(tree, point.world, asked.params, 1_750_000_000_123)
        wrong = disagreement(result, expected) if result is not None else f"there is no {code}"
        if wrong is None and pages is not None:
            wrong = disagreement(pages, expected)
            wrong = wrong and f"in pages: {wrong}"
    except NegativeWeight:
        wrong = None if code == "negative_weight" else "a weight is negative"
    except Overflow:
        wrong = None if code == "overflow" else "a sum overflows"
    except Unsure:
        wrong = None
    if wrong is None:
        return None
    return f"{wrong}\n{subject.graph.schema}\n{asked.text}\nparams {asked.params}\nat {point.where}"


def check(root: Path, seed: int, questions: int) -> None:
    """Run a number of valid reads on one graph."""
    random = Random(seed)
    subject = new_subject(root, random)
    asked = refused = 0
    while asked < questions:
        state = random.random()
        try:
            wrong = ask(subject, Random(state))
        except CompileError:
            refused += 1
            continue
        assert wrong is None, f"seed {seed}, question {state}: {wrong}"
        asked += 1
    assert refused < asked, "most questions should be sound"


@pytest.mark.parametrize("number", range(20))
def test_engine_agrees_with_the_oracle(tmp_path, number):
    check(tmp_path / "graph", SEED + number, 20)


@pytest.fixture
def as_if_large(tune):
    """Enable what only large tables use: vector codes, segments on disk, ranks before the match, compiled loops,
    batches.
    """
    tune(
        vector_exact_rows_max=1,
        vector_part_elements=1,
        vector_disk_bytes_min=0,
        postings_disk_rows_min=0,
        segment_rows_min=2,
        ranked_candidates_min=1,
        ranked_overfetch=2,
        lazy_result_rows=3,
        shortest_batch_keys=9,
        bidirectional_pairs_max=0,
        exact_weight_sum_max=-1.0,
        chain_rows_max=2,
        chain_steps_max=4,
    )
    assert kernels.load()


@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("number", range(10))
def test_engine_agrees_with_the_oracle_with_large_table_settings(tmp_path, number):
    check(tmp_path / "graph", SEED + 500 + number, 20)


@pytest.fixture
def plans_change(tune, monkeypatch):
    """Plan the rest of every match again after each operator, and join a part of it wherever that is possible."""
    tune(replan_rows_min=0, replan_factor=0.0, chain_rows_max=0)
    monkeypatch.setattr(pattern_optimizer, "_JOIN_SHARE", float("inf"))


@pytest.mark.usefixtures("plans_change")
@pytest.mark.parametrize("number", range(10))
def test_engine_agrees_with_the_oracle_if_plans_change(tmp_path, number):
    check(tmp_path / "graph", SEED + 700 + number, 20)


@pytest.fixture
def seeded(tune, monkeypatch) -> list[str]:
    """Run blocks on their own, from the nodes of an outer variable wherever that is possible; return the variables."""
    tune(chain_rows_max=0, seeded_rows_min=0)
    for name in ("_SEED_SHARE", "_ONCE_SHARE"):
        monkeypatch.setattr(pattern_optimizer, name, float("inf"))
    monkeypatch.setattr(cost, "MATCH", -1e12)
    start, found = PatternOptimizer.seeded, []

    def noting(self: PatternOptimizer, *given: Any) -> Any:
        chosen = start(self, *given)
        if chosen is not None:
            found.append(chosen[0])
        return chosen

    monkeypatch.setattr(PatternOptimizer, "seeded", noting)
    return found


@pytest.mark.parametrize("number", range(3))
def test_engine_agrees_with_the_oracle_if_blocks_start_from_outer_nodes(tmp_path, number, seeded):
    for graph in range(4):
        check(tmp_path / f"graph{graph}", SEED + 900 + 10 * number + graph, 20)
    assert len(seeded) >= 5


@pytest.fixture
def in_parts(tune, monkeypatch) -> list[int]:
    """Run counted and grouped matches in parts of at most two rows; return the numbers of parts."""
    tune(chain_rows_max=0, match_parts_max=1_000_000_000, merge_rows_min=1)
    apply, found = MatchPipeline._apply, []

    def exceed(self: MatchPipeline, plan: RunningPlan, position: int, bindings: BindingTable) -> BindingTable:
        exceeded = MatchTooLarge("too many rows", resource="rows", limit=2, actual=bindings.count)
        rest = plan.pipeline[position:]
        if plan.live is not None and bindings.count > 2:
            parts = 1 if isinstance(rest[0], ir.InnerJoin) else parts_of(rest, bindings, exceeded)
            if parts:
                found.append(parts)
                raise exceeded
        return apply(self, plan, position, bindings)

    monkeypatch.setattr(MatchPipeline, "_apply", exceed)
    return found


@pytest.mark.parametrize("number", range(2))
def test_engine_agrees_with_the_oracle_in_parts(tmp_path, number, in_parts):
    for graph in range(4):
        check(tmp_path / f"graph{graph}", SEED + 800 + 10 * number + graph, 20)
    assert len(in_parts) > 10


@pytest.mark.usefixtures("plans_change")
@pytest.mark.parametrize("number", range(2))
def test_engine_agrees_with_the_oracle_in_parts_of_changed_plans(tmp_path, number, in_parts):
    for graph in range(4):
        check(tmp_path / f"graph{graph}", SEED + 850 + 10 * number + graph, 20)
    assert len(in_parts) > 10


@pytest.mark.long
@pytest.mark.parametrize("number", range(10))
def test_engine_agrees_with_the_oracle_in_parts_long(tmp_path, number, in_parts):
    for graph in range(5):
        check(tmp_path / f"graph{graph}", SEED + 8_000 + 10 * number + graph, 80)
    assert len(in_parts) > 50


@pytest.mark.long
@pytest.mark.usefixtures("plans_change")
@pytest.mark.parametrize("number", range(50))
def test_engine_agrees_with_the_oracle_if_plans_change_long(tmp_path, number):
    check(tmp_path / "graph", SEED + 7_000 + number, 80)


@pytest.mark.long
@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("number", range(100))
def test_engine_agrees_with_the_oracle_with_large_table_settings_long(tmp_path, number):
    check(tmp_path / "graph", SEED + 5_000 + number, 80)


@pytest.mark.long
@pytest.mark.parametrize("number", range(250))
def test_engine_agrees_with_the_oracle_long(tmp_path, number):
    check(tmp_path / "graph", SEED + 1_000 + number, 80)
