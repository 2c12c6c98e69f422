"""Random merges under random guards have the outcome of a direct evaluation in Python."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest

from omnigraph.errors import Denied, MergeConflict
from omnigraph.graph import Graph
from omnigraph.graph_open import init
from property.test_guarded_mutations import EDGE, NAMES, NODE, SCHEMA, Refused, Row, Rules, passes, value_of

SEED = 20_261_118
IDS = [f"e{number}" for number in range(8)]
World = dict[str, dict[str, Row]]
"""Table key → id → row."""


def change(graph: Any, branch: str, world: World, random: Random) -> None:
    """Make a random change of a branch, and the same in its rows."""
    nodes, edges = world[NODE], world[EDGE]
    kind = random.random()
    if kind < 0.55 or len(nodes) < 3:
        name = random.choice(NAMES)
        row = {"name": name, "tenant": random.choice("pq"), "level": None, "pay": None, **nodes.get(name, {})}
        changed = random.choice(("tenant", "level", "pay"))
        nodes[name] = {**row, changed: value_of(random, changed)}
        graph.load([{"type": "Note", "data": nodes[name]}], mode="merge", branch=branch)
    elif kind < 0.85:
        row = {"src": random.choice([*nodes]), "dst": random.choice([*nodes]), "weight": random.randrange(3)}
        id_ = random.choice(IDS)
        edges[id_] = {**row, **{end: edges[id_][end] for end in ("src", "dst") if id_ in edges}}
        data = {"id": id_, "weight": edges[id_]["weight"]}
        record = {"edge": "Cites", "from": edges[id_]["src"], "to": edges[id_]["dst"], "data": data}
        graph.load([record], mode="merge", branch=branch)
    else:
        name = random.choice([*nodes])
        del nodes[name]
        world[EDGE] = {id_: row for id_, row in edges.items() if name not in (row["src"], row["dst"])}
        graph.mutate(f'delete Note where name = "{name}"', branch=branch)


@dataclass
class Direct:
    """The direct evaluation of one merge. Of its conflicts in rows, it has the ids of the visible ones and the number
    of the hidden ones.
    """

    base: World
    ours: World
    theirs: World
    rules: Rules

    def sees(self, key: str, row: Row) -> bool:
        if key == EDGE and not all(
            end in self.ours[NODE] and self.sees(NODE, self.ours[NODE][end]) for end in (row["src"], row["dst"])
        ):
            return False
        return passes(self.rules.seen, key, row)

    def run(self) -> World:
        put: World = {NODE: {}, EDGE: {}}
        lost: dict[str, set[str]] = {NODE: set(), EDGE: set()}
        shown: list[str] = []
        hidden = 0
        for key in (NODE, EDGE):
            for id_ in {**self.base[key], **self.ours[key], **self.theirs[key]}:
                b, t, s = (side[key].get(id_) for side in (self.base, self.ours, self.theirs))
                if s in (b, t):
                    continue
                if t != b:
                    if self.shows(key, b, t, s):
                        shown.append(f"{key}:{id_}")
                    else:
                        hidden += 1
                elif s is None:
                    lost[key].add(id_)
                else:
                    put[key][id_] = s
        if shown or hidden:
            raise Refused(("conflict", sorted(shown), hidden))
        for key in (NODE, EDGE):
            self.check(key, put[key], lost[key])
        merged = {
            key: {id_: row for id_, row in {**self.ours[key], **put[key]}.items() if id_ not in lost[key]}
            for key in (NODE, EDGE)
        }
        for row in put[EDGE].values():
            for end in (row["src"], row["dst"]):
                known = self.ours[NODE].get(end)
                visible = known is not None and end not in lost[NODE] and self.sees(NODE, known)
                if end not in put[NODE] and not visible:
                    raise Refused("violation")
        if any(row[end] not in merged[NODE] for row in merged[EDGE].values() for end in ("src", "dst")):
            raise Refused("violation")
        return merged

    def shows(self, key: str, *images: Row | None) -> bool:
        """Return True if a conflict is visible: each image, and a property in which the sides differ."""
        b, t, s = images
        rows = [row for row in images if row is not None]
        if not all(self.sees(key, row) for row in rows):
            return False
        first, second = (t, s) if t is not None and s is not None else (b, s if t is None else t)
        assert first is not None
        assert second is not None
        names = [name for name in first if first[name] != second[name]]
        if t is not None and s is not None and b is not None:
            names = [name for name in names if t[name] != b[name] or s[name] != b[name]]
        return any(all(passes(self.rules.shown, (key, name), row) for row in rows) for name in names)

    def check(self, key: str, put: dict[str, Row], lost: set[str]) -> None:
        for id_, row in put.items():
            old = self.ours[key].get(id_)
            if old is not None and not self.sees(key, old):
                raise Refused("denied")
            images = [row] if old is None else [old, row]
            action = "row_insert" if old is None else "row_update"
            names = [name for name in row if row[name] != (old or {}).get(name)]
            if not all(passes(self.rules.rows, (action, key), image) for image in images):
                raise Refused("denied")
            if not all(passes(self.rules.written, (key, name), image) for image in images for name in names):
                raise Refused("denied")
        for id_ in lost:
            row = self.ours[key][id_]
            if not self.sees(key, row) or not passes(self.rules.rows, ("row_delete", key), row):
                raise Refused("denied")


def stored(graph: Any) -> World:
    """Read the graph without a guard."""
    columns = {NODE: ("Note", ("name", "tenant", "level", "pay")), EDGE: ("Cites", ("src", "dst", "weight"))}
    return {
        key: {row["id"]: {name: row[name] for name in names} for row in graph.to_arrow(type_).to_pylist()}
        for key, (type_, names) in columns.items()
    }


def merged(graph: Any, branch: str, rules: Rules) -> Any:
    """Merge under a guard; return the outcome."""
    try:
        Graph(graph._context.with_guard(rules.guard)).merge(branch)
    except Denied:
        return "denied"
    except MergeConflict as error:
        hidden = [int(word) for word in error.message.split() if word.isdigit()]
        return "conflict", sorted(conflict.id for conflict in error.conflicts), (hidden or [0])[-1]
    return "ok"


@pytest.mark.parametrize("part", range(3))
def test_random_merges(tmp_path, part):
    random = Random(f"{SEED} {part}")
    graph = init(tmp_path / "graph", SCHEMA, sync=False, environ={})
    world: World = {NODE: {}, EDGE: {}}
    for _ in range(12):
        change(graph, "main", world, random)
    outcomes: Counter[str] = Counter()
    for step in range(32):
        branch = f"work{step}"
        graph.branch_create(branch)
        base, theirs = deepcopy(world), deepcopy(world)
        for _ in range(random.choice((1, 1, 2, 3))):
            change(graph, branch, theirs, random)
        for _ in range(random.choice((0, 0, 1, 3))):
            change(graph, "main", world, random)
        rules = Rules.some(random) if step % 8 else Rules()
        expected: Any = "ok"
        after = world
        try:
            after = Direct(base, world, theirs, rules).run()
        except Refused as error:
            expected = error.args[0]
        found = merged(graph, branch, rules)
        if expected == "violation":
            assert found[0] == "conflict", (step, found, rules)
        elif base == theirs:
            assert found == "ok"
        else:
            assert found == expected, (step, base, world, theirs, rules)
        world = after
        assert stored(graph) == world, (step, rules)
        outcomes[expected if isinstance(expected, str) else expected[0]] += 1
        graph.branch_delete(branch, force=True)
    assert {"ok", "denied", "conflict"} <= outcomes.keys()
