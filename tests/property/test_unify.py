"""Laws of `unify` on random graphs: a revert is its inverse, and it commutes with unrelated edits under merge."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

import omnigraph as og

SCHEMA = """
node Person {
    name: String @key
    email: String?
    tags: [String]?
}
node Place { name: String @key }
edge Knows: Person -> Person { since: I64? }
edge Visited: Person -> Place { times: I64?
    @unique(src, dst) }
"""
seeds = pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 120))]
)
NAMES = [f"p{number}" for number in range(12)]


def new_graph(path: Path, random: Random) -> og.Graph:
    graph = og.init(path, SCHEMA, sync=False)
    people = [
        {"name": name, "email": random.choice([None, f"{name}@x"]), "tags": random.sample(["a", "b", "c"], 2)}
        for name in NAMES
    ]
    records = [{"type": "Person", "data": values} for values in people]
    records += [{"type": "Place", "data": {"name": name}} for name in "xyz"]
    for number in range(20):
        ends = {"from": random.choice(NAMES), "to": random.choice(NAMES)}
        records.append({"edge": "Knows", **ends, "data": {"id": f"k{number}", "since": random.randrange(3)}})
    visits = {(random.choice(NAMES), random.choice("xyz")) for _ in range(15)}
    for number, (source, target) in enumerate(sorted(visits)):
        values = {"id": f"v{number}", "times": random.randrange(3)}
        records.append({"edge": "Visited", "from": source, "to": target, "data": values})
    graph.load(records, mode="merge")
    return graph


def state(graph):
    tables = {
        name: sorted(graph.to_arrow(name).to_pylist(), key=lambda row: row["id"])
        for name in ("Person", "Place", "Knows", "Visited")
    }
    return {**tables, "aliases": graph.snapshot().aliases_hash}


def unify(graph, random, names):
    """Unify two to four of some nodes, in random pairs."""
    chosen = random.sample(names, random.randrange(2, 5))
    rules = {
        "email": random.choice(["ours", "theirs", "newest", "longest"]),
        "tags": random.choice(["ours", "theirs", "union"]),
    }
    edges = random.choice([None, {"Knows": random.choice(["ours", "theirs", "newest"])}])
    return graph.unify("Person", keep=chosen[0], drop=chosen[1:], rules=rules, edges=edges)


@seeds
def test_revert_is_the_inverse(tmp_path, seed):
    random = Random(seed)
    graph = new_graph(tmp_path / "g", random)
    states = [state(graph)]
    commits = []
    for names in (NAMES[:6], NAMES[6:]):
        commits.append(unify(graph, random, names).commit_id)
        states.append(state(graph))
    graph.revert(commits[1])
    assert state(graph) == states[1]
    graph.revert(commits[0])
    assert state(graph) == states[0]
    assert not graph.verify()


@seeds
def test_unify_commutes_with_unrelated_edits(tmp_path, seed):
    random = Random(seed)
    graph = new_graph(tmp_path / "g", random)
    own, other = NAMES[:6], NAMES[6:]
    edits = [
        f'update Person set {{ email: "new{random.randrange(9)}" }} where name = "{random.choice(other)}"',
        f'insert Knows {{ from: "{random.choice(other)}", to: "{random.choice(other)}", since: 9 }}',
        f'delete Visited where from = "{random.choice(other)}"',
    ]
    results = []
    for target in ("unify", "edits"):
        graph.branch_create(f"{target}/unify")
        graph.branch_create(f"{target}/edits")
        unify(graph.on(f"{target}/unify"), Random(seed), own)
        for edit in edits:
            graph.on(f"{target}/edits").mutate(edit)
        source = "edits" if target == "unify" else "unify"
        graph.merge(f"{target}/{source}", into=f"{target}/{target}")
        results.append(state(graph.on(f"{target}/{target}")))
    for each in results:
        for row in each["Knows"]:
            row["id"] = row["id"][:2] if row["since"] != 9 else "new"
        each["Knows"].sort(key=repr)
    assert results[0] == results[1]
    direct = graph.branch_create("direct") and graph.on("direct")
    unify(direct, Random(seed), own)
    for edit in edits:
        direct.mutate(edit)
    assert state(direct)["Person"] == results[0]["Person"]
