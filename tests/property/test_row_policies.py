"""Conditions of rows agree with the decisions of Cedar on random policies and rows.

The long form judges 1,000,000 rows in slices. Slices are independent: `-n 2` runs them in two processes, and
`--resume FILE` leaves out those that are done.
"""

from __future__ import annotations

import pytest

from omnigraph.policy.rows.row_conditions import condition_text
from omnigraph.policy.rows.row_policies import RowPolicies
from omnigraph.query.plan import ir
from support.row_policies import ACTORS, Generator, Question, catalog, cedar_masks, engine_mask

ROWS_PER_POLICY = 60
SLICE_ROWS = 25_000
SLICES = 40
SEEDS_OF_SLICE = 10_000
"""Seeds of the policies of a slice; more than any slice takes."""
BRANCHES = ["main", "draft/a", "draft/a/b"]
PROPERTIES = ("title", "level", "tenant")


def compare(rows_wanted: int, first_seed: int) -> None:
    """Compare conditions with Cedar until a number of rows is judged."""
    schema = catalog()
    judged = refused = limited = policies_seen = 0
    while judged < rows_wanted:
        policies_seen += 1
        assert policies_seen <= SEEDS_OF_SLICE
        seed = first_seed + policies_seen
        generator = Generator(seed)
        policies = generator.policies(schema)
        if policies is None:
            refused += 1
            continue
        rows = generator.rows(ROWS_PER_POLICY)
        choice = generator.random.choice
        questions = [Question(policies.actor(name), choice(BRANCHES)) for name in ACTORS]
        reader = policies.actor(choice(list(ACTORS)))
        questions += [Question(reader, "main", name) for name in PROPERTIES]
        for question, wanted in zip(questions, cedar_masks(policies, rows, questions), strict=True):
            action = "row_read" if question.name is None else "property_read"
            condition = policies.condition(question.actor, action, "node:Doc", question.branch, question.name)
            limited += question.name is None and not isinstance(condition, bool)
            found = engine_mask(schema, condition, rows)
            wrong = [row for row, a, b in zip(rows, found, wanted, strict=True) if a != b]
            assert not wrong, (seed, question, condition_text(condition), wrong[0], policies.cedar_text)
            judged += len(rows) if question.name is None else 0
            if question.name is not None:
                _check_visibility(policies, question, condition)
    # The generated policies are mostly accepted, and mostly neither all nor none.
    assert refused < policies_seen / 2
    assert limited > policies_seen / 2


def _check_visibility(policies: RowPolicies, question: Question, condition: ir.Condition | bool) -> None:
    """Compare what the visibility of an actor says of a property; one that no rule names is visible."""
    assert question.name is not None
    seen = policies.visibility(question.actor, question.branch)
    kept = seen is None or seen.rows.get("node:Doc", True) is not None
    if kept and condition is not True:
        assert seen is not None
        wanted = ir.Const(False, ir.BOOL) if condition is False else condition
        assert seen.properties["node:Doc", question.name] == wanted


def test_conditions_agree_with_cedar() -> None:
    compare(6_000, 0)


@pytest.mark.long
@pytest.mark.parametrize("number", range(SLICES))
def test_conditions_agree_with_cedar_long(number: int) -> None:
    compare(SLICE_ROWS, SEEDS_OF_SLICE * (number + 1))
