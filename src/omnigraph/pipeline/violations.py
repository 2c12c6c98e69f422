"""Errors and violations found by tasks, as plain data with a sort order.

The position of a row consists of its split and its index among the split's rows of that table, so positions order rows
as the input does. Errors are packed as class and fields, because many constructors take more than a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.engine.write.delta import Violation
from omnigraph.errors import OmniGraphError, RecordError

_ROW_BITS = 32
COMMITTED = 1 << 62
"""Offset of the positions of committed rows: they sort after all written rows."""


def position_of(split: int, row: int) -> int:
    """The position of a row."""
    return split << _ROW_BITS | row


def split_of(position: int) -> int:
    """The split of a row."""
    return position >> _ROW_BITS


def row_of(position: int) -> int:
    """The index of a row in its split."""
    return position & ((1 << _ROW_BITS) - 1)


@dataclass(frozen=True, slots=True)
class PackedError:
    """An error, packed for the transfer to the driver."""

    kind: type[OmniGraphError]
    arguments: tuple[Any, ...]
    fields: Mapping[str, Any]

    @classmethod
    def of(cls, error: OmniGraphError) -> PackedError:
        """Pack an error."""
        return cls(type(error), error.args, dict(vars(error)))

    def error(self) -> OmniGraphError:
        """Unpack the error."""
        made = self.kind.__new__(self.kind, *self.arguments)
        vars(made).update(self.fields)
        return made


@dataclass(frozen=True, slots=True)
class RecordFault:
    """A record that is wrong by itself. Its line is numbered within its split."""

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
    def of(cls, split: int, error: RecordError) -> RecordFault:
        """Pack an error."""
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
        """The error with the line number in the file."""
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
class LocatedViolation:
    """A violation whose rows are positions in the input, with its place in the order of reporting."""

    check_id: tuple[int, int, int]
    """The numbers of the rule, step and check that found it."""
    order: int
    """Its order among the violations of the step."""
    violation: Violation


def rank(found: LocatedViolation) -> tuple[int, int, int, int]:
    """Sort key: the order in which a load in memory finds violations."""
    rule, step, check = found.check_id
    return rule, step, found.order, check
