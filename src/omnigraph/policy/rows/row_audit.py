"""Audit mode: Cedar judges a sample of the rows that reads return, and a row that it denies ends the read.

Reads apply conditions that were translated from the policy. The audit asks Cedar about rows that passed them.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import Denied
from omnigraph.policy.rows.row_compiler import CompiledRows
from omnigraph.policy.rows.row_decisions import RowDecisions
from omnigraph.policy.rows.row_tables import PolicyActor

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RowAudit:
    """The audit of the reads of an actor on a branch."""

    compiled: CompiledRows
    decisions: RowDecisions
    actor: PolicyActor
    branch: str
    sample: int
    """Rows of a variable or table that are judged in each read."""

    def columns(self, table_key: str) -> Sequence[str]:
        """Return the columns of a table that rules can read."""
        return [column for column, _ in self.compiled.tables[table_key].columns.values()]

    def check(self, table_key: str, rows: Sequence[Mapping[str, Any]], shown: Mapping[str, Sequence[bool]]) -> None:
        """Raise `Denied` if Cedar denies a row, or a masked property whose value is shown."""
        columns = self.compiled.tables[table_key].columns
        for at, row in enumerate(rows):
            data = {name: row[column] for name, (column, _) in columns.items()}
            if not self._allows("row_read", table_key, data):
                self._refuse(table_key, "row")
            for name, values in shown.items():
                if values[at] and not self._allows("property_read", table_key, data, name):
                    self._refuse(table_key, f"value of '{name}'")

    def _allows(self, action: str, table_key: str, data: Mapping[str, Any], name: str | None = None) -> bool:
        return self.decisions.judge(self.actor, action, table_key, data, self.branch, name).allowed

    def _refuse(self, table_key: str, what: str) -> None:
        # The row is not logged: it may hold hidden values.
        _log.error(
            "the audit of rows failed: a read of actor '%s' on branch '%s' would return a %s of '%s' that the policy "
            "denies; nothing was returned", self.actor.name, self.branch, what, table_key,
        )  # fmt: skip
        raise Denied(
            "the audit of rows failed: the read would return data that the policy denies; nothing was returned",
            hint="report this to the operator of the graph; the log names the table",
        )
