"""Reads at a commit and an instant of valid time return what a list of facts holds there."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from omnigraph.engine import tuning
from omnigraph.errors import ConstraintViolation, KeyConflict
from omnigraph.graph import Graph
from support.periods import DAYS, FIRMS, READS, SCHEMA, Facts, Period, View, random_edit, text_of

SEED = 20_261_118


def history(root: Path, random: Random, edits: int) -> tuple[Graph, list[tuple[str, Facts]]]:
    """A graph after random edits, and the facts at each commit. Refused edits change nothing."""
    graph = og.init(root, SCHEMA, sync=False)
    graph.load([{"type": "Firm", "data": {"name": name}} for name in FIRMS], mode="append")
    facts, commits, refused = Facts(), [], 0
    while len(commits) < edits:
        edit = random_edit(facts, random)
        if edit.after is None:
            refused += 1
            with pytest.raises((ConstraintViolation, KeyConflict)):
                graph.mutate(edit.text, edit.params)
            continue
        commit = graph.mutate(edit.text, edit.params).commit_id
        if commit is not None:
            commits.append((commit, edit.after))
            facts = edit.after
    assert refused > 0
    return graph, commits


def check(graph: Graph, commits: list[tuple[str, Facts]], random: Random, reads: int) -> None:
    """Compare random reads at random commits and instants."""
    for _ in range(reads):
        commit, facts = random.choice(commits)
        name = random.choice(list(READS))
        text, expected = READS[name]
        start = random.randrange(-1, DAYS + 2)
        head, params, window = random.choice(
            [
                ("", {}, None),
                ("valid at $a ", {"a": text_of(start)}, Period(start, start + 1)),
                ("valid at $a ", {"a": text_of(start)}, Period(start, start + 1)),
                ("valid during $a, $b ", {"a": text_of(start), "b": text_of(start + 3)}, Period(start, start + 3)),
            ]
        )
        found = Counter(tuple(row.values()) for row in graph.query(head + text, params, at=commit).to_rows())
        wanted = Counter(tuple(row) for row in expected(View(facts, window)))
        assert found == wanted, (name, head, params, facts)


@pytest.mark.parametrize("case", range(2))
def test_reads_agree_with_a_list_of_facts(tmp_path: Path, case: int) -> None:
    random = Random(SEED + case)
    graph, commits = history(tmp_path / "graph", random, 45)
    check(graph, commits, random, 350)
    assert graph.verify() == []


def test_a_timeline_gives_the_rows_of_a_scan(tmp_path: Path) -> None:
    random = Random(SEED)
    with tuning.replaced(timeline_rows_min=0, scans_before_timeline=0, id_lookups_before_index=0, visible_steps_min=0):
        graph, commits = history(tmp_path / "graph", random, 40)
        check(graph, commits, random, 200)


@pytest.mark.long
@pytest.mark.parametrize("case", range(40))
def test_long_histories(tmp_path: Path, case: int) -> None:
    random = Random(SEED + 1_000 + case)
    graph, commits = history(tmp_path / "graph", random, 200)
    check(graph, commits, random, 1_500)
