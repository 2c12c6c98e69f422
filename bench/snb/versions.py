"""The reads on versions of the network: a branch, main beside it, the merge of both, and the commit before all updates.

Updates are made on a branch and on main. The oracle makes them one after the other, so that it has the answers of every
version; each read of each version must return them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

import omnigraph as og
from bench.snb import oracle
from bench.snb.compare import Disagreement, normal
from bench.snb.generate import SEED, Data
from bench.snb.updates import DELETES, EDGE_DELETES, INSERTS, Stream, Update, apply, apply_to_oracle, last_rows
from bench.snb.workload import Parameters, Params, Query

BRANCH = "review"
TOUCHED = {
    "iu1": ("person", "number"),
    "iu6": ("message", "number"),
    "iu7": ("message", "number"),
    "iu7c": ("message", "number"),
    "del1": ("person", "person"),
    "del6": ("message", "post"),
    "del7": ("message", "comment"),
}
"""Update → the kind of the row that it adds or removes, and the parameter with its number."""
Answers = dict[str, list[list[tuple[Any, ...]]]]
"""Query → its answer for each set of parameters."""


@dataclass(frozen=True)
class Plan:
    """The updates of the branch and of main, the parameters of the reads, and the answers of each version."""

    branch: list[Update]
    main: list[Update]
    params: dict[str, list[Params]]
    answers: dict[str, Answers]


def plan(data: Data, chosen: Sequence[Query], sets: int, rounds: int = 1) -> Plan:
    """Draw the updates and let the oracle answer the reads of every version.

    Main inserts everything, but deletes edges only, and refers to rows that the branch keeps: otherwise the merge would
    have conflicts.
    """
    with duckdb.connect(config={"threads": 1}) as db:
        oracle.fill(db, data)
        rows = last_rows(db)

        def answers() -> Answers:
            return _answers(chosen, params, lambda query, given: db.execute(query.sql, given).fetchall())

        db.begin()
        on_branch, on_main = Stream(db, SEED), Stream(db, SEED + 1, first=1_000, rows=rows)
        branch = [on_branch.take(name) for _ in range(rounds) for name in (*INSERTS, *DELETES, *INSERTS)]
        main = [on_main.take(name) for _ in range(rounds) for name in (*INSERTS, *EDGE_DELETES)]
        db.rollback()
        params = _params(data, chosen, sets, [*branch, *main])
        found = {"before": answers()}
        db.begin()
        _apply_all(db, branch)
        found["branch"] = answers()
        db.rollback()
        _apply_all(db, main)
        found["main"] = answers()
        _apply_all(db, branch)
        found["merged"] = answers()
    return Plan(branch, main, params, found)


def check(graph: og.Graph, made: Plan, chosen: Sequence[Query]) -> int:
    """Make the updates, read every version, and return the number of answers; a wrong one raises `Disagreement`."""
    before = graph.head().commit_id
    graph.branch_create(BRANCH)
    for update in made.branch:
        apply(graph, update, BRANCH)
    for update in made.main:
        apply(graph, update)
    compared = compare_version(graph, made, chosen, "branch", branch=BRANCH)
    compared += compare_version(graph, made, chosen, "main")
    compared += compare_version(graph, made, chosen, "before", at=before)
    graph.merge(BRANCH)
    return compared + compare_version(graph, made, chosen, "merged")


def compare_version(graph: og.Graph, made: Plan, chosen: Sequence[Query], version: str, **where: str) -> int:
    """Compare the reads of one version with the oracle; return the number of answers."""

    def ours(query: Query, given: Params) -> list[Any]:
        return graph.query(query.ours, given, **where).to_pylist()

    expected = made.answers[version]
    for name, answers in _answers(chosen, made.params, ours).items():
        for given, answer, wanted in zip(made.params[name], answers, expected[name], strict=True):
            if answer != wanted:
                raise Disagreement(
                    f"{version}, {name} {given}: {str(answer)[:300]}, the oracle says {str(wanted)[:300]}"
                )
    return sum(map(len, expected.values()))


def _answers(
    chosen: Sequence[Query], params: dict[str, list[Params]], ask: Callable[[Query, Params], list[Any]]
) -> Answers:
    return {query.name: [normal(ask(query, given), query.ordered) for given in params[query.name]] for query in chosen}


def _apply_all(db: Any, updates: Sequence[Update]) -> None:
    for update in updates:
        apply_to_oracle(db, update)


def _params(data: Data, chosen: Sequence[Query], sets: int, updates: Sequence[Update]) -> dict[str, list[Params]]:
    """Sets of parameters of each query, and one set for each person and message that an update adds or removes."""
    touched: dict[str, list[int]] = {"person": [], "message": []}
    for update in updates:
        if update.name in TOUCHED:
            kind, key = TOUCHED[update.name]
            touched[kind].append(update.params[key])
    parameters = Parameters(data)
    found = {}
    for query in chosen:
        own = found[query.name] = parameters.of(query.name, sets)
        key = next((key for key in ("person", "message", "person1") if key in own[0]), None)
        if key is not None:
            own += [own[0] | {key: number} for number in touched[key.rstrip("1")]]
    return found
