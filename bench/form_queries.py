"""The queries of `bench.forms` and their graph: persons who know persons, work at companies and write posts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import omnigraph as og
from bench.formulations import AllPaths, Clauses, Node, ShortestPath, condition, hop, negation, optional
from bench.read.graph import DIMENSIONS, SEED, SIZES, make
from bench.read.systems import OmniGraph
from bench.read.workers import prepare


@dataclass(frozen=True)
class FormQuery:
    """A query: clauses of its match, the rest of its text, and its parameters."""

    name: str
    clauses: Clauses
    rest: str
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def ordered(self) -> bool:
        """True if the order of the rows is defined."""
        return "order {" in self.rest


def open_graph(size: str, folder: Path) -> og.Graph:
    """Open the graph of a size; it is generated if missing."""
    data = make(SIZES[size], folder)
    system = OmniGraph(data.folder.parent / OmniGraph.name)
    prepare(system, data, system.folder)
    return system.graph


# -- queries -----------------------------------------------------------------------------------------


_START = Node("p", "Person", (("key", "$start"),))
_END = Node("q", "Person", (("key", "$start"),))
_KEY: dict[str, Any] = {"start": "p777"}
_COMPANY = Node("c", "Company", (("key", '"e77"'),))
_C7 = (("city", '"c7"'),)
_VECTOR = [float(value) for value in np.random.default_rng(SEED + 3).standard_normal(DIMENSIONS)]
_SEARCH: dict[str, Any] = {"vector": _VECTOR, "words": "bafogemo tuzi"}
_COUNT = "return { count($q) as n }"

QUERIES: tuple[FormQuery, ...] = (
    # -- one node and its neighbourhood
    FormQuery("point lookup", (_START,), "return { $p.age, $p.city }", _KEY),
    FormQuery(
        "filter scan",
        (Node("p", "Person", _C7), condition("p.age", ">=", "30"), condition("p.age", "<", "40")),
        "return { $p.key }",
    ),
    FormQuery("one hop", (_START, hop("p knows q")), "return { $q.key, $q.age }", _KEY),
    FormQuery("one hop back", (Node("q", "Person", (("key", "$start"),)), hop("p knows q")), "return { $p.key }", _KEY),
    FormQuery(
        "one hop, filter at the end",
        (_START, Node("q", "Person"), hop("p knows q"), condition("q.age", ">", "60")),
        "return { $q.key }",
        _KEY,
    ),
    FormQuery("two hops", (_START, hop("p knows a"), hop("a knows q")), _COUNT, _KEY),
    FormQuery(
        "two hops distinct", (_START, hop("p knows a"), hop("a knows q")), "return { count(distinct $q) as n }", _KEY
    ),
    FormQuery(
        "three hops distinct",
        (_START, hop("p knows a"), hop("a knows b"), hop("b knows q")),
        "return { count(distinct $q) as n }",
        _KEY,
    ),
    FormQuery("three hops", (_START, hop("p knows a"), hop("a knows b"), hop("b knows q")), _COUNT, _KEY),
    FormQuery("at distance three", (_START, hop("p knows q", (3, 3))), _COUNT, _KEY),
    FormQuery("reach four", (_START, hop("p knows q", (1, 4))), _COUNT, _KEY),
    FormQuery("reach four, distinct", (_START, hop("p knows q", (1, 4))), "return { count(distinct $q) as n }", _KEY),
    FormQuery(
        "reach two, filter at the end",
        (_START, Node("q", "Person", _C7), hop("p knows q", (1, 2))),
        "return { $q.key }",
        _KEY,
    ),
    FormQuery(
        "between two keys",
        (_START, Node("q", "Person", (("key", '"p5"'),)), hop("p knows a"), hop("a knows q")),
        "return { $a.key }",
        _KEY,
    ),
    # -- patterns with a selective end
    FormQuery(
        "employees of a company", (Node("p", "Person"), _COMPANY, hop("p worksAt c")), "return { $p.key, $p.age }"
    ),
    FormQuery(
        "friends of employees",
        (Node("p", "Person"), Node("q", "Person"), _COMPANY, hop("p knows q"), hop("q worksAt c")),
        "return { $p.key as a, $q.key as b }",
    ),
    FormQuery(
        "persons who know an employee, distinct",
        (Node("p", "Person"), Node("q", "Person"), _COMPANY, hop("p knows q"), hop("q worksAt c")),
        "return { count(distinct $p) as n }",
    ),
    FormQuery(
        "posts of friends of employees",
        (Node("t", "Post"), _COMPANY, hop("p wrote t"), hop("p knows q"), hop("q worksAt c")),
        "return { count($t) as n }",
    ),
    FormQuery(
        "authors in a city with many likes",
        (Node("p", "Person", _C7), Node("t", "Post"), hop("p wrote t"), condition("t.likes", ">", "990")),
        "return { $p.key as a, $t.key as b }",
    ),
    FormQuery(
        "colleagues",
        (_START, hop("p worksAt c"), Node("q", "Person"), hop("q worksAt c"), condition("q.age", "=", "30")),
        "return { $q.key }",
        _KEY,
    ),
    FormQuery(
        "friends in a sector",
        (Node("c", "Company", (("sector", '"s3"'),)), _START, hop("p knows q"), hop("q worksAt c")),
        "return { $q.key as a, $c.key as b }",
        _KEY,
    ),
    FormQuery(
        "friends older than each other",
        (
            Node("p", "Person", _C7),
            hop("p knows q"),
            Node("q", "Person", (("city", '"c8"'),)),
            condition("q.age", ">", "$p.age"),
        ),
        "return { count($q) as n }",
    ),
    FormQuery(
        "heavy edges of a city",
        (
            Node("p", "Person", _C7),
            hop("p e:knows q"),
            condition("e.weight", ">", "0.99"),
            condition("q.age", "<", "30"),
        ),
        "return { count($q) as n }",
    ),
    # -- whole graph
    FormQuery("two-hop count", (Node("a", "Person"), hop("a knows b"), hop("b knows q")), _COUNT),
    FormQuery("triangles", (Node("a", "Person"), hop("a knows b"), hop("b knows q"), hop("a knows q")), _COUNT),
    FormQuery(
        "triangles in a city",
        (Node("a", "Person", _C7), hop("a knows b"), hop("b knows q"), hop("a knows q")),
        _COUNT,
    ),
    FormQuery(
        "cycles of three",
        (Node("a", "Person", _C7), hop("a knows b"), hop("b knows q"), hop("q knows a")),
        _COUNT,
    ),
    FormQuery(
        "group by over a hop",
        (Node("p", "Person"), hop("p knows q")),
        "return { $q.city as city, count($p) as n } order { n desc, city } limit 10",
    ),
    FormQuery(
        "colleagues who know each other, by sector",
        (Node("p", "Person"), hop("p knows q"), hop("p worksAt c"), hop("q worksAt c")),
        "return { $c.sector as sector, count($p) as n } order { n desc, sector }",
    ),
    # -- negations and optional blocks
    FormQuery(
        "persons who know nobody at a company",
        (Node("p", "Person"), negation(Node("q", "Person"), _COMPANY, hop("p knows q"), hop("q worksAt c"))),
        "return { count($p) as n }",
    ),
    FormQuery(
        "persons of a city who know nobody at a company",
        (Node("p", "Person", _C7), negation(hop("p knows q"), hop("q worksAt c"), condition("c.key", "=", '"e77"'))),
        "return { $p.key }",
    ),
    FormQuery(
        "friends of friends who are no friends",
        (_START, hop("p knows a"), hop("a knows q"), negation(hop("p knows q"))),
        _COUNT,
        _KEY,
    ),
    FormQuery(
        "authors without popular posts",
        (Node("p", "Person", _C7), negation(hop("p wrote t"), condition("t.likes", ">", "500"))),
        "return { count($p) as n }",
    ),
    FormQuery("persons without posts", (Node("p", "Person"), negation(hop("p wrote t"))), "return { count($p) as n }"),
    FormQuery(
        "friends and their employer",
        (_START, hop("p knows q"), optional(hop("q worksAt c"), condition("c.sector", "=", '"s3"'))),
        "return { $q.key as a, $c.key as b }",
        _KEY,
    ),
    # -- search
    FormQuery(
        "hybrid search, then author",
        (Node("t", "Post"), Node("p", "Person"), hop("p wrote t")),
        "return { $t.key as a, $p.key as b } order { rrf(nearest($t.vec, $vector), bm25($t.text, $words)) } limit 10",
        _SEARCH,
    ),
    FormQuery(
        "hybrid search, optional author",
        (Node("t", "Post"), optional(Node("p", "Person"), hop("p wrote t"))),
        "return { $t.key as a, $p.key as b } order { rrf(nearest($t.vec, $vector), bm25($t.text, $words)) } limit 10",
        _SEARCH,
    ),
    FormQuery(
        "nearest posts, author and employer",
        (Node("p", "Person"), Node("t", "Post"), hop("p wrote t"), hop("p worksAt c")),
        "return { $t.key as a, $c.key as b } order { nearest($t.vec, $vector) } limit 10",
        {"vector": _VECTOR},
    ),
    FormQuery(
        "relevant posts of a city",
        (Node("p", "Person", _C7), Node("t", "Post"), hop("p wrote t")),
        "return { $t.key as a, $p.key as b } order { bm25($t.text, $words) } limit 10",
        {"words": _SEARCH["words"]},
    ),
    FormQuery(
        "most liked posts and their authors",
        (Node("p", "Person"), Node("t", "Post"), hop("p wrote t")),
        "return { $t.key as a, $t.likes as n, $p.key as b } order { $t.likes desc } limit 10",
    ),
)

PATHS: tuple[FormQuery, ...] = (
    FormQuery(
        "shortest path between two keys",
        (_START, Node("q", "Person", (("key", '"p5"'),)), ShortestPath("w", hop("p knows q", (1, 6)))),
        "return { length($w) as n }",
        _KEY,
    ),
    FormQuery(
        "shortest paths to employees of a company",
        (_START, _COMPANY, ShortestPath("w", hop("p knows q", (1, 3))), hop("q worksAt c")),
        "return { $q.key, length($w) as n }",
        _KEY,
    ),
    FormQuery(
        "all paths to a city, condition on inner nodes",
        (
            _START,
            Node("q", "Person", _C7),
            AllPaths("w", (hop("p knows a"), hop("a knows q"))),
            condition("a.age", ">", "30"),
            condition("q.age", ">", "$a.age"),
        ),
        "return { $a.key as a, $q.key as q, length($w) as n }",
        _KEY,
    ),
    FormQuery(
        "paths between neighbours",
        (_START, AllPaths("w", (hop("p knows a"), hop("a knows q"))), hop("p knows q"), condition("q.age", "<", "50")),
        "return { $a.key as a, $q.key as q }",
        _KEY,
    ),
    FormQuery(
        "paths from the selective side",
        (Node("p", "Person"), _COMPANY, hop("p worksAt c"), AllPaths("w", (hop("q knows p", (1, 2)),))),
        "return { count($w) as n }",
    ),
    FormQuery(
        "persons without a path to a key",
        (Node("p", "Person", _C7), negation(AllPaths("w", (hop("p knows q", (1, 2)),)), _END)),
        "return { $p.key }",
        _KEY,
    ),
    FormQuery(
        "optional shortest path",
        (_COMPANY, hop("p worksAt c"), optional(ShortestPath("w", hop("p knows q", (1, 2))), _END)),
        "return { $p.key, length($w) as n }",
        _KEY,
    ),
)
"""Queries that search paths."""
