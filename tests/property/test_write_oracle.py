"""Random writes change a random graph, and return rows, as the oracle computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from omnigraph.errors import CompileError, ConstraintViolation, OmniGraphError
from omnigraph.graph import Graph
from omnigraph.operations import mutate
from omnigraph.query.compile import compile_query
from omnigraph.query.syntax.parser import parse_queries
from support.agreement import same
from support.mutations import Mutating
from support.oracle.model import World
from support.oracle.writes import Changed, Refused, Unclear, change
from support.random_reads.graphs import Subject, new_subject
from support.random_reads.values import plain

SEED = 20_251_115
NOW = 1_750_000_000_123_456


def stored_world(graph: Graph, branch: str) -> World:
    """The contents of the tables in the form of the oracle."""
    snapshot = graph.snapshot(branch)
    catalog = graph.catalog(branch)
    world = World(catalog, {}, {})
    for type_ in catalog.tables():
        ends = ["src", "dst"] if type_.kind == "edge" else []
        names = ["id", *ends, *type_.properties]
        columns = [plain(column) for column in snapshot.table(type_.table_key).read(names).columns]
        rows = {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in zip(*columns, strict=True)}
        (world.nodes if type_.kind == "node" else world.edges)[type_.name] = rows
    return world


def difference(found: World, expected: World) -> str | None:
    for kind, here, there in (("node", found.nodes, expected.nodes), ("edge", found.edges, expected.edges)):
        for name, rows in there.items():
            if here[name].keys() != rows.keys():
                return f"{kind} {name} has {sorted(here[name])}, expected {sorted(rows)}"
            for id_, row in rows.items():
                got = here[name][id_]
                wrong = [key for key in got if not same(got[key], row.get(key))]
                if wrong:
                    return f"{kind} {name} '{id_}': {[(key, got[key], row.get(key)) for key in wrong]}"
    return None


def disagreement(done: mutate.MutationResult, expected: Changed) -> str | None:
    """The first difference between the reported and the expected result; None if there is none."""
    if (done.affected_nodes, done.affected_edges) != (expected.nodes, expected.edges):
        return f"{done.affected_nodes} nodes, {done.affected_edges} edges, expected {expected.nodes}, {expected.edges}"
    if done.rows.columns != expected.columns:
        return f"columns {done.rows.columns}, expected {expected.columns}"
    given = list(zip(*(plain(column) for column in done.rows.to_arrow().columns), strict=True))
    if len(given) != len(expected.rows):
        return f"{len(given)} rows, expected {len(expected.rows)}"
    for one, other in zip(given, expected.rows, strict=True):
        if not all(map(same, one, other)):
            return f"row {one}, expected {other}"
    return None


def write(subject: Subject, random: Random, ids: Iterator[str], monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Generate a write and run it on both; return the difference or None."""
    branch = random.choice(list(subject.heads))
    before = subject.heads[branch]
    asked = Mutating(random, before, subject.values).query()
    compile_query(before.catalog, asked.text)
    tree = parse_queries(asked.text).queries[0]
    made = [next(ids) for _ in range(8)]
    monkeypatch.setattr(mutate, "new_ulid", giving(made))
    expected: Any
    try:
        expected = change(tree, before, asked.params, NOW // 1000, giving(made))
    except Refused as refused:
        expected = refused
    subject.clock.at = NOW
    try:
        done = subject.graph.mutate(asked.text, params=asked.params, branch=branch)
    except OmniGraphError as error:
        code = "endpoint_violation" if isinstance(error, ConstraintViolation) else error.code
        wrong = None if isinstance(expected, Refused) and str(expected) == code else f"{error!r}, expected {expected!r}"
    else:
        wrong = f"done, expected {expected!r}" if isinstance(expected, Refused) else disagreement(done, expected)
        if wrong is None:
            subject.note(branch, expected.world, done.commit_id)
    finally:
        subject.clock.at = None
    wrong = wrong or difference(stored_world(subject.graph, branch), subject.heads[branch])
    return wrong and f"{wrong}\n{subject.graph.schema}\n{asked.text}\nparams {asked.params}\non {branch}"


def giving(ids: list[str]) -> Callable[..., str]:
    """Return successive ids, whatever the arguments."""
    left = iter(ids)
    return lambda *_: next(left)


def check(root: Path, seed: int, writes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a number of valid writes on one graph."""
    random = Random(seed)
    subject = new_subject(root, random)
    ids = (f"g{number:06}" for number in range(10**6))
    done = refused = 0
    while done < writes:
        state = random.random()
        try:
            wrong = write(subject, Random(state), ids, monkeypatch)
        except (CompileError, Unclear):
            refused += 1
            continue
        assert wrong is None, f"seed {seed}, write {state}: {wrong}"
        done += 1
    assert refused < done, "most writes should be sound"


@pytest.mark.parametrize("number", range(7))
def test_writes_agree_with_the_oracle(tmp_path, monkeypatch, number):
    check(tmp_path / "graph", SEED + number, 12, monkeypatch)


@pytest.mark.long
@pytest.mark.parametrize("number", range(100))
def test_writes_agree_with_the_oracle_long(tmp_path, monkeypatch, number):
    check(tmp_path / "graph", SEED + 1_000 + number, 60, monkeypatch)
