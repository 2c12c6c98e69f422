"""Merge tasks in other processes: jobs can be pickled, ranges are independent, and the result is the same."""

from __future__ import annotations

import pickle
from functools import partial
from random import Random

import pytest

import omnigraph as og
from omnigraph.operations.authorization.difference_rights import check_difference
from omnigraph.operations.merge.merge import MergeRequest, merge_branch, preview_merge
from omnigraph.versioning.compare import diff
from omnigraph.versioning.write.transaction import WriteOptions
from support.merge_model import SCHEMA, Side, empty, shown, stored


def sides(path):
    random = Random(5)
    main = Side(og.init(path, SCHEMA, sync=False), "main", empty())
    main.put(random)
    main.put(random)
    side = main.fork("side")
    for _ in range(3):
        main.edit(random)
        side.edit(random)
    return main.graph


@pytest.fixture
def small_ranges(monkeypatch):
    split = diff.split_ids
    monkeypatch.setattr("omnigraph.operations.merge.merge_tasks.split_ids", lambda sides: split(sides, 2))


@pytest.mark.usefixtures("small_ranges")
def test_ranges_decided_in_other_processes_give_the_same_merge(tmp_path):
    here, there = sides(tmp_path / "here"), sides(tmp_path / "there")
    assert shown(stored(here, "main")) == shown(stored(there, "main"))
    ran = []

    def run(task, job, ranges):
        """Run the tasks as a cluster does: pickled, with results in order."""
        for within in ranges:
            task_, job_, within_ = pickle.loads(pickle.dumps((task, job, within)))
            ran.append(within_)
            yield pickle.loads(pickle.dumps(task_(job_, within_)))

    rights = partial(check_difference, there._context)
    conflicts = preview_merge(here._repository, "side", "main").conflicts
    assert conflicts
    with pytest.raises(og.errors.MergeConflict) as caught:
        merge_branch(there._repository, MergeRequest("side", WriteOptions(), rights, run_ranges=run))
    assert [conflict.id for conflict in caught.value.conflicts] == [conflict.id for conflict in conflicts]
    assert len(ran) > 2
    here.merge("side", resolve="theirs")
    merge_branch(there._repository, MergeRequest("side", WriteOptions(), rights, resolve="theirs", run_ranges=run))
    assert shown(stored(here, "main")) == shown(stored(there, "main"))
    assert there.verify() == []
