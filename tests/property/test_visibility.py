"""A query under a visibility returns what it returns on a graph that holds only what is visible."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from omnigraph.engine import kernels
from omnigraph.engine.optimizer import pattern_optimizer
from omnigraph.engine.result.result import Result
from omnigraph.errors import CompileError, InputError, TypeNotFound
from omnigraph.graph import Graph
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.versioning.compare.rows import to_dicts
from support.agreement import disagreement, same_row
from support.oracle.groups import Overflow
from support.oracle.paths import NegativeWeight, Unsure
from support.oracle.reading import answer
from support.random_reads.generator import DirectedGenerator, RandomRead, ReadGenerator
from support.random_reads.graphs import ManualClock, Point, Subject, new_subject, world_of
from support.random_reads.values import plain
from support.visible import SHAPES, Rules, projected, projected_copy, random_rules, seen_by, telling_rules

SEED = 20_261_116
NOW = 1_750_000_000_123_456
GENERATORS = (ReadGenerator, DirectedGenerator)
"""All reads, and reads of which more return rows."""


class NothingToAsk(Exception):
    """So little is visible that the generator finds no property to ask for."""


class Disagreement(AssertionError):
    """A read under rules differs from the projected graph."""


def ask(subject: Subject, random: Random, rules: Rules, point: Point, **how: Any) -> str | None:
    """Run a generated read under the rules; return the difference to the oracle on the projected world, or None."""
    world = projected(point.world, rules)
    try:
        asked = random.choice(GENERATORS)(random, world.catalog, subject.values).query()
    except IndexError:
        raise NothingToAsk from None
    tree = parse_queries(asked.text).queries[0]
    subject.clock.at = NOW
    result: Result | None = None
    code: str | None = None
    try:
        result = seen_by(subject.graph, rules).query(asked.text, params=asked.params, **point.where, **how)
    except InputError as error:
        if error.code not in ("negative_weight", "overflow"):
            raise
        code = error.code
    finally:
        subject.clock.at = None
    wrong: str | None
    try:
        expected = answer(tree, world, asked.params, NOW // 1000)
        wrong = disagreement(result, expected) if result is not None else f"there is no {code}"
    except NegativeWeight:
        wrong = None if code == "negative_weight" else "a weight is negative"
    except Overflow:
        wrong = None if code == "overflow" else "a sum overflows"
    except Unsure:
        wrong = None
    if wrong is None:
        return None
    return f"{wrong}\n{subject.graph.schema}\n{asked.text}\nparams {asked.params}\nat {point.where}\n{rules.visibility}"


def check_stored_rows(subject: Subject, random: Random, rules: Rules, point: Point) -> None:
    """Compare exported records, tables and single rows with the projected world."""
    world, handle = projected(point.world, rules), seen_by(subject.graph, rules)
    every, found = world_of(subject.graph, **point.where), world_of(handle, **point.where)
    assert found.catalog == world.catalog
    # The export has the JSON form of values; those of rows that are visible are compared with the whole export.
    for kind in ("nodes", "edges"):
        for name, rows in getattr(world, kind).items():
            exported, whole = getattr(found, kind)[name], getattr(every, kind)[name]
            assert exported.keys() == rows.keys()
            for id, row in rows.items():
                values = {name: whole[id][name] if shown else None for name, shown in _masks(row, whole[id])}
                assert {name: value for name, value in exported[id].items() if name != "id"} == values
            table = handle.to_arrow(name, kind=kind[:-1], **point.where)
            assert sorted(table["id"].to_pylist()) == sorted(rows)
            batches = handle.to_batches(name, kind=kind[:-1], batch_rows=3, **point.where)
            assert batches.read_all().equals(table.replace_schema_metadata(batches.schema.metadata))
            ids = [*getattr(every, kind)[name]]
            for id in random.sample(ids, min(len(ids), 4)):
                row = handle.get(name, id, kind=kind[:-1], **point.where)
                assert (row is None) == (id not in rows)
                if row is not None:
                    at = table["id"].to_pylist().index(id)
                    assert row == to_dicts(table.slice(at, 1))[0]
    for key, rule in rules.rows.items():
        if rule is None:
            with pytest.raises(TypeNotFound):
                handle.to_arrow(key.partition(":")[2], kind=key.partition(":")[0], **point.where)


def _masks(row: dict[str, Any], whole: dict[str, Any]) -> Iterator[tuple[str, bool]]:
    """Yield the names of a projected row, each with False if its value is masked."""
    for name, value in row.items():
        yield name, value is not None or whole[name] is None


def check(root: Path, seed: int, questions: int, *, stored: bool = True) -> None:
    """Run a number of valid reads on one graph under rules of every shape; raise `Disagreement` for a wrong answer.

    With `stored`, exports, tables and single rows are compared as well.
    """
    random = Random(seed)
    subject = new_subject(root, random)
    asked = refused = 0
    while asked < questions:
        shape = SHAPES[(asked + refused) % len(SHAPES)]
        state = random.random()
        of = Random(state)
        point = subject.somewhere()
        # Rules that were written for the head apply to earlier commits as well.
        world = (point if of.random() < 0.8 else Point({}, subject.heads["main"])).world
        rules = random_rules(of, world.catalog, shape, world)
        left = projected(point.world, rules).catalog
        if not left.nodes or not left.edges:
            refused += 1
            continue
        try:
            # Several reads under the same rules use what the first one judged.
            wrong = next(filter(None, (ask(subject, Random(state + at), rules, point) for at in range(2))), None)
        except (CompileError, NothingToAsk):
            refused += 1
            continue
        if wrong is not None:
            raise Disagreement(f"seed {seed}, {shape}, question {state}: {wrong}")
        if stored and asked % 4 == 0:
            check_stored_rows(subject, of, rules, point)
        asked += 1
    assert refused < 2 * asked, "most questions should be sound"


@pytest.mark.parametrize("number", range(3))
def test_query_sees_the_projected_graph(tmp_path, number):
    check(tmp_path / "graph", SEED + number, 24)


def differs(seen: Result, copy: Result, *, ordered: bool, cut: bool) -> str | None:
    """The first difference between two results; without an order they are bags, of which a limit takes any rows."""
    if seen.columns != copy.columns or len(seen) != len(copy):
        return f"{len(seen)} rows of {seen.columns}, the copy has {len(copy)} of {copy.columns}"
    if cut and not ordered:
        return None
    one, other = (list(zip(*map(plain, each.to_arrow().columns), strict=True)) for each in (seen, copy))
    for row in one:
        at = 0 if ordered else next((at for at, left in enumerate(other) if same_row(row, left, {})), None)
        if at is None or not same_row(row, other[at], {}):
            return f"row {row} is not in the copy, or not there; left {other[:1]}"
        del other[at]
    return None


def outcome(graph: Graph, read: RandomRead) -> Result | str | None:
    """The result of a read, or the code of its error."""
    try:
        return graph.query(read.text, params=read.params)
    except InputError as error:
        return error.code


def check_copy(root: Path, seed: int, questions: int) -> None:
    """Run the same reads under rules and on a second graph that physically holds what is visible."""
    random = Random(seed)
    subject = new_subject(root / "graph", random)
    for number, shape in enumerate(SHAPES):
        world = subject.heads["main"]
        rules = telling_rules(random, world, shape)
        left = projected(world, rules).catalog
        if not left.nodes or not left.edges:
            continue
        copy, seen = projected_copy(root / f"copy{number}", subject, rules), seen_by(subject.graph, rules)
        copy._repository.clock = subject.graph._repository.clock = ManualClock(NOW)
        asked = tried = 0
        while asked < questions and tried < 10 * questions:
            tried += 1
            try:
                read = GENERATORS[tried % 2](Random(random.random()), left, subject.values).query()
            except IndexError:
                continue
            found, expected = outcome(seen, read), outcome(copy, read)
            wrong = None if found == expected else f"{found}, the copy {expected}"
            if isinstance(found, Result) and isinstance(expected, Result):
                body = parse_queries(read.text).queries[0].body
                cut = body.limit is not None or body.skip is not None
                wrong = differs(found, expected, ordered=bool(body.order), cut=cut)
                asked += 1
            if wrong is not None:
                raise Disagreement(f"seed {seed}, {shape}: {wrong}\n{read.text}\n{read.params}\n{rules.visibility}")
        assert asked, "some question should be sound"


@pytest.mark.parametrize("number", range(2))
def test_query_equals_the_query_on_a_projected_copy(tmp_path, number):
    check_copy(tmp_path, SEED + 30_000 + number, 6)


@pytest.mark.long
@pytest.mark.parametrize("number", range(30))
def test_query_equals_the_query_on_a_projected_copy_long(tmp_path, number):
    check_copy(tmp_path, SEED + 31_000 + number, 40)


@pytest.fixture
def as_if_large(tune):
    """Enable what only large tables use, and judge rows one by one before there is a mask."""
    tune(
        complete_column_rows=0,
        take_row_cost=1,
        rows_judged_before_mask=1_000,
        visible_steps_min=0,
        vector_exact_rows_max=1,
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
@pytest.mark.parametrize("number", range(2))
def test_query_sees_the_projected_graph_with_large_table_settings(tmp_path, number):
    check(tmp_path / "graph", SEED + 500 + number, 24)


@pytest.fixture
def plans_change(tune, monkeypatch):
    """Plan the rest of every match again after each operator, and join a part of it wherever that is possible."""
    tune(replan_rows_min=0, replan_factor=0.0, chain_rows_max=0)
    monkeypatch.setattr(pattern_optimizer, "_JOIN_SHARE", float("inf"))


@pytest.mark.usefixtures("plans_change")
@pytest.mark.parametrize("number", range(2))
def test_query_sees_the_projected_graph_if_plans_change(tmp_path, number):
    check(tmp_path / "graph", SEED + 700 + number, 24)


@pytest.mark.long
@pytest.mark.parametrize("number", range(100))
def test_query_sees_the_projected_graph_long(tmp_path, number):
    check(tmp_path / "graph", SEED + 1_000 + number, 96)


@pytest.mark.long
@pytest.mark.usefixtures("as_if_large")
@pytest.mark.parametrize("number", range(60))
def test_query_sees_the_projected_graph_with_large_table_settings_long(tmp_path, number):
    check(tmp_path / "graph", SEED + 5_000 + number, 96)


@pytest.mark.long
@pytest.mark.usefixtures("plans_change")
@pytest.mark.parametrize("number", range(40))
def test_query_sees_the_projected_graph_if_plans_change_long(tmp_path, number):
    check(tmp_path / "graph", SEED + 7_000 + number, 96)
