"""Reads that are remembered are those of Lance."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from support.random_reads.graphs import change, new_subject
from support.remembered_scans import remembered_scans


def reads_of(dataset: Any, random: Random) -> list[pa.Table]:
    """Scans of columns, fragments and addresses, and rows by their numbers."""
    names = dataset.schema.names
    fragments = dataset.get_fragments()
    addresses = dataset.scanner(columns=["_rowaddr"]).to_table()["_rowaddr"].to_pylist()
    found = []
    for _ in range(6):
        columns = random.sample(names, random.randint(1, len(names)))
        found.append(dataset.scanner(columns=columns, batch_size=3).to_table())
        found.append(pa.Table.from_batches(dataset.scanner(columns=[*columns, "_rowaddr"], batch_size=3).to_batches()))
        fragment = random.choice(fragments)
        found.append(dataset.scanner(columns=columns, fragments=[fragment]).to_table())
        some = random.choice([*addresses, 10**6])
        found.append(dataset.scanner(columns=columns, filter=f"_rowaddr = {some}").to_table())
        several = ", ".join(map(str, random.sample(addresses, min(3, len(addresses)))))
        found.append(dataset.scanner(columns=columns, filter=f"_rowaddr IN ({several})").to_table())
        numbers = sorted(random.sample(range(len(addresses)), min(4, len(addresses))))
        found.append(dataset.take(pa.array(numbers[::-1]), columns=columns))
        inside = np.arange(fragment.count_rows())[:2]
        found.append(fragment.take(pa.array(inside), columns=columns))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_remembered_reads_are_those_of_the_tables(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    subject = new_subject(tmp_path / "graph", random, rich=True)
    for _ in range(4):
        change(subject, "main")
    snapshot = subject.graph.snapshot()
    tables = [snapshot.table(key) for key, table in snapshot.tables.items() if table.pin.row_count]
    deleted = 0
    for table in tables:
        dataset, state = table.dataset, random.random()
        deleted += sum(fragment.num_deletions for fragment in dataset.get_fragments())
        read = reads_of(dataset, Random(state))
        with remembered_scans() as known:
            remembered = reads_of(dataset, Random(state))
        assert remembered == read
        assert ("whole", dataset.uri, dataset.version) in known
    assert deleted
