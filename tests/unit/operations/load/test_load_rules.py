"""Tests of the rules of a load: the choice of errors and of the records to set aside."""

from collections.abc import Mapping

import pyarrow as pa
import pytest

from omnigraph.engine.write.delta import Violation
from omnigraph.errors import ConstraintViolation, KeyConflict
from omnigraph.operations.load.load_rules import (
    LoadChecks,
    RejectReason,
    checks_ids,
    drops_repeats,
    refused_ids,
    repeated_records,
    validate_load,
)
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.check import compile_schema

NODE, EDGE = "node:P", "edge:E"


@pytest.fixture
def catalog() -> Catalog:
    return compile_schema("node P { n: I32? }\nnode K { k: String @key }\nedge E: P -> P\n")


class Rows:
    """A load candidate whose violations are given, rule by rule. A row that is set aside violates nothing."""

    def __init__(self, *rules: list[Violation], refused: list[Violation] | None = None) -> None:
        self.rules = rules
        self.refused = refused or []
        self.table_keys = [NODE, EDGE]
        self.rounds: list[tuple[str, dict[int, str]]] = []
        self._gone: set[tuple[str, int]] = set()

    def check(self) -> LoadChecks:
        return LoadChecks((self._left(rule) for rule in self.rules), self._left(self.refused))

    def _left(self, found: list[Violation]) -> list[Violation]:
        return [v for v in found if not any((v.table_key, row) in self._gone for row in (v.position, *v.surplus))]

    def set_aside(self, table_key: str, reasons: Mapping[int, RejectReason]) -> None:
        self.rounds.append((table_key, {row: reason.message for row, reason in reasons.items()}))
        self._gone |= {(table_key, row) for row in reasons}

    def source_line(self, table_key: str, position: int) -> tuple[str | None, int]:
        return f"{table_key}.jsonl", position + 1


def wrong(message: str, position: int | None, table_key: str = NODE, **more) -> Violation:
    return Violation("range", table_key, "x", message, position=position, **more)


def taken(position: int) -> Violation:
    return Violation("unique", NODE, "x", f"id {position} exists", "id", None, position)


def test_first_violation_in_the_order_of_rules_is_raised():
    rows = Rows([], [wrong("second", 7), wrong("third", 1)], refused=[taken(0)])
    with pytest.raises(ConstraintViolation, match=r"^node:P.jsonl, line 8: second$"):
        validate_load(rows, set_aside=False)


def test_refused_id_is_raised_after_all_rules():
    with pytest.raises(KeyConflict, match=r"line 3: id 2 exists; nothing was written") as caught:
        validate_load(Rows([], refused=[taken(2), taken(5)]), set_aside=False)
    assert caught.value.hint == "load with mode 'merge' to update it"


def test_violation_of_a_committed_row_has_no_line():
    with pytest.raises(ConstraintViolation, match=r"^left behind$"):
        validate_load(Rows([wrong("left behind", None)]), set_aside=False)


def test_refused_ids_are_set_aside_before_rules_are_applied():
    rows = Rows([wrong("a", 1), wrong("b", 2)], refused=[taken(1)])
    validate_load(rows, set_aside=True)
    assert rows.rounds == [(NODE, {1: "id 1 exists"}), (NODE, {2: "b"})]


def test_each_round_sets_aside_the_first_violated_rule():
    rows = Rows([wrong("a", 0), wrong("b", 1)], [wrong("c", 1), wrong("d", 2)])
    validate_load(rows, set_aside=True)
    assert rows.rounds == [(NODE, {0: "a", 1: "b"}), (NODE, {2: "d"})]


def test_each_round_sets_aside_rows_of_one_table():
    rows = Rows([wrong("a", 0), wrong("b", 0, EDGE)])
    validate_load(rows, set_aside=True)
    assert rows.rounds == [(NODE, {0: "a"}), (EDGE, {0: "b"})]


def test_first_violation_of_a_row_is_its_reason():
    rows = Rows([wrong("a", 3), wrong("b", 3)])
    validate_load(rows, set_aside=True)
    assert rows.rounds == [(NODE, {3: "a"})]


def test_surplus_rows_of_a_violation_are_set_aside():
    rows = Rows([wrong("too many", None, EDGE, surplus=(4, 5))])
    validate_load(rows, set_aside=True)
    assert rows.rounds == [(EDGE, {4: "too many", 5: "too many"})]


@pytest.mark.parametrize("violation", [wrong("left behind", None), wrong("elsewhere", 0, "node:Other")])
def test_violation_without_a_loaded_row_ends_the_load(violation):
    rows = Rows([violation])
    with pytest.raises(ConstraintViolation, match=violation.message):
        validate_load(rows, set_aside=True)
    assert rows.rounds == []


def test_later_records_of_an_id_are_repeats():
    found = repeated_records(pa.chunked_array([["a", "b"], ["a", "c", "b", "a"]]))
    assert {row: reason.message for row, reason in found.items()} == {
        2: "the id 'a' is given twice",
        4: "the id 'b' is given twice",
        5: "the id 'a' is given twice",
    }
    assert repeated_records(pa.chunked_array([["a", "b"]])) == {}


def test_repeated_and_existing_ids_are_refused(catalog):
    found = refused_ids(catalog.nodes["P"], pa.array(["a", "b", "a"]), pa.array(["b"]))
    assert [(v.position, v.message, v.other_id) for v in found] == [
        (1, "P: the id 'b' exists already", None),
        (2, "P: the id 'a' is given twice", "a"),
    ]


def test_repeated_keys_are_left_to_the_key_rule(catalog):
    type_ = catalog.nodes["K"]
    assert list(refused_ids(type_, pa.array(["a", "a"]), pa.array([], pa.utf8()))) == []
    assert not drops_repeats(type_, "append", fresh=False)


@pytest.mark.parametrize("mode", ["append", "overwrite"])
def test_ids_are_checked_unless_they_are_generated(catalog, mode):
    assert checks_ids(mode, fresh=False)
    assert not checks_ids(mode, fresh=True)
    assert drops_repeats(catalog.nodes["P"], mode, fresh=False)
    assert not drops_repeats(catalog.edges["E"], mode, fresh=True)


def test_merge_accepts_repeated_ids(catalog):
    assert not checks_ids("merge", fresh=False)
    assert not drops_repeats(catalog.nodes["P"], "merge", fresh=False)
