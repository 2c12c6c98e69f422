"""Conditions of rows agree with the decisions of Cedar on random policies and rows."""

from __future__ import annotations

import pytest

from omnigraph.policy.rows.row_conditions import condition_text
from omnigraph.query.plan import ir
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
        _check_properties(policies, generator, rows[:20])
    # The generated policies are mostly accepted, and mostly neither all nor none.
    assert refused < seed / 2
    assert limited > seed / 2


def _check_properties(policies, generator, rows):
    """Compare what an actor sees of properties; those that no rule names are visible."""
    actor = policies.actor(generator.random.choice(list(ACTORS)))
    seen = policies.visibility(actor, "main")
    for one in ("title", "level", "tenant"):
        condition = policies.condition(actor, "property_read", "node:Doc", "main", one)
        assert engine_mask(policies.catalog, condition, rows) == cedar_mask(policies, actor, "main", rows, one)
        kept = seen is None or seen.rows.get("node:Doc", True) is not None
        if kept and condition is not True:
            assert seen is not None
            wanted = ir.Const(False, ir.BOOL) if condition is False else condition
            assert seen.properties["node:Doc", one] == wanted
