"""The workloads, each in our language and in those of the peers that support it.

`{start}` is the key of a person, passed as a parameter; SQL uses `?`. A workload without a statement for a system is
skipped there. Floats are compared to nine digits, rows without an order as a multiset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bench.formulations import Clauses, Node, ShortestPath, condition, hop, negation

Rows = list[Any]
"""Rows as returned to Python: tuples, lists or dicts."""
Ask = Callable[[Any, dict[str, Any]], Rows]
"""(handle of the system, parameters) → rows, for workloads that need more than one statement."""


@dataclass(frozen=True)
class Workload:
    """One workload."""

    name: str
    clauses: Clauses
    """Of the match in our language."""
    rest: str
    """return …"""
    sqlite: str | None = None
    duckdb: str | None = None
    cypher: str | None = None
    kuzu: Ask | None = None
    """Instead of `cypher`, for indexes that Ladybug lacks."""
    lancedb: Ask | None = None
    keyed: bool = True
    """True if it starts from a person."""
    at_least: float | None = None
    """Target speed-up against the fastest peer; None: no target."""
    graph_peers_only: bool = False
    """True if the target applies to graph databases only."""
    asks: tuple[str, ...] = ()
    """The parts of a question that are parameters: `vector`, `words`."""
    overlap: float | None = None
    """The least share of our rows that a peer returns; None: all of them. Indexes for vectors are approximate."""
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def ordered(self) -> bool:
        """True if the order of the rows is defined."""
        return "order {" in self.rest


def _lance_point(db: Any, params: dict[str, Any]) -> Rows:
    rows = db.person.search().where(f"key = '{params['start']}'").select(["age", "city"]).limit(1).to_list()
    return [(row["age"], row["city"]) for row in rows]


def _lance_scan(db: Any, _: dict[str, Any]) -> Rows:
    table = (
        db.person.search().where("city = 'c7' AND age >= 30 AND age < 40").select(["key"]).limit(1_000_000).to_arrow()
    )
    return [(key,) for key in table["key"].to_pylist()]


def _keys_near(found: Any) -> Rows:
    return [(key,) for key in found.limit(BEST).select(["key", "_distance"]).to_arrow()["key"].to_pylist()]


def _lance_nearest(db: Any, params: dict[str, Any]) -> Rows:
    return _keys_near(db.post.search(params["vector"]).nprobes(_PROBES))


def _lance_nearest_filtered(db: Any, params: dict[str, Any]) -> Rows:
    return _keys_near(db.post.search(params["vector"]).nprobes(_PROBES).where("likes < 100", prefilter=True))


def _lance_hybrid(db: Any, params: dict[str, Any]) -> Rows:
    """The hop is a second look-up, as users of LanceDB write it."""
    found = db.post.search(query_type="hybrid", vector_column_name="vec").vector(params["vector"])
    found = found.text(params["words"]).nprobes(_PROBES).limit(BEST).select(["key"])
    keys = found.to_arrow()["key"].to_pylist()
    wanted = ", ".join(f"'{key}'" for key in keys)
    wrote = db.wrote.search().where(f"to IN ({wanted})").limit(BEST).to_arrow()
    author = dict(zip(wrote["to"].to_pylist(), wrote["from"].to_pylist(), strict=True))
    return [(key, author[key]) for key in keys]


_KUZU_NEAREST = (
    "CALL QUERY_VECTOR_INDEX('Post', 'near', $vector, {count}, efs := {efs}) RETURN node.key ORDER BY distance"
)
_KUZU_WORDS = "CALL QUERY_FTS_INDEX('Post', 'words', $words, top := {count}) RETURN node.key ORDER BY score DESC"


def _kuzu_nearest(db: Any, params: dict[str, Any]) -> Rows:
    return list(db.rows(_KUZU_NEAREST.format(count=BEST, efs=_EFS), params))


def _kuzu_hybrid(db: Any, params: dict[str, Any]) -> Rows:
    """The ranks are fused by the caller."""
    score: dict[str, float] = {}
    near = db.rows(_KUZU_NEAREST.format(count=BEST, efs=_EFS), {"vector": params["vector"]})
    words = db.rows(_KUZU_WORDS.format(count=BEST), {"words": params["words"]})
    for ranking in (near, words):
        for place, (key,) in enumerate(ranking, 1):
            score[key] = score.get(key, 0.0) + 1 / (60 + place)
    keys = sorted(score, key=lambda key: -score[key])[:BEST]
    rows = db.rows("MATCH (a:Person)-[:Wrote]->(p:Post) WHERE p.key IN $keys RETURN p.key, a.key", {"keys": keys})
    author = dict(rows)
    return [(key, author[key]) for key in keys]


BEST = 10
_PROBES = 24
_EFS = 200
_DUCK_NEAREST = "SELECT key FROM post {where}ORDER BY array_cosine_distance(vec, $1::FLOAT[128]) LIMIT 10"
_CYPHER_NEAREST = (
    "MATCH (p:Post) {where}RETURN p.key "
    "ORDER BY array_cosine_similarity(p.vec, CAST($vector, 'FLOAT[128]')) DESC LIMIT 10"
)
_ME = "SELECT number FROM person WHERE key = ?1"
_SQL_REACH = (
    "WITH RECURSIVE r(k, d) AS (SELECT number, 0 FROM person WHERE key = ?1 UNION "
    "SELECT dst, d + 1 FROM r JOIN knows ON src = k WHERE d < {hops}) "
)
_DUCK_REACH = (
    "WITH RECURSIVE r(k, d) AS (SELECT number, 0 FROM person WHERE key = $1 UNION "
    "SELECT dst, d + 1 FROM r JOIN knows ON src = k WHERE d < {hops}) "
)
_BY_DISTANCE = (
    "SELECT d, count(*) FROM (SELECT k, min(d) AS d FROM r GROUP BY k) f JOIN person ON number = k "
    "WHERE d > 0 AND city = 'c7' GROUP BY d"
)
_BY_CITY = (
    "SELECT city, count(*) AS n FROM knows JOIN person ON number = dst GROUP BY city ORDER BY n DESC, city LIMIT 10"
)
_START = Node("p", "Person", (("key", "$start"),))
_END = Node("q", "Person", (("key", '"p5"'),))
_C7 = (("city", '"c7"'),)
_COUNT_Q = "return { count($q) as n }"
_OUT = "MATCH (p:Person {key: $start})"

TRAVERSALS = (
    Workload(
        "point lookup by key",
        (_START,),
        "return { $p.age, $p.city }",
        sqlite="SELECT age, city FROM person WHERE key = ?1",
        duckdb="SELECT age, city FROM person WHERE key = $1",
        cypher=f"{_OUT} RETURN p.age, p.city",
        lancedb=_lance_point,
        at_least=1,
        graph_peers_only=True,
    ),
    Workload(
        "range and equality filter scan",
        (Node("p", "Person", _C7), condition("p.age", ">=", "30"), condition("p.age", "<", "40")),
        "return { $p.key }",
        sqlite="SELECT key FROM person WHERE city = 'c7' AND age >= 30 AND age < 40",
        duckdb="SELECT key FROM person WHERE city = 'c7' AND age >= 30 AND age < 40",
        cypher="MATCH (p:Person) WHERE p.city = 'c7' AND p.age >= 30 AND p.age < 40 RETURN p.key",
        lancedb=_lance_scan,
        keyed=False,
    ),
    Workload(
        "1 hop from a key",
        (_START, hop("p knows q")),
        "return { $q.key, $q.age }",
        sqlite=f"SELECT q.key, q.age FROM knows JOIN person q ON q.number = dst WHERE src = ({_ME})",
        duckdb="SELECT q.key, q.age FROM person p JOIN knows ON src = p.number JOIN person q ON q.number = dst "
        "WHERE p.key = $1",
        cypher=f"{_OUT}-[:Knows]->(q:Person) RETURN q.key, q.age",
        at_least=1,
        graph_peers_only=True,
    ),
    Workload(
        "2 hops distinct, filter at the end",
        (_START, hop("p knows q", (1, 2)), condition("q.age", ">", "60")),
        _COUNT_Q,
        sqlite=f"SELECT count(*) FROM person WHERE age > 60 AND key != ?1 AND number IN (SELECT dst FROM knows WHERE "
        f"src = ({_ME}) UNION SELECT b.dst FROM knows a JOIN knows b ON b.src = a.dst WHERE a.src = ({_ME}))",
        duckdb="WITH f AS (SELECT dst FROM knows JOIN person p ON src = p.number WHERE p.key = $1), "
        "t AS (SELECT dst FROM f UNION SELECT b.dst FROM f JOIN knows b ON b.src = f.dst) "
        "SELECT count(*) FROM t JOIN person ON number = dst WHERE age > 60 AND key != $1",
        cypher=f"{_OUT}-[:Knows*1..2]->(q:Person) WHERE q.age > 60 AND q.key <> $start RETURN count(DISTINCT q.key)",
        at_least=2,
    ),
    Workload(
        "3 hops distinct count",
        (_START, hop("p knows q", (1, 3))),
        _COUNT_Q,
        sqlite=_SQL_REACH.format(hops=3) + "SELECT count(DISTINCT k) - 1 FROM r",
        duckdb=_DUCK_REACH.format(hops=3) + "SELECT count(DISTINCT k) - 1 FROM r",
        cypher=f"{_OUT}-[:Knows* SHORTEST 1..3]->(q:Person) WHERE q.key <> $start RETURN count(*)",
        at_least=2,
    ),
    Workload(
        "reachable in 1..4 hops",
        (_START, hop("p knows q", (1, 4))),
        _COUNT_Q,
        sqlite=_SQL_REACH.format(hops=4) + "SELECT count(DISTINCT k) - 1 FROM r",
        duckdb=_DUCK_REACH.format(hops=4) + "SELECT count(DISTINCT k) - 1 FROM r",
        cypher=f"{_OUT}-[:Knows* SHORTEST 1..4]->(q:Person) WHERE q.key <> $start RETURN count(*)",
        at_least=2,
    ),
    Workload(
        "shortest paths from a key to a city, by length",
        (_START, ShortestPath("w", hop("p knows q", (1, 6))), condition("q.city", "=", '"c7"')),
        "return { length($w) as hops, count($q) as n }",
        sqlite=_SQL_REACH.format(hops=6) + _BY_DISTANCE,
        duckdb=_DUCK_REACH.format(hops=6) + _BY_DISTANCE,
        cypher=f"{_OUT}-[e:Knows* SHORTEST 1..6]->(q:Person) WHERE q.city = 'c7' AND q.key <> $start "
        "RETURN length(e), count(*)",
    ),
    Workload(
        "shortest path between two keys",
        (_START, _END, ShortestPath("w", hop("p knows q", (1, 6)))),
        "return { length($w) as hops }",
        cypher=f"{_OUT}-[e:Knows* SHORTEST 1..6]->(q:Person {{key: 'p5'}}) RETURN length(e)",
    ),
    Workload(
        "lightest path between two keys",
        (_START, _END, ShortestPath("w", hop("p knows q", (1, 30)), "weight")),
        "return { weight($w) as weight }",
        cypher=f"{_OUT}-[e:Knows* WSHORTEST(weight) 1..30]->(q:Person {{key: 'p5'}}) RETURN cost(e)",
    ),
    Workload(
        "3 hops, ends by number of walks, top 10",
        (_START, hop("p knows a"), hop("a knows b"), hop("b knows c")),
        "return { $c.key as end, count($a) as n } order { n desc, end } limit 10",
        sqlite=f"SELECT q.key, n FROM (SELECT c.dst AS dst, count(*) AS n FROM knows a JOIN knows b ON b.src = a.dst "
        f"JOIN knows c ON c.src = b.dst WHERE a.src = ({_ME}) GROUP BY 1) JOIN person q ON q.number = dst "
        "ORDER BY n DESC, q.key LIMIT 10",
        duckdb="SELECT q.key, n FROM (SELECT c.dst AS dst, count(*) AS n FROM knows a JOIN knows b ON b.src = a.dst "
        "JOIN knows c ON c.src = b.dst JOIN person p ON p.number = a.src WHERE p.key = $1 GROUP BY 1) "
        "JOIN person q ON q.number = dst ORDER BY n DESC, q.key LIMIT 10",
        cypher=f"{_OUT}-[:Knows]->(:Person)-[:Knows]->(:Person)-[:Knows]->(c:Person) "
        "RETURN c.key AS k, count(*) AS n ORDER BY n DESC, k LIMIT 10",
        at_least=2,
    ),
    Workload(
        "whole graph, 2-hop count",
        (Node("a", "Person"), hop("a knows b"), hop("b knows c")),
        "return { count($c) as n }",
        duckdb="SELECT count(*) FROM knows a JOIN knows b ON b.src = a.dst",
        sqlite="WITH o AS (SELECT src, count(*) n FROM knows GROUP BY src) "
        "SELECT sum(n) FROM knows JOIN o ON o.src = dst",
        cypher="MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) RETURN count(*)",
        keyed=False,
        at_least=2,
    ),
    Workload(
        "triangles",
        (Node("a", "Person"), hop("a knows b"), hop("b knows c"), hop("a knows c")),
        "return { count($c) as n }",
        duckdb="SELECT count(*) FROM knows a JOIN knows b ON b.src = a.dst "
        "JOIN knows c ON c.src = a.src AND c.dst = b.dst",
        cypher="MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person), (a)-[:Knows]->(c) RETURN count(*)",
        keyed=False,
        at_least=2,
    ),
    Workload(
        "group by over a hop, top 10",
        (Node("p", "Person"), hop("p knows q")),
        "return { $q.city as city, count($p) as n } order { n desc, city } limit 10",
        sqlite=_BY_CITY,
        duckdb=_BY_CITY,
        cypher="MATCH (p:Person)-[:Knows]->(q:Person) RETURN q.city AS city, count(*) AS n "
        "ORDER BY n DESC, city LIMIT 10",
        keyed=False,
        at_least=2,
    ),
    Workload(
        "anti-join over two hops",
        (_START, hop("p knows a"), hop("a knows b"), negation(hop("p knows b"))),
        "return { count($b) as n }",
        sqlite=f"SELECT count(*) FROM knows a JOIN knows b ON b.src = a.dst WHERE a.src = ({_ME}) "
        "AND NOT EXISTS (SELECT 1 FROM knows c WHERE c.src = a.src AND c.dst = b.dst)",
        duckdb="SELECT count(*) FROM person p JOIN knows a ON a.src = p.number JOIN knows b ON b.src = a.dst "
        "WHERE p.key = $1 AND NOT EXISTS (SELECT 1 FROM knows c WHERE c.src = a.src AND c.dst = b.dst)",
        cypher=f"{_OUT}-[:Knows]->(:Person)-[:Knows]->(b:Person) WHERE NOT (p)-[:Knows]->(b) RETURN count(*)",
        at_least=2,
    ),
    Workload(
        "anti-join over two hops, one city",
        (Node("p", "Person", _C7), hop("p knows a"), hop("a knows b"), negation(hop("p knows b"))),
        "return { count($b) as n }",
        duckdb="SELECT count(*) FROM person p JOIN knows a ON a.src = p.number JOIN knows b ON b.src = a.dst "
        "WHERE p.city = 'c7' AND NOT EXISTS (SELECT 1 FROM knows c WHERE c.src = a.src AND c.dst = b.dst)",
        cypher="MATCH (p:Person {city: 'c7'})-[:Knows]->(:Person)-[:Knows]->(b:Person) "
        "WHERE NOT (p)-[:Knows]->(b) RETURN count(*)",
        keyed=False,
        at_least=2,
    ),
    Workload(
        "edge property filter, average",
        (Node("p", "Person"), hop("p e:knows q"), condition("e.weight", ">", "0.9")),
        "return { avg($e.weight) as mean }",
        sqlite="SELECT avg(weight) FROM knows WHERE weight > 0.9",
        duckdb="SELECT avg(weight) FROM knows WHERE weight > 0.9",
        cypher="MATCH (:Person)-[e:Knows]->(:Person) WHERE e.weight > 0.9 RETURN avg(e.weight)",
        keyed=False,
        at_least=2,
    ),
)
_NOBODY = (
    "SELECT count(*) FROM person WHERE number NOT IN (SELECT k.src FROM company c JOIN works w ON w.dst = c.number "
    "JOIN knows k ON k.dst = w.src WHERE c.key = 'e77')"
)
_NEAREST = "return { $t.key } order { nearest($t.vec, $vector) } limit 10"
PATTERNS = (
    Workload(
        "persons who know nobody at a company",
        (
            Node("p", "Person"),
            negation(Node("c", "Company", (("key", '"e77"'),)), hop("p knows q"), hop("q worksAt c")),
        ),
        "return { count($p) as n }",
        sqlite=_NOBODY,
        duckdb=_NOBODY,
        cypher="MATCH (p:Person) WHERE NOT EXISTS "
        "{ MATCH (p)-[:Knows]->(:Person)-[:WorksAt]->(:Company {key: 'e77'}) } RETURN count(*)",
        keyed=False,
        at_least=2,
    ),
)
SEARCHES = (
    Workload(
        "nearest 10",
        (Node("t", "Post"),),
        _NEAREST,
        duckdb=_DUCK_NEAREST.format(where=""),
        cypher=_CYPHER_NEAREST.format(where=""),
        kuzu=_kuzu_nearest,
        lancedb=_lance_nearest,
        keyed=False,
        asks=("vector",),
        overlap=0.97,
        at_least=2,
    ),
    Workload(
        "nearest 10, filtered",
        (Node("t", "Post"), condition("t.likes", "<", "100")),
        _NEAREST,
        duckdb=_DUCK_NEAREST.format(where="WHERE likes < 100 "),
        cypher=_CYPHER_NEAREST.format(where="WHERE p.likes < 100 "),
        lancedb=_lance_nearest_filtered,
        keyed=False,
        asks=("vector",),
        overlap=0.97,
        at_least=2,
    ),
    Workload(
        "hybrid search, then author",
        (Node("t", "Post"), Node("p", "Person"), hop("p wrote t")),
        "return { $t.key as a, $p.key as b } order { rrf(nearest($t.vec, $vector), bm25($t.text, $words)) } limit 10",
        kuzu=_kuzu_hybrid,
        lancedb=_lance_hybrid,
        keyed=False,
        asks=("vector", "words"),
        overlap=0.0,
        at_least=2,
    ),
)
