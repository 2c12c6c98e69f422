"""`Visibility`: what an actor may see, and its digests."""

from __future__ import annotations

from omnigraph.query.plan import ir
from omnigraph.query.visibility import ROW, Visibility
from omnigraph.types import PropertyType

TENANT = ir.Prop(ROW, "tenant", PropertyType("String"))


def equals(value: str) -> ir.Condition:
    return ir.Compare("=", TENANT, ir.Const(value, ir.STRING))


def test_equal_conditions_have_equal_digests() -> None:
    one = Visibility({"node:A": equals("acme"), "node:B": None}, {("node:A", "pay"): equals("acme")})
    same = Visibility({"node:B": None, "node:A": equals("acme")}, {("node:A", "pay"): equals("acme")})
    assert one.digest == same.digest
    assert one.row_digest("node:A") == same.row_digest("node:A")


def test_each_part_changes_the_digest() -> None:
    parts = [
        Visibility(),
        Visibility({"node:A": None}),
        Visibility({"node:B": None}),
        Visibility({"node:A": equals("acme")}),
        Visibility({"node:A": equals("other")}),
        Visibility({}, {("node:A", "pay"): None}),
        Visibility({}, {("node:A", "pay"): equals("acme")}),
        Visibility({}, {("node:A", "name"): equals("acme")}),
    ]
    assert len({part.digest for part in parts}) == len(parts)


def test_row_digests_differ_by_table_and_condition() -> None:
    both = Visibility({"node:A": equals("acme"), "node:B": equals("acme")})
    other = Visibility({"node:A": equals("other")})
    digests = {both.row_digest("node:A"), both.row_digest("node:B"), other.row_digest("node:A")}
    assert len(digests) == 3
