"""Laws of merge, diff and revert on random graphs and edits, compared with a three-way merge over dictionaries."""

from __future__ import annotations

from copy import deepcopy
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

import omnigraph as og
from support.merge_model import KEYS, SCHEMA, Side, base_rows, empty, same, shown, stored, three_way

SHORT = [pytest.param(seed, id=str(seed)) for seed in range(6)]
LONG = [pytest.param(seed, id=str(seed), marks=pytest.mark.long) for seed in range(6, 130)]
seeds = pytest.mark.parametrize("seed", [*SHORT, *LONG])


def new_side(path: Path, random: Random) -> Side:
    side = Side(og.init(path / "g", SCHEMA, sync=False), "main", empty())
    for _ in range(2):
        side.put(random)
    return side


def rows_after(rows, changes):
    """Apply a diff to rows; every change must be applicable."""
    result = deepcopy(rows)
    for change in changes:
        table = result[change.table_key]
        assert same(table.get(change.id), change.before)
        if change.after is None:
            del table[change.id]
        else:
            table[change.id] = change.after
    return result


def head(graph, branch):
    return graph.snapshot(branch).commit_id


@seeds
def test_merge_equals_the_model(tmp_path, seed):
    random = Random(seed)
    main = new_side(tmp_path, random)
    graph, base = main.graph, deepcopy(main.rows)
    side = main.fork("side")
    main.edit(random)
    side.edit(random)
    main.check()
    side.check()
    for left, right in (("main", "side"), ("side", "main")):
        graph.branch_create(f"{left}-copy", from_branch=left)
        expected, conflicts = three_way(base, *((main.rows, side.rows) if left == "main" else (side.rows, main.rows)))
        plan = graph.merge_preview(right, into=f"{left}-copy")
        assert {(c.table_key, c.row_id, c.kind) for c in plan.conflicts} == conflicts
        before = head(graph, f"{left}-copy")
        if conflicts:
            with pytest.raises(og.errors.MergeConflict) as caught:
                graph.merge(right, into=f"{left}-copy")
            assert {(c.table_key, c.row_id, c.kind) for c in caught.value.conflicts} == conflicts
            assert head(graph, f"{left}-copy") == before, "a refused merge leaves no trace"
        else:
            result = graph.merge(right, into=f"{left}-copy")
            assert shown(stored(graph, f"{left}-copy")) == shown(expected)
            assert (result.outcome == "already_up_to_date") == (head(graph, f"{left}-copy") == before)
            # A second merge finds nothing to do.
            again = head(graph, f"{left}-copy")
            assert graph.merge(right, into=f"{left}-copy").outcome == "already_up_to_date"
            assert head(graph, f"{left}-copy") == again
    if not conflicts:
        assert shown(stored(graph, "main-copy")) == shown(stored(graph, "side-copy")), "whichever way round"
        assert list(graph.diff("main-copy", "side-copy")) == []
    assert graph.verify() == []


@seeds
def test_diff_transforms_each_state_into_the_other(tmp_path, seed):
    random = Random(seed)
    main = new_side(tmp_path, random)
    side = main.fork("side")
    main.edit(random)
    side.edit(random)
    if random.random() < 0.3:
        main.graph.optimize("side")
    forward, back = list(main.graph.diff("main", "side")), list(main.graph.diff("side", "main"))
    assert shown(rows_after(main.rows, forward)) == shown(side.rows)
    assert shown(rows_after(side.rows, back)) == shown(main.rows)
    turned = [(c.table_key, c.id, repr(c.after), repr(c.before)) for c in back]
    assert [(c.table_key, c.id, repr(c.before), repr(c.after)) for c in forward] == turned
    for change in forward:
        assert not same(change.before, change.after), "only what differs is told"


@seeds
def test_revert_undoes_one_commit_only(tmp_path, seed):
    random = Random(seed)
    main = new_side(tmp_path, random)
    for _ in range(3):
        main.edit(random)
    graph = main.graph
    last = graph.commits()[0]
    result = graph.revert(last.id)
    before = stored(graph, last.parent_id)
    assert shown(stored(graph, "main")) == shown(before)
    if result.commit_id is not None:
        graph.revert(result.commit_id)
    main.check()
    # Revert of any older commit: the model merges with the commit as base and its parent as source.
    chosen = random.choice(graph.commits()[:-1])
    expected, conflicts = three_way(stored(graph, chosen.id), stored(graph, "main"), stored(graph, chosen.parent_id))
    assert {(c.table_key, c.row_id, c.kind) for c in graph.revert_preview(chosen.id).conflicts} == conflicts
    if not conflicts:
        graph.revert(chosen.id)
        assert shown(stored(graph, "main")) == shown(expected)
    assert graph.verify() == []


@seeds
def test_history_blame_and_feed_agree_with_every_state(tmp_path, seed):
    random = Random(seed)
    main = new_side(tmp_path, random)
    for _ in range(4):
        main.edit(random)
    graph = main.graph
    line = graph.commits()[::-1]
    states = [stored(graph, commit.id) for commit in line]
    for id_ in random.sample(KEYS, 3):
        images = [state["node:N"].get(id_) for state in states]
        expected = [
            (commit.id, before, after)
            for commit, (before, after) in zip(line[1:], pairwise(images), strict=True)
            if not same(before, after)
        ]
        told = [(c.commit.id, c.before, c.after) for c in graph.history("N", id_)][::-1]
        assert repr([(i, _sorted(b), _sorted(a)) for i, b, a in told]) == repr(
            [(i, _sorted(b), _sorted(a)) for i, b, a in expected]
        )
        for blame in graph.blame("N", id_):
            since = [
                place
                for place, image in enumerate(images)
                if image is None or repr(image[blame.property]) != repr(blame.value)
            ]
            assert blame.commit.id == line[max(since) + 1].id
    rows = states[0]
    for block, state in zip(graph.changes(start="beginning"), states, strict=True):
        rows = rows_after(rows, [change.row for change in block])
        assert shown(rows) == shown(state)


@seeds
def test_merge_with_several_common_ancestors(tmp_path, seed):
    """Merges in both directions, also of old heads, give two branches several lowest common ancestors."""
    random = Random(seed)
    main = new_side(tmp_path, random)
    graph = main.graph
    sides = {"main": main, "side": main.fork("side")}
    for step in range(3):
        for name, one in sides.items():
            graph.branch_create(f"{name}-{step}", from_branch=name)
            one.edit(random)
        for target, source in (("main", "side"), ("side", "main")):
            source = random.choice([source, f"{source}-{step}"])
            resolve = random.choice([None, "ours", "theirs"])
            base = base_rows(graph, head(graph, target), head(graph, source))
            ours = stored(graph, target)
            expected, conflicts = three_way(base, ours, stored(graph, source), resolve)
            plan = graph.merge_preview(source, into=target, resolve=resolve)
            if plan.outcome == "already_up_to_date":
                expected, conflicts = ours, set()
            assert {(c.table_key, c.row_id, c.kind) for c in plan.conflicts} == conflicts
            if not conflicts:
                graph.merge(source, into=target, resolve=resolve)
                sides[target].rows = expected
            sides[target].check()
    assert graph.verify() == []


def _sorted(row):
    return None if row is None else sorted(row.items())


def test_merge_without_new_commits_writes_nothing(tmp_path):
    main = new_side(tmp_path, Random(1))
    graph = main.graph
    graph.branch_create("side")
    before = head(graph, "main")
    with pytest.raises(og.errors.InputError, match="two different branches"):
        graph.merge("main", into="main")
    for source, target in (("side", "main"), ("main", "side")):
        assert graph.merge(source, into=target).outcome == "already_up_to_date"
        assert graph.merge(source, into=target).commit_id is None
    assert head(graph, "main") == head(graph, "side") == before
