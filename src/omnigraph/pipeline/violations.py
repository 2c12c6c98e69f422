"""What tasks find wrong, as plain data that can be put in order.

The position of a row is its split and its place among the split's rows of that table, so it orders rows as the input
does. Errors that were raised travel as their class and fields, because many need more than a message to be made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.engine.write.delta import RuleKind, Violation
from omnigraph.errors import OmniGraphError, RecordError

_PLACE_BITS = 32
COMMITTED = 1 << 62
"""Rows that were there before come after all that are written."""


def position_of(split: int, place: int) -> int:
    """The position of a row."""
    return split << _PLACE_BITS | place


def split_of(position: int) -> int:
    """The split a row came from."""
    return position >> _PLACE_BITS


def place_of(position: int) -> int:
    """A row's place in its split."""
    return position & ((1 << _PLACE_BITS) - 1)


@dataclass(frozen=True, slots=True)
class Raised:
    """An error on its way to the driver."""

    kind: type[OmniGraphError]
    arguments: tuple[Any, ...]
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, error: OmniGraphError) -> Raised:
        """Pack an error."""
        return cls(type(error), error.args, dict(vars(error)))

    def error(self) -> OmniGraphError:
        """The error again."""
        made = self.kind.__new__(self.kind, *self.arguments)
        vars(made).update(self.fields)
        return made


@dataclass(frozen=True, slots=True)
class Fault:
    """A record that is wrong by itself; its line is counted within its split."""

    split: int
    line: int | None
    source: str | None
    type_name: str | None
    property: str | None
    rule: str
    reason: str
    hint: str | None = None
    record: Any = None

    @classmethod
    def of(cls, split: int, error: RecordError) -> Fault:
        """Take an error apart."""
        return cls(
            split,
            error.line,
            error.source,
            error.type_name,
            error.property_name,
            error.rule,
            error.reason,
            error.hint,
            error.record,
        )

    def error(self, lines_before: int) -> RecordError:
        """The error with the line of the file."""
        error = RecordError(
            self.reason,
            source=self.source,
            line=None if self.line is None else lines_before + self.line,
            type_name=self.type_name,
            property_name=self.property,
            rule=self.rule,
            hint=self.hint,
        )
        error.record = self.record
        return error


@dataclass(frozen=True, slots=True)
class Finding:
    """A row that breaks a rule; `place` says which rule, step and part, and `order` where among its findings.

    `position` is the written row it is about, if it is one; `also` are the others that fall with it.
    """

    place: tuple[int, int, int]
    order: int
    kind: RuleKind
    table_key: str
    row_id: str
    message: str
    property: str | None
    other_id: str | None
    position: int | None
    also: tuple[int, ...] = ()

    @classmethod
    def of(
        cls,
        place: tuple[int, int, int],
        violation: Violation,
        order: int,
        position: int | None,
        also: tuple[int, ...] = (),
    ) -> Finding:
        """What a part of a rule says about a row, with its position in the input."""
        v = violation
        return cls(place, order, v.rule, v.table_key, v.row_id, v.message, v.property, v.other_id, position, also)

    def violation(self) -> Violation:
        """As the rules say it."""
        return Violation(self.kind, self.table_key, self.row_id, self.message, self.property, self.other_id)


def rank(finding: Finding) -> tuple[int, int, int, int]:
    """Findings in the order a load in memory makes them."""
    rule, step, part = finding.place
    return rule, step, finding.order, part
