"""A few rows of a result as Python values: for few rows, making Arrow of them takes longer than finding them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa


@dataclass(frozen=True)
class PlainRows:
    """The columns of a result, each a list."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]
    columns: tuple[list[Any], ...]

    def to_table(self) -> pa.Table:
        """The rows as an Arrow table."""
        arrays = [pa.array(values, type_) for values, type_ in zip(self.columns, self.types, strict=True)]
        return pa.Table.from_arrays(arrays, names=list(self.names))

    def to_pylist(self) -> list[dict[str, Any]]:
        """The rows as dicts."""
        names = self.names
        return [dict(zip(names, row, strict=False)) for row in zip(*self.columns, strict=True)]
