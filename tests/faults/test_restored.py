"""The folder of an open graph is replaced by an older copy: the handle reads and writes the restored graph."""

from __future__ import annotations

import pytest

from support.restoring import OtherProcess, in_process, round_of

ROUNDS = 500
PER_PROCESS = 25


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_restored_backup(tmp_path, seed):
    round_of(tmp_path / "graph", seed, in_process)


def test_restored_backup_and_another_process(tmp_path):
    with OtherProcess() as other:
        round_of(tmp_path / "graph", 100, other)


@pytest.mark.long
def test_many_restored_backups(tmp_path):
    for first in range(0, ROUNDS, PER_PROCESS):
        with OtherProcess() as other:
            for seed in range(first, first + PER_PROCESS):
                round_of(tmp_path / f"graph-{seed}", seed, other)
