"""The queries of `bench.forms` and their graph: persons who know persons, work at companies and write posts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph as og
from bench.formulations import Block, Clauses, Condition, Edge, Hop, Node, Subject
from bench.read.graph import DIMENSIONS, SEED, SIZES, Data, make
from omnigraph.storage.lance.staging import TableWrite
from omnigraph.versioning.write.write import write

COMPANIES = 500
SCHEMA = f"""
node Person {{ key: String @key  age: I32  city: String }}
node Company {{ key: String @key  sector: String }}
node Post {{ key: String @key  text: String @index  likes: I32  vec: Vector({DIMENSIONS}) @index }}
edge Knows: Person -> Person {{ weight: F64 }}
edge WorksAt: Person -> Company
edge Wrote: Person -> Post
"""
SUBJECT = Subject(
    {"knows": Edge("Person", "Person"), "worksAt": Edge("Person", "Company"), "wrote": Edge("Person", "Post")}
)


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
    path = folder / size / "forms"
    if not (path / "done").exists():
        _fill(path / "graph", data)
        (path / "done").touch()
    return og.open(path / "graph")


def _fill(path: Path, data: Data) -> None:
    graph = og.init(path, SCHEMA, sync=False)
    random = np.random.default_rng(SEED + 2)
    people, posts = data.read("person"), data.read("post")
    companies = pa.array([f"e{number}" for number in range(COMPANIES)])
    employer = (COMPANIES * random.random(len(people)) ** 2).astype(np.int64)
    works = pa.table({"src": people["key"], "dst": companies.take(pa.array(employer))})
    rows = {
        "node:Person": people.select(["key", "age", "city"]).add_column(0, "id", people["key"]),
        "node:Company": pa.table(
            {"id": companies, "key": companies, "sector": [f"s{number % 10}" for number in range(COMPANIES)]}
        ),
        "node:Post": posts.select(["key", "text", "likes", "vec"]).add_column(0, "id", posts["key"]),
        "edge:WorksAt": works.add_column(0, "id", pa.array([f"o{number}" for number in range(len(works))])),
    }
    for key, prefix in (("edge:Knows", "k"), ("edge:Wrote", "w")):
        edges = data.read(key.partition(":")[2].lower())
        ids = pa.array([f"{prefix}{number}" for number in range(edges.num_rows)])
        columns = {"id": ids, "src": edges["from"], "dst": edges["to"]}
        rows[key] = pa.table(columns | ({"weight": edges["weight"]} if key == "edge:Knows" else {}))

    def change(transaction: Any) -> None:
        for key, table in rows.items():
            transaction.change(key, TableWrite(append=table))

    write(graph._repository, change)
    graph.ensure_indices()


# -- queries -----------------------------------------------------------------------------------------


def _cond(prop: str, op: str, value: str) -> Condition:
    others = (value[1:].partition(".")[0],) if value.startswith("$") and "." in value else ()
    return Condition(f"${prop}", op, value, (prop.partition(".")[0], *others))


def _not(*clauses: Any) -> Block:
    return Block("not", clauses)


def _maybe(*clauses: Any) -> Block:
    return Block("optional", clauses)


_START = Node("p", "Person", (("key", "$start"),))
_END = Node("q", "Person", (("key", "$start"),))
_KEY: dict[str, Any] = {"start": "p777"}
_COMPANY = Node("c", "Company", (("key", '"e77"'),))
_C7 = (("city", '"c7"'),)
_VECTOR = [float(value) for value in np.random.default_rng(SEED + 3).standard_normal(DIMENSIONS)]
_SEARCH: dict[str, Any] = {"vector": _VECTOR, "words": "bafogemo tuzi"}
_COUNT = "return { count($q) as n }"


def _hop(text: str, bounds: tuple[int, int] | None = None) -> Hop:
    left, edge, right = text.split()
    word, _, name = edge.rpartition(":")
    return Hop(left, name, right, bounds, word or None)


QUERIES: tuple[FormQuery, ...] = (
    # -- one node and its neighbourhood
    FormQuery("point lookup", (_START,), "return { $p.age, $p.city }", _KEY),
    FormQuery(
        "filter scan",
        (Node("p", "Person", _C7), _cond("p.age", ">=", "30"), _cond("p.age", "<", "40")),
        "return { $p.key }",
    ),
    FormQuery("one hop", (_START, _hop("p knows q")), "return { $q.key, $q.age }", _KEY),
    FormQuery(
        "one hop back", (Node("q", "Person", (("key", "$start"),)), _hop("p knows q")), "return { $p.key }", _KEY
    ),
    FormQuery(
        "one hop, filter at the end",
        (_START, Node("q", "Person"), _hop("p knows q"), _cond("q.age", ">", "60")),
        "return { $q.key }",
        _KEY,
    ),
    FormQuery("two hops", (_START, _hop("p knows a"), _hop("a knows q")), _COUNT, _KEY),
    FormQuery(
        "two hops distinct", (_START, _hop("p knows a"), _hop("a knows q")), "return { count(distinct $q) as n }", _KEY
    ),
    FormQuery(
        "three hops distinct",
        (_START, _hop("p knows a"), _hop("a knows b"), _hop("b knows q")),
        "return { count(distinct $q) as n }",
        _KEY,
    ),
    FormQuery("three hops", (_START, _hop("p knows a"), _hop("a knows b"), _hop("b knows q")), _COUNT, _KEY),
    FormQuery("at distance three", (_START, _hop("p knows q", (3, 3))), _COUNT, _KEY),
    FormQuery("reach four", (_START, _hop("p knows q", (1, 4))), _COUNT, _KEY),
    FormQuery("reach four, distinct", (_START, _hop("p knows q", (1, 4))), "return { count(distinct $q) as n }", _KEY),
    FormQuery(
        "reach two, filter at the end",
        (_START, Node("q", "Person", _C7), _hop("p knows q", (1, 2))),
        "return { $q.key }",
        _KEY,
    ),
    FormQuery(
        "between two keys",
        (_START, Node("q", "Person", (("key", '"p5"'),)), _hop("p knows a"), _hop("a knows q")),
        "return { $a.key }",
        _KEY,
    ),
    # -- patterns with a selective end
    FormQuery(
        "employees of a company", (Node("p", "Person"), _COMPANY, _hop("p worksAt c")), "return { $p.key, $p.age }"
    ),
    FormQuery(
        "friends of employees",
        (Node("p", "Person"), Node("q", "Person"), _COMPANY, _hop("p knows q"), _hop("q worksAt c")),
        "return { $p.key as a, $q.key as b }",
    ),
    FormQuery(
        "persons who know an employee, distinct",
        (Node("p", "Person"), Node("q", "Person"), _COMPANY, _hop("p knows q"), _hop("q worksAt c")),
        "return { count(distinct $p) as n }",
    ),
    FormQuery(
        "posts of friends of employees",
        (Node("t", "Post"), _COMPANY, _hop("p wrote t"), _hop("p knows q"), _hop("q worksAt c")),
        "return { count($t) as n }",
    ),
    FormQuery(
        "authors in a city with many likes",
        (Node("p", "Person", _C7), Node("t", "Post"), _hop("p wrote t"), _cond("t.likes", ">", "990")),
        "return { $p.key as a, $t.key as b }",
    ),
    FormQuery(
        "colleagues",
        (_START, _hop("p worksAt c"), Node("q", "Person"), _hop("q worksAt c"), _cond("q.age", "=", "30")),
        "return { $q.key }",
        _KEY,
    ),
    FormQuery(
        "friends in a sector",
        (Node("c", "Company", (("sector", '"s3"'),)), _START, _hop("p knows q"), _hop("q worksAt c")),
        "return { $q.key as a, $c.key as b }",
        _KEY,
    ),
    FormQuery(
        "friends older than each other",
        (
            Node("p", "Person", _C7),
            _hop("p knows q"),
            Node("q", "Person", (("city", '"c8"'),)),
            _cond("q.age", ">", "$p.age"),
        ),
        "return { count($q) as n }",
    ),
    FormQuery(
        "heavy edges of a city",
        (Node("p", "Person", _C7), _hop("p e:knows q"), _cond("e.weight", ">", "0.99"), _cond("q.age", "<", "30")),
        "return { count($q) as n }",
    ),
    # -- whole graph
    FormQuery("two-hop count", (Node("a", "Person"), _hop("a knows b"), _hop("b knows q")), _COUNT),
    FormQuery("triangles", (Node("a", "Person"), _hop("a knows b"), _hop("b knows q"), _hop("a knows q")), _COUNT),
    FormQuery(
        "triangles in a city",
        (Node("a", "Person", _C7), _hop("a knows b"), _hop("b knows q"), _hop("a knows q")),
        _COUNT,
    ),
    FormQuery(
        "cycles of three",
        (Node("a", "Person", _C7), _hop("a knows b"), _hop("b knows q"), _hop("q knows a")),
        _COUNT,
    ),
    FormQuery(
        "group by over a hop",
        (Node("p", "Person"), _hop("p knows q")),
        "return { $q.city as city, count($p) as n } order { n desc, city } limit 10",
    ),
    FormQuery(
        "colleagues who know each other, by sector",
        (Node("p", "Person"), _hop("p knows q"), _hop("p worksAt c"), _hop("q worksAt c")),
        "return { $c.sector as sector, count($p) as n } order { n desc, sector }",
    ),
    # -- negations and optional blocks
    FormQuery(
        "persons who know nobody at a company",
        (Node("p", "Person"), _not(Node("q", "Person"), _COMPANY, _hop("p knows q"), _hop("q worksAt c"))),
        "return { count($p) as n }",
    ),
    FormQuery(
        "persons of a city who know nobody at a company",
        (Node("p", "Person", _C7), _not(_hop("p knows q"), _hop("q worksAt c"), _cond("c.key", "=", '"e77"'))),
        "return { $p.key }",
    ),
    FormQuery(
        "friends of friends who are no friends",
        (_START, _hop("p knows a"), _hop("a knows q"), _not(_hop("p knows q"))),
        _COUNT,
        _KEY,
    ),
    FormQuery(
        "authors without popular posts",
        (Node("p", "Person", _C7), _not(_hop("p wrote t"), _cond("t.likes", ">", "500"))),
        "return { count($p) as n }",
    ),
    FormQuery("persons without posts", (Node("p", "Person"), _not(_hop("p wrote t"))), "return { count($p) as n }"),
    FormQuery(
        "friends and their employer",
        (_START, _hop("p knows q"), _maybe(_hop("q worksAt c"), _cond("c.sector", "=", '"s3"'))),
        "return { $q.key as a, $c.key as b }",
        _KEY,
    ),
    # -- search
    FormQuery(
        "hybrid search, then author",
        (Node("t", "Post"), Node("p", "Person"), _hop("p wrote t")),
        "return { $t.key as a, $p.key as b } order { rrf(nearest($t.vec, $vector), bm25($t.text, $words)) } limit 10",
        _SEARCH,
    ),
    FormQuery(
        "hybrid search, optional author",
        (Node("t", "Post"), _maybe(Node("p", "Person"), _hop("p wrote t"))),
        "return { $t.key as a, $p.key as b } order { rrf(nearest($t.vec, $vector), bm25($t.text, $words)) } limit 10",
        _SEARCH,
    ),
    FormQuery(
        "nearest posts, author and employer",
        (Node("p", "Person"), Node("t", "Post"), _hop("p wrote t"), _hop("p worksAt c")),
        "return { $t.key as a, $c.key as b } order { nearest($t.vec, $vector) } limit 10",
        {"vector": _VECTOR},
    ),
    FormQuery(
        "relevant posts of a city",
        (Node("p", "Person", _C7), Node("t", "Post"), _hop("p wrote t")),
        "return { $t.key as a, $p.key as b } order { bm25($t.text, $words) } limit 10",
        {"words": _SEARCH["words"]},
    ),
    FormQuery(
        "most liked posts and their authors",
        (Node("p", "Person"), Node("t", "Post"), _hop("p wrote t")),
        "return { $t.key as a, $t.likes as n, $p.key as b } order { $t.likes desc } limit 10",
    ),
)
