"""Entity resolution: candidates among a million persons with planted duplicates, and a unify of 10,000 pairs.

    python -m bench.resolution --rows 1000000 [--engine spark]

Prints seconds (elapsed and CPU, of the JVM and its workers too), compared pairs, recall and precision on the planted
truth.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph as og
from bench.algorithms_on_spark import cpu_seconds
from omnigraph.spark import open_session

SCHEMA = """
node Person {
    key: String @key
    name: String
    email: String?
    city: String?
}
edge Knows: Person -> Person
"""
SHARE = 0.02
"""Planted duplicates, as a share of all persons."""


def persons(rows: int, seed: int = 1) -> tuple[pa.Table, set[tuple[str, str]]]:
    """Return persons, and the pairs of keys that denote one person."""
    random = np.random.default_rng(seed)
    syllables = np.array([a + b for a in "bcdfghklmnprstvw" for b in ("a", "e", "i", "o", "u", "an", "el", "or")])
    names = np.array(["".join(random.choice(syllables, 3)) for _ in range(40_000)])
    copies = int(rows * SHARE)
    own = rows - copies
    first, last = random.choice(names[:8_000], own), random.choice(names, own)
    city = random.choice(names[:500], own)
    domains = random.choice(names[:2_000], own)
    keys = [f"p{number}" for number in range(own)]
    full = [f"{a.title()} {b.title()}" for a, b in zip(first, last, strict=True)]
    email: list[str | None] = [
        f"{a}.{b}@{d}.example" if chance < 0.9 else None
        for a, b, d, chance in zip(first, last, domains, random.random(own), strict=True)
    ]
    cities: list[str | None] = [one.title() for one in city]
    truth: set[tuple[str, str]] = set()
    for number, row in enumerate(random.choice(own, copies, replace=False).tolist()):
        key, name, kind = f"d{number}", full[row], number % 4
        words = name.split()
        keys.append(key)
        truth.add((keys[row], key))
        match kind:
            case 0:  # upper case, without an address
                full.append(name.upper())
                email.append(None)
            case 1:  # names in another order
                full.append(f"{words[1]}, {words[0]}")
                email.append(email[row])
            case 2:  # the same address with other signs
                full.append(name)
                email.append(None if email[row] is None else str(email[row]).replace(".", "_").upper())
            case _:  # spaces and another city
                full.append(f"  {name} ")
                email.append(email[row])
        cities.append(None if kind == 3 else cities[row])
    return pa.table({"id": keys, "key": keys, "name": full, "email": email, "city": cities}), truth


def resolve(rows: int, similar: float, engine: str) -> None:
    """Measure the search for pairs: read, blocking, scoring and clustering."""
    table, truth = persons(rows)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        graph = og.init(Path(folder) / "g", SCHEMA, sync=False)
        graph.load({"Person": table.drop(["id"])}, mode="append")
        spark = stack.enter_context(open_session()) if engine == "spark" else None
        started, cpu = time.perf_counter(), cpu_seconds()
        found = graph.resolve("Person", ["name", "email", "city"], similar=similar, engine=engine, spark=spark)
        took, used = time.perf_counter() - started, cpu_seconds() - cpu
    predicted = {(keep, drop) for keep, drops in found.clusters.items() for drop in drops}
    both = {frozenset(pair) for pair in predicted} & {frozenset(pair) for pair in truth}
    print(
        f"resolve rows={rows:,} engine={found.engine} seconds={took:.1f} cpu={used:.1f} compared={found.compared:,} "
        f"pairs={len(found.pairs):,} recall={len(both) / len(truth):.4f} "
        f"precision={len(both) / max(len(predicted), 1):.4f} "
        f"peak={resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10:,} MiB"
    )


def unify(rows: int, pairs: int) -> None:
    """Measure a unify of many pairs as one commit."""
    table, truth = persons(rows)
    chosen = sorted(truth)[:pairs]
    random = np.random.default_rng(2)
    keys = np.array(table["key"].to_pylist())
    edges = pa.table({"src": random.choice(keys, rows), "dst": random.choice(keys, rows)})
    with tempfile.TemporaryDirectory() as folder:
        graph = og.init(Path(folder) / "g", SCHEMA, sync=False)
        graph.load({"Person": table.drop(["id"]), "Knows": edges}, mode="append")
        started, cpu = time.perf_counter(), cpu_seconds()
        done = graph.unify("Person", pairs=chosen, rules={"email": "longest"})
        took, used = time.perf_counter() - started, cpu_seconds() - cpu
        assert done.unified is not None
        print(
            f"unify rows={rows:,} pairs={len(chosen):,} seconds={took:.1f} cpu={used:.1f} "
            f"repointed={done.unified.repointed:,}"
        )
        started = time.perf_counter()
        assert graph.get("Person", chosen[0][1])["id"] == chosen[0][0]
        assert done.commit_id is not None
        graph.revert(done.commit_id)
        print(f"revert seconds={time.perf_counter() - started:.1f}")


def main() -> None:
    """Run the measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--similar", type=float, default=0.8)
    parser.add_argument("--pairs", type=int, default=10_000)
    parser.add_argument("--engine", choices=("memory", "spark"), default="memory")
    parser.add_argument("--only", choices=("resolve", "unify"))
    options = parser.parse_args()
    if options.only != "unify":
        resolve(options.rows, options.similar, options.engine)
    if options.only != "resolve":
        unify(options.rows, options.pairs)


if __name__ == "__main__":
    main()
