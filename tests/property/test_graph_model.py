"""Random steps on a graph, compared with a model in plain dictionaries.

A step is a mutation, a load, a schema change, a branch operation, a reopening or maintenance, valid or not. The model
(`support.graph_model`) derives the expected rows, counts, errors and history from the specification alone. After every
step the graph is read and compared with the model, together with a second branch and an earlier commit.

A step is determined by its seed and the state of the model, so Hypothesis reduces a failure to few steps.
"""

from __future__ import annotations

from time import monotonic

import pytest

from support.graph_machine.machine import run


def test_random_histories_match_the_model():
    tally = run(lives=8, steps=30)
    assert sum(tally.steps.values()) >= 200
    assert tally.commits > 50


@pytest.mark.long
def test_long_random_histories_match_the_model(record_property):
    started = monotonic()
    tally = run(lives=40, steps=150)
    steps = sum(tally.steps.values())
    figures = (
        f"{steps} steps in {tally.lives} lives, {monotonic() - started:.0f} s, {tally.commits} commits, "
        f"{sum(tally.refused.values())} refused, {tally.refused['version_reclaimed']} reads of "
        f"forgotten versions; steps {dict(tally.steps)}; refusals {dict(tally.refused)}"
    )
    record_property("figures", figures)
    print(figures)  # noqa: T201 (shown with -s)
    assert steps >= 5000
