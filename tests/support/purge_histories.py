"""Two graphs with the same random history, one of which never contained a subject."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.graph import Graph
from support.groups import grouped

SUBJECT = "ana-the-subject"
PEOPLE = (SUBJECT, "bob", "cid", "dan", "eve", "fay")
SCHEMA = """\
node Person {
  name: String @key
  age: I32?
  bio: String? @index
  tags: [String]?
}

node Place {
  name: String @key
}

edge Knows: Person -> Person {
  since: I32?
}

edge Lives: Person -> Place
"""


@dataclass
class Twins:
    """A graph with the subject and one without it; every step makes one commit in each."""

    whole: Graph
    without: Graph
    random: random.Random
    steps: int = 0
    commits: list[tuple[str, str]] = field(default_factory=list)
    edges: set[str] = field(default_factory=set)

    @classmethod
    def create(cls, folder: Path, seed: int) -> Twins:
        """Create two empty graphs."""
        graphs = [og.init(folder / name, SCHEMA, sync=False) for name in ("whole", "without")]
        return cls(*graphs, random.Random(seed))

    @property
    def graphs(self) -> Iterator[tuple[Graph, bool]]:
        """Each graph, and True for the one that has the subject."""
        yield self.whole, True
        yield self.without, False

    def _record(self) -> None:
        commits = tuple(graph.commits(limit=1)[0].id for graph, _ in self.graphs)
        assert len(commits) == 2
        self.commits.append(commits)

    def step(self) -> None:
        """Make one random change in both graphs."""
        self.steps += 1
        branches = [name for name in self.whole.branches() if name != "main"]
        kinds = ["load", "load", "update", "delete", "group", "optimize", "branch", "overwrite"]
        kinds += ["merge", "drop"] if branches else []
        kind = self.random.choice(kinds)
        if kind in ("branch", "merge", "drop"):
            self._change_branches(kind, branches)
        elif kind == "group":
            self._group()
        elif kind == "optimize":
            for graph, _ in self.graphs:
                graph.optimize()
        elif kind == "delete":
            self._delete(self.random.choice(PEOPLE))
        else:
            self._load(self.random.choice([*branches, "main"]), "overwrite" if kind == "overwrite" else "merge")
        self._record()

    def _tick(self) -> dict[str, Any]:
        """Return a record that makes every load a commit."""
        return {"type": "Place", "data": {"name": f"place-{self.steps}"}}

    def _load(self, branch: str, mode: str) -> None:
        people = self.random.sample(PEOPLE, 3)
        nodes = [
            {"type": "Person", "data": {"name": name, "age": self.random.randrange(90), **self._texts(name)}}
            for name in (people if mode == "merge" else PEOPLE)
        ]
        edges = []
        if mode == "overwrite":
            # A load replaces the tables of the types that it contains.
            edges.append({"edge": "Knows", "from": "bob", "to": "cid", "data": {"id": "always"}})
        for _ in range(self.random.randrange(3)):
            ends = self.random.choices(people, k=2)
            data = {"id": f"e{self.random.randrange(8)}-{'-'.join(ends)}", "since": self.steps}
            edges.append({"edge": "Knows", "from": ends[0], "to": ends[1], "data": data})
        edges = list({edge["data"]["id"]: edge for edge in edges}.values())
        for graph, has_subject in self.graphs:
            keeps = [node for node in nodes if has_subject or node["data"]["name"] != SUBJECT]
            keeps += [edge for edge in edges if has_subject or SUBJECT not in (edge["from"], edge["to"])]
            graph.load([self._tick(), *keeps], mode=mode, branch=branch)

    def _texts(self, name: str) -> dict[str, Any]:
        return {"bio": f"{name} {self.steps}", "tags": [name, str(self.steps)][: self.steps % 3]}

    def _delete(self, name: str) -> None:
        text = f'query q() {{ delete Person where name = "{name}" }}'
        for graph, _ in self.graphs:
            graph.load([self._tick()], mode="merge")
            graph.mutate(text)

    def _group(self) -> None:
        """Change several rows as one group, whose intermediate commits pin parts of versions."""
        names = self.random.sample(PEOPLE, 4)
        for graph, has_subject in self.graphs:
            calls = [
                lambda graph=graph, name=name: graph.mutate(
                    f'query q() {{ upsert Person {{ name: "{name}", age: {self.steps}, bio: "group {name}" }} }}'
                )
                for name in names
                if has_subject or name != SUBJECT
            ]
            for outcome in grouped(graph, calls):
                assert not isinstance(outcome, BaseException), outcome

    def _change_branches(self, kind: str, branches: list[str]) -> None:
        name = self.random.choice(branches) if branches else ""
        for graph, _ in self.graphs:
            if kind == "branch":
                graph.branch_create(f"b{self.steps}")
                graph.load([self._tick()], mode="merge", branch=f"b{self.steps}")
            elif kind == "merge":
                graph.merge(name, resolve="theirs")
            else:
                graph.branch_delete(name, force=True)


def state_of(graph: Graph, at: str) -> dict[str, Any]:
    """Return what reads show at a commit: rows, traversals and searches."""
    rows = {
        name: sorted((sorted(row.items()) for row in graph.to_arrow(name, at=at).to_pylist()), key=str)
        for name in ("Person", "Place", "Knows", "Lives")
    }
    text = 'match { $p: Person $p knows $q search($q.bio, "group") } return { $p.name, $q.name, $q.age }'
    count = "match { $p: Person } return { count($p) as n, max($p.age) as m }"
    queries = [sorted(map(str, graph.query(query, at=at).to_rows())) for query in (text, count)]
    return {"rows": rows, "queries": queries}


def changes_between(graph: Graph, before: str, after: str) -> list[str]:
    """Return the difference of two commits as texts."""
    return sorted(f"{c.table_key} {c.id} {c.before} {c.after}" for c in graph.diff(before, after))


def history_of(graph: Graph, name: str) -> list[tuple[Any, Any]]:
    """Return the images of a person in the history of main."""
    return [(change.before, change.after) for change in graph.history("Person", name)]
