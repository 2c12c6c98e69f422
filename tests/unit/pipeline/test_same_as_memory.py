"""A load as a job gives the same graph or the same error as a load in memory."""

from __future__ import annotations

import random

import pytest

from support.bulk import MODES, GraphPair, Inputs


def run_case(root, seed: int) -> None:
    pair = GraphPair.below(root)
    chooser = random.Random(seed)
    pair.split_bytes = chooser.choice([1, 40, 256, 1000, 100_000])
    inputs = Inputs(seed, root / "photos")
    for number in range(chooser.randint(1, 4)):
        inputs.wrong, inputs.tidy = chooser.choice([0, 0, 0, 0.02, 0.2]), chooser.random() < 0.8
        mode, missing = chooser.choice([*MODES, "merge"]), chooser.choice(["keep", "keep", "null"])
        inputs.repeats = mode == "merge" and chooser.random() < 0.6
        inputs.look_at(pair.memory)
        files = inputs.files(root, f"input-{number}")
        pair.load(files, mode, set_aside=chooser.random() < 0.3, missing=missing)
    assert pair.bulk.verify() == []
    assert not list((root / "bulk" / "__staging").glob("*"))


@pytest.mark.parametrize("seed", range(14))
def test_random_inputs(tmp_path, seed):
    run_case(tmp_path, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_more_random_inputs(tmp_path, seed):
    run_case(tmp_path, seed)
