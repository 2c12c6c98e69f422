"""Operations that must work on every Spark deployment: `python -m support.spark_places FOLDER OPTIONS` prints the
results.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

import omnigraph as og
from omnigraph.spark import OmniGraphDataSource, SessionOptions, SparkRunner, open_session

SCHEMA = """
node Person { name: String @key  age: I32?  wide: U64? }
edge Knows: Person -> Person
"""
FRIENDS = """query friends() {
    match { $a: Person  $a knows{1,3} $b  $b.age >= 10 }
    return { $a.name, count($b) as n }
    order { n desc }
    limit 3
}"""
PATHS = """query paths() {
    match { $a: Person { name: "p1" }  $p: shortest { $a knows{1,2} $b }  $x -> $y in $p }
    return { $b.name, nodes($p, name) as people, count($x) as steps }
    order { $b.name }
}"""
FOUND = """query found() {
    match { $a: Person  $a knows $b }
    return { $a.name, $b.name as friend, why() as why }
    order { rrf(bm25($a.name, "p1 p2"), bm25($a.name, "p2 p7")) }
    limit 3
}"""


def exercise(spark: Any, folder: Path) -> dict[str, Any]:
    """Load, write, read, query, analyse and export on a session."""
    told: list[int] = []
    graph = og.init(folder / "graph.omni", SCHEMA, sync=False, environ={})
    lines = [{"type": "Person", "data": {"name": f"p{n}", "age": n}} for n in range(20)]
    lines += [{"edge": "Knows", "from": f"p{n}", "to": f"p{(n * 7 + 1) % 20}"} for n in range(20)]
    (folder / "people.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    loaded = graph.load(
        folder / "people.jsonl", mode="append", spark=spark, watch=lambda progress: told.append(progress.done)
    )

    spark.dataSource.register(OmniGraphDataSource)
    frame = spark.range(20, 30, 1, 3).selectExpr("concat('p', id) as name", "cast(id as int) as age")
    frame.write.format("omnigraph").mode("append").option("uri", graph.uri).option("type", "Person").save()
    reader = spark.read.format("omnigraph").option("uri", graph.uri).option("type", "Person")
    people = reader.load()
    chosen = reader.schema("name string").option("filter", "age >= 25").load()
    refused = ""
    try:
        frame.write.format("omnigraph").mode("append").option("uri", graph.uri).option("type", "Person").save()
    except Exception as error:
        refused = "p2" if "'p2" in str(error) else str(error)

    query, *others = (graph.query(text, engine="spark", spark=spark).to_rows() for text in (FRIENDS, PATHS, FOUND))
    assert [query, *others] == [graph.query(text, engine="memory").to_rows() for text in (FRIENDS, PATHS, FOUND)]
    assert all(others)
    here, there = graph.analyze("degrees"), graph.analyze("degrees", engine="spark", spark=spark)
    assert here.stats == there.stats
    graph.export(folder / "out", format="parquet", partitioned=True, spark=spark)
    return {
        "loaded": sorted(loaded.tables),
        "told": bool(told),
        "parallelism": SparkRunner(spark).parallelism,
        "commits": len(graph.commits()),
        "people": people.count(),
        "again": people.where("age < 5").count() + people.count(),
        "chosen": sorted(row["name"] for row in chosen.collect()),
        "refused": refused,
        "query": query,
        "largest_degree": there.stats["largest_degree"],
        "exported": spark.read.parquet(str(folder / "out" / "Person.*.parquet")).count(),
        "problems": len(graph.verify()),
    }


def main() -> None:
    """Run it on a session with the given options."""
    folder, options = Path(sys.argv[1]), msgspec.json.decode(sys.argv[2], type=SessionOptions)
    with open_session(options) as spark:
        sys.stdout.write(json.dumps(exercise(spark, folder)))


if __name__ == "__main__":
    main()
