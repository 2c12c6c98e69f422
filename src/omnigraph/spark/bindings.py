"""The rows of a match as a DataFrame: the columns of each variable and of its identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TYPE_CHECKING, Any

from omnigraph.query.plan import ir
from omnigraph.spark.arrow_udfs import FrameColumn

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ID = "id"
NODES = "#nodes"
"""The property of a path that lists its nodes as pairs of id and type; `ID` lists its edges in the same way."""
_IDENTITY = (ID, ir.TYPE, NODES)


@dataclass(frozen=True)
class Bindings:
    """The rows matched so far and the column of each bound property; without a DataFrame, one row without bindings.

    A node is identified by its id; if the variable has several types, by its id and its type. A path is identified by
    its edges and its nodes, the values of a stage by themselves.
    """

    frame: DataFrame | None = None
    columns: Mapping[tuple[str, str], FrameColumn] = field(default_factory=dict)

    def name(self, var: str, prop: str = ID) -> str:
        """Return the column name of a property."""
        return self.columns[var, prop].name

    def identity(self, var: str) -> list[str]:
        """Return the names of the columns that identify the entity of a variable, in sort order."""
        if var.startswith(ir.CARRIED):
            return [column.name for (name, _), column in self.columns.items() if name == var]
        return [self.columns[var, prop].name for prop in _IDENTITY if (var, prop) in self.columns]

    def with_frame(self, frame: DataFrame) -> Bindings:
        """Return bindings with the same columns and other rows."""
        return Bindings(frame, self.columns)


def all_of(conditions: list[Any]) -> Any:
    """Return the conjunction of Spark columns."""
    return reduce(lambda a, b: a & b, conditions)
