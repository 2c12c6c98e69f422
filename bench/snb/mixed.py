"""A mixed run: reads, inserts and deletes of one client, one after the other, on a copy of the data of each system.

The operations are drawn once, so every system makes the same, and the answers of all reads must be equal. Each update
is one durable commit.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from bench.snb import oracle
from bench.snb.compare import Disagreement, normal
from bench.snb.generate import SEED, Data
from bench.snb.systems import System
from bench.snb.updates import DELETES, INSERTS, Stream, Update
from bench.snb.workload import Parameters, Params, Query

SHARES = {"short": 0.6, "complex": 0.2, "insert": 0.16, "delete": 0.04}
Operation = Update | tuple[Query, Params]
Taken = list[tuple[str, float]]
"""The kind and the seconds of each operation."""


def operations(data: Data, queries: Sequence[Query], count: int) -> list[Operation]:
    """Draw a mix; parameters of reads repeat, so that caches count as in a service."""
    rng = np.random.default_rng(SEED)
    reads = {kind: [query for query in queries if query.group == kind] for kind in SHARES}
    parameters = Parameters(data)
    given = {query.name: parameters.of(query.name, 20) for found in reads.values() for query in found}
    with duckdb.connect() as db:
        oracle.fill(db, data)
        stream = Stream(db, SEED)
        found: list[Operation] = []
        for kind in rng.choice(list(SHARES), count, p=list(SHARES.values())):
            if reads[kind]:
                query = reads[kind][int(rng.integers(0, len(reads[kind])))]
                found.append((query, given[query.name][int(rng.integers(0, 20))]))
            else:
                found.append(stream.take(str(rng.choice(INSERTS if kind == "insert" else DELETES))))
    return found


def run_mixed(system: System, mix: Sequence[Operation]) -> tuple[list[list[Any]], Taken]:
    """Make all operations; return the answers of the reads, and the time of each operation."""
    answers, taken = [], []
    for operation in mix:
        started = time.perf_counter()
        if isinstance(operation, Update):
            system.change(operation)
            taken.append(("insert" if operation.name in INSERTS else "delete", time.perf_counter() - started))
        else:
            rows = system.ask(*operation)
            taken.append((operation[0].group, time.perf_counter() - started))
            answers.append(normal(rows, operation[0].ordered))
    return answers, taken


def report(found: Mapping[str, tuple[list[list[Any]], Taken]]) -> str:
    """Compare the answers and show the throughput of each system."""
    first = next(iter(found))
    lines = []
    for name, (answers, taken) in found.items():
        for number, (answer, expected) in enumerate(zip(answers, found[first][0], strict=True)):
            if answer != expected:
                raise Disagreement(
                    f"read {number} of the mix: {first} {str(expected)[:300]}, {name} {str(answer)[:300]}"
                )
        seconds = sum(one for _, one in taken)
        line = f"mixed, {name}: {len(taken) / seconds:,.0f} operations per second"
        for kind in dict.fromkeys(kind for kind, _ in taken):
            ms = [one * 1e3 for which, one in taken if which == kind]
            line += f"; {kind} {np.median(ms):.1f} ms, p95 {np.percentile(ms, 95):.1f}"
        lines.append(line)
    return "\n".join(lines)


def copied(folder: Path) -> Path:
    """A copy of the data of a system, beside it."""
    copy = Path(tempfile.mkdtemp(prefix="mixed-", dir=folder.parent))
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    return copy
