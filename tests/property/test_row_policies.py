"""Conditions of rows agree with the decisions of Cedar on random policies and rows."""

from __future__ import annotations

import pytest

from omnigraph.policy.rows import condition_text
from support.row_policies import ACTORS, Generator, catalog, cedar_mask, engine_mask

ROWS_PER_POLICY = 60


@pytest.mark.parametrize("rows_wanted", [6_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_conditions_agree_with_cedar(rows_wanted):
    schema = catalog()
    judged = refused = limited = 0
    seed = 0
    while judged < rows_wanted:
        seed += 1
        assert seed <= rows_wanted
        generator = Generator(seed)
        policies = generator.policies(schema)
        if policies is None:
            refused += 1
            continue
        rows = generator.rows(ROWS_PER_POLICY)
        for name in ACTORS:
            actor = policies.actor(name)
            branch = generator.random.choice(["main", "draft/a", "draft/a/b"])
            condition = policies.condition(actor, "row_read", "node:Doc", branch)
            limited += not isinstance(condition, bool)
            wanted = cedar_mask(policies, actor, branch, rows)
            found = engine_mask(schema, condition, rows)
            wrong = [row for row, a, b in zip(rows, found, wanted, strict=True) if a != b]
            assert not wrong, (seed, name, branch, condition_text(condition), wrong[0], policies.cedar_text)
            judged += len(rows)
    # The generated policies are mostly accepted, and mostly neither all nor none.
    assert refused < seed / 2
    assert limited > seed / 2
