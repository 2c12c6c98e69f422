"""A graph as dictionaries, random edits, and a simple three-way merge as the reference."""

from __future__ import annotations

from copy import deepcopy
from random import Random
from typing import Any

from omnigraph.graph import Graph
from support.writes import edge, node

SCHEMA = """\
node N {
    k: String @key
    a: I32?
    b: String?
    c: F64?
    tags: [String]?
}

edge E: N -> N {
    w: I32?
}
"""
Row = dict[str, Any]
Rows = dict[str, dict[str, Row]]
"""Table key → id → row."""

KEYS = [f"n{number}" for number in range(9)]
EDGES = [f"e{number}" for number in range(9)]
VALUES: dict[str, list[Any]] = {
    "a": [None, 0, 1, -1],
    "b": [None, "", "x", "ä"],
    "c": [None, 0.0, -0.0, 1.5],
    "tags": [None, [], ["x"], ["x", "y"], ["y", "x"]],
}


def empty() -> Rows:
    return {"node:N": {}, "edge:E": {}}


def some_node(random: Random, id_: str) -> Row:
    return {"id": id_, "k": id_, **{name: random.choice(values) for name, values in VALUES.items()}}


class Side:
    """A branch of a graph and its expected content."""

    def __init__(self, graph: Graph, branch: str, rows: Rows) -> None:
        self.graph = graph
        self.branch = branch
        self.rows = rows

    def fork(self, branch: str) -> Side:
        self.graph.branch_create(branch, from_branch=self.branch)
        return Side(self.graph, branch, deepcopy(self.rows))

    def edit(self, random: Random) -> None:
        """Make a few commits with upserts, updates and deletes on a small set of ids."""
        for _ in range(random.randint(1, 3)):
            random.choice((self.put, self.put, self.set_property, self.delete_nodes, self.delete_edges))(random)

    def put(self, random: Random) -> None:
        nodes = [some_node(random, id_) for id_ in random.sample(KEYS, random.randint(1, 3))]
        known = [*self.rows["node:N"], *(row["id"] for row in nodes)]
        edges = [
            {"id": id_, "src": random.choice(known), "dst": random.choice(known), "w": random.choice([None, 1, 2])}
            for id_ in random.sample(EDGES, random.randint(0, 3))
        ]
        records = [node("N", **{k: v for k, v in row.items() if k != "id"}) for row in nodes]
        records += [edge("E", row["src"], row["dst"], id_=row["id"], w=row["w"]) for row in edges]
        self.graph.load(records, mode="merge", branch=self.branch)
        self.rows["node:N"] |= {row["id"]: row for row in nodes}
        self.rows["edge:E"] |= {row["id"]: row for row in edges}

    def set_property(self, random: Random) -> None:
        if not self.rows["node:N"]:
            return
        id_ = random.choice(sorted(self.rows["node:N"]))
        name = random.choice(["a", "b", "c"])
        value = random.choice(VALUES[name][1:])
        types = {"a": "I32", "b": "String", "c": "F64"}
        query = f'query q($v: {types[name]}) {{ update N set {{ {name}: $v }} where k = "{id_}" }}'
        self.graph.mutate(query, params={"v": value}, branch=self.branch)
        self.rows["node:N"][id_] = {**self.rows["node:N"][id_], name: value}

    def delete_nodes(self, random: Random) -> None:
        gone = random.sample(KEYS, random.randint(1, 2))
        statements = " ".join(f'delete N where k = "{id_}"' for id_ in gone)
        self.graph.mutate(f"query q() {{ {statements} }}", branch=self.branch)
        for id_ in gone:
            self.rows["node:N"].pop(id_, None)
        kept = self.rows["edge:E"].items()
        self.rows["edge:E"] = {id_: row for id_, row in kept if row["src"] not in gone and row["dst"] not in gone}

    def delete_edges(self, random: Random) -> None:
        source = random.choice(KEYS)
        self.graph.mutate(f'query q() {{ delete E where from = "{source}" }}', branch=self.branch)
        self.rows["edge:E"] = {id_: row for id_, row in self.rows["edge:E"].items() if row["src"] != source}

    def check(self) -> None:
        """Compare the branch with its expected content."""
        assert shown(stored(self.graph, self.branch)) == shown(self.rows)


def stored(graph: Graph, at: str) -> Rows:
    """The content of a branch or commit."""
    snapshot = graph.snapshot(at=at)
    tables = {key: snapshot.table(key).read().to_pylist() for key in ("node:N", "edge:E")}
    return {key: {row["id"]: row for row in rows} for key, rows in tables.items()}


def shown(rows: Rows) -> dict[str, dict[str, str]]:
    """Rows as canonical text: the two zeros differ, column order is ignored."""
    return {key: {id_: repr(sorted(row.items())) for id_, row in table.items()} for key, table in rows.items()}


def same(a: Row | None, b: Row | None) -> bool:
    """Equality of rows by canonical text."""
    if a is None or b is None:
        return a is b
    return repr(sorted(a.items())) == repr(sorted(b.items()))


def decide(b: Row | None, t: Row | None, s: Row | None) -> tuple[bool, Row | None]:
    """The merge decision for a row."""
    if same(s, b) or same(s, t):
        return True, t
    return same(t, b), s


def three_way(
    base: Rows, ours: Rows, theirs: Rows, resolve: str | None = None
) -> tuple[Rows, set[tuple[str, str, str]]]:
    """The merged rows, and every conflict as (table, row, kind)."""
    merged: Rows = empty()
    conflicts: set[tuple[str, str, str]] = set()
    for key in merged:
        for id_ in {*base[key], *ours[key], *theirs[key]}:
            b, t, s = (side[key].get(id_) for side in (base, ours, theirs))
            settled, result = decide(b, t, s)
            if not settled and resolve is not None:
                settled, result = True, t if resolve == "ours" else s
            if not settled:
                kind = "divergent_insert" if b is None else "divergent_update" if t and s else "delete_vs_update"
                conflicts.add((key, id_, kind))
            elif result is not None:
                merged[key][id_] = result
    if not conflicts:
        nodes = merged["node:N"]
        for id_, row in merged["edge:E"].items():
            if row["src"] not in nodes or row["dst"] not in nodes:
                conflicts.add(("edge:E", id_, "orphan_edge"))
    return merged, conflicts


def ancestors(graph: Graph, commit_id: str) -> set[str]:
    """A commit and its ancestors."""
    parents = graph.commit(commit_id).parents
    return {commit_id}.union(*(ancestors(graph, parent) for parent in parents))


def base_rows(graph: Graph, ours: str, theirs: str) -> Rows:
    """The merge base of two commits; with several common ancestors, the merge of their states."""
    common = ancestors(graph, ours) & ancestors(graph, theirs)
    lowest = [one for one in common if not any(one != other and one in ancestors(graph, other) for other in common)]
    first, *others = sorted(lowest, key=lambda one: -graph.commit(one).manifest_version)
    rows = stored(graph, first)
    for other in others:
        older, theirs_rows = base_rows(graph, first, other), stored(graph, other)
        merged = empty()
        for key in merged:
            for id_ in {*rows[key], *theirs_rows[key], *older[key]}:
                settled, result = decide(older[key].get(id_), rows[key].get(id_), theirs_rows[key].get(id_))
                result = result if settled else older[key].get(id_)
                if result is not None:
                    merged[key][id_] = result
        rows = merged
    return rows
