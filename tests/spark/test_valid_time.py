"""Reads at an instant of valid time on Spark return what the in-process engine returns."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from property.test_valid_time import SEED, history
from support.periods import READS, Period, View, text_of

NAMES = ("edge", "not", "search", "bounded")


def test_reads_agree_with_a_list_of_facts(tmp_path: Path, spark: Any) -> None:
    graph, commits = history(tmp_path / "graph", Random(SEED), 30)
    commit, facts = commits[-1]
    for number, name in enumerate(NAMES):
        text, expected = READS[name]
        head, window = ("", None) if number == 0 else ("valid at $t ", Period(4, 5))
        params = {} if number == 0 else {"t": text_of(4)}
        found = graph.query(head + text, params, at=commit, engine="spark", spark=spark).to_rows()
        assert Counter(tuple(row.values()) for row in found) == Counter(map(tuple, expected(View(facts, window)))), name
