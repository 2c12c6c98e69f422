"""The workloads, each in our language and in those of the peers that support it.

`{start}` is the key of a person, passed as a parameter; SQL uses `?`. A workload without a statement for a system is
skipped there. Floats are compared to nine digits, rows without an order as a multiset.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Rows = list[Any]
"""Rows as returned to Python: tuples, lists or dicts."""
Ask = Callable[[Any, dict[str, Any]], Rows]
"""(handle of the system, parameters) → rows, for workloads that need more than one statement."""


@dataclass(frozen=True)
class Workload:
    """One workload."""

    name: str
    ours: str
    """match … return …"""
    sqlite: str | None = None
    duckdb: str | None = None
    cypher: str | None = None
    lancedb: Ask | None = None
    keyed: bool = True
    """True if it starts from a person."""
    ordered: bool = False
    at_least: float | None = None
    """Target speed-up against the fastest peer; None: no target."""
    graph_peers_only: bool = False
    """True if the target applies to graph databases only."""
    params: dict[str, Any] = field(default_factory=dict)


def _lance_point(db: Any, params: dict[str, Any]) -> Rows:
    rows = db.person.search().where(f"key = '{params['start']}'").select(["age", "city"]).limit(1).to_list()
    return [(row["age"], row["city"]) for row in rows]


def _lance_scan(db: Any, _: dict[str, Any]) -> Rows:
    table = (
        db.person.search().where("city = 'c7' AND age >= 30 AND age < 40").select(["key"]).limit(1_000_000).to_arrow()
    )
    return [(key,) for key in table["key"].to_pylist()]


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
_START = "$p: Person { key: $start }"
_OUT = "MATCH (p:Person {key: $start})"

TRAVERSALS = (
    Workload(
        "point lookup by key",
        f"match {{ {_START} }} return {{ $p.age, $p.city }}",
        sqlite="SELECT age, city FROM person WHERE key = ?1",
        duckdb="SELECT age, city FROM person WHERE key = $1",
        cypher=f"{_OUT} RETURN p.age, p.city",
        lancedb=_lance_point,
        at_least=1,
        graph_peers_only=True,
    ),
    Workload(
        "range and equality filter scan",
        'match { $p: Person { city: "c7" } $p.age >= 30 $p.age < 40 } return { $p.key }',
        sqlite="SELECT key FROM person WHERE city = 'c7' AND age >= 30 AND age < 40",
        duckdb="SELECT key FROM person WHERE city = 'c7' AND age >= 30 AND age < 40",
        cypher="MATCH (p:Person) WHERE p.city = 'c7' AND p.age >= 30 AND p.age < 40 RETURN p.key",
        lancedb=_lance_scan,
        keyed=False,
    ),
    Workload(
        "1 hop from a key",
        f"match {{ {_START} $p knows $q }} return {{ $q.key, $q.age }}",
        sqlite=f"SELECT q.key, q.age FROM knows JOIN person q ON q.number = dst WHERE src = ({_ME})",
        duckdb="SELECT q.key, q.age FROM person p JOIN knows ON src = p.number JOIN person q ON q.number = dst "
        "WHERE p.key = $1",
        cypher=f"{_OUT}-[:Knows]->(q:Person) RETURN q.key, q.age",
        at_least=1,
        graph_peers_only=True,
    ),
    Workload(
        "2 hops distinct, filter at the end",
        f"match {{ {_START} $p knows{{1,2}} $q $q.age > 60 }} return {{ count($q) as n }}",
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
        f"match {{ {_START} $p knows{{1,3}} $q }} return {{ count($q) as n }}",
        sqlite=_SQL_REACH.format(hops=3) + "SELECT count(DISTINCT k) - 1 FROM r",
        duckdb=_DUCK_REACH.format(hops=3) + "SELECT count(DISTINCT k) - 1 FROM r",
        cypher=f"{_OUT}-[:Knows* SHORTEST 1..3]->(q:Person) WHERE q.key <> $start RETURN count(*)",
        at_least=2,
    ),
    Workload(
        "reachable in 1..4 hops",
        f"match {{ {_START} $p knows{{1,4}} $q }} return {{ count($q) as n }}",
        sqlite=_SQL_REACH.format(hops=4) + "SELECT count(DISTINCT k) - 1 FROM r",
        duckdb=_DUCK_REACH.format(hops=4) + "SELECT count(DISTINCT k) - 1 FROM r",
        cypher=f"{_OUT}-[:Knows* SHORTEST 1..4]->(q:Person) WHERE q.key <> $start RETURN count(*)",
        at_least=2,
    ),
    Workload(
        "shortest paths from a key to a city, by length",
        f'match {{ {_START} $w: shortest {{ $p knows{{1,6}} $q }} $q.city = "c7" }} '
        "return { length($w) as hops, count($q) as n }",
        sqlite=_SQL_REACH.format(hops=6) + _BY_DISTANCE,
        duckdb=_DUCK_REACH.format(hops=6) + _BY_DISTANCE,
        cypher=f"{_OUT}-[e:Knows* SHORTEST 1..6]->(q:Person) WHERE q.city = 'c7' AND q.key <> $start "
        "RETURN length(e), count(*)",
    ),
    Workload(
        "shortest path between two keys",
        f'match {{ {_START} $q: Person {{ key: "p5" }} $w: shortest {{ $p knows{{1,6}} $q }} }} '
        "return { length($w) as hops }",
        cypher=f"{_OUT}-[e:Knows* SHORTEST 1..6]->(q:Person {{key: 'p5'}}) RETURN length(e)",
    ),
    Workload(
        "lightest path between two keys",
        f'match {{ {_START} $q: Person {{ key: "p5" }} $w: shortest {{ $p knows{{1,30}} $q }} by weight }} '
        "return { weight($w) as weight }",
        cypher=f"{_OUT}-[e:Knows* WSHORTEST(weight) 1..30]->(q:Person {{key: 'p5'}}) RETURN cost(e)",
    ),
    Workload(
        "3 hops, ends by number of walks, top 10",
        f"match {{ {_START} $p knows $a $a knows $b $b knows $c }} "
        "return { $c.key as end, count($a) as n } order { n desc, end } limit 10",
        sqlite=f"SELECT q.key, n FROM (SELECT c.dst AS dst, count(*) AS n FROM knows a JOIN knows b ON b.src = a.dst "
        f"JOIN knows c ON c.src = b.dst WHERE a.src = ({_ME}) GROUP BY 1) JOIN person q ON q.number = dst "
        "ORDER BY n DESC, q.key LIMIT 10",
        duckdb="SELECT q.key, n FROM (SELECT c.dst AS dst, count(*) AS n FROM knows a JOIN knows b ON b.src = a.dst "
        "JOIN knows c ON c.src = b.dst JOIN person p ON p.number = a.src WHERE p.key = $1 GROUP BY 1) "
        "JOIN person q ON q.number = dst ORDER BY n DESC, q.key LIMIT 10",
        cypher=f"{_OUT}-[:Knows]->(:Person)-[:Knows]->(:Person)-[:Knows]->(c:Person) "
        "RETURN c.key AS k, count(*) AS n ORDER BY n DESC, k LIMIT 10",
        ordered=True,
        at_least=2,
    ),
    Workload(
        "whole graph, 2-hop count",
        "match { $a: Person $a knows $b $b knows $c } return { count($c) as n }",
        duckdb="SELECT count(*) FROM knows a JOIN knows b ON b.src = a.dst",
        sqlite="WITH o AS (SELECT src, count(*) n FROM knows GROUP BY src) "
        "SELECT sum(n) FROM knows JOIN o ON o.src = dst",
        cypher="MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) RETURN count(*)",
        keyed=False,
        at_least=2,
    ),
    Workload(
        "triangles",
        "match { $a: Person $a knows $b $b knows $c $a knows $c } return { count($c) as n }",
        duckdb="SELECT count(*) FROM knows a JOIN knows b ON b.src = a.dst "
        "JOIN knows c ON c.src = a.src AND c.dst = b.dst",
        cypher="MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person), (a)-[:Knows]->(c) RETURN count(*)",
        keyed=False,
        at_least=2,
    ),
    Workload(
        "group by over a hop, top 10",
        "match { $p: Person $p knows $q } return { $q.city as city, count($p) as n } order { n desc, city } limit 10",
        sqlite=_BY_CITY,
        duckdb=_BY_CITY,
        cypher="MATCH (p:Person)-[:Knows]->(q:Person) RETURN q.city AS city, count(*) AS n "
        "ORDER BY n DESC, city LIMIT 10",
        keyed=False,
        ordered=True,
        at_least=2,
    ),
    Workload(
        "anti-join over two hops",
        f"match {{ {_START} $p knows $a $a knows $b not {{ $p knows $b }} }} return {{ count($b) as n }}",
        sqlite=f"SELECT count(*) FROM knows a JOIN knows b ON b.src = a.dst WHERE a.src = ({_ME}) "
        "AND NOT EXISTS (SELECT 1 FROM knows c WHERE c.src = a.src AND c.dst = b.dst)",
        duckdb="SELECT count(*) FROM person p JOIN knows a ON a.src = p.number JOIN knows b ON b.src = a.dst "
        "WHERE p.key = $1 AND NOT EXISTS (SELECT 1 FROM knows c WHERE c.src = a.src AND c.dst = b.dst)",
        cypher=f"{_OUT}-[:Knows]->(:Person)-[:Knows]->(b:Person) WHERE NOT (p)-[:Knows]->(b) RETURN count(*)",
        at_least=2,
    ),
    Workload(
        "anti-join over two hops, one city",
        'match { $p: Person { city: "c7" } $p knows $a $a knows $b not { $p knows $b } } return { count($b) as n }',
        duckdb="SELECT count(*) FROM person p JOIN knows a ON a.src = p.number JOIN knows b ON b.src = a.dst "
        "WHERE p.city = 'c7' AND NOT EXISTS (SELECT 1 FROM knows c WHERE c.src = a.src AND c.dst = b.dst)",
        cypher="MATCH (p:Person {city: 'c7'})-[:Knows]->(:Person)-[:Knows]->(b:Person) "
        "WHERE NOT (p)-[:Knows]->(b) RETURN count(*)",
        keyed=False,
        at_least=2,
    ),
    Workload(
        "edge property filter, average",
        "match { $p: Person $p $e:knows $q $e.weight > 0.9 } return { avg($e.weight) as mean }",
        sqlite="SELECT avg(weight) FROM knows WHERE weight > 0.9",
        duckdb="SELECT avg(weight) FROM knows WHERE weight > 0.9",
        cypher="MATCH (:Person)-[e:Knows]->(:Person) WHERE e.weight > 0.9 RETURN avg(e.weight)",
        keyed=False,
        at_least=2,
    ),
)
