"""The rows a query has so far: for every variable a column of numbers, all of one length."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from omnigraph.engine.data import Mask, Numbers, TableData
from omnigraph.query.ast import ANONYMOUS


@dataclass(frozen=True)
class Bound:
    """A variable: which table its entities are in, and which one each row means."""

    data: TableData
    numbers: Numbers


@dataclass(frozen=True)
class Frame:
    """A bag of rows. Without variables it is one empty row, the start of every match."""

    count: int = 1
    bound: Mapping[str, Bound] = field(default_factory=dict)

    def take(self, positions: Numbers) -> Frame:
        """The rows at these positions, in their order."""
        bound = {name: Bound(b.data, b.numbers[positions]) for name, b in self.bound.items()}
        return Frame(len(positions), bound)

    def keep(self, mask: Mask) -> Frame:
        """The rows where the mask is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def bind(self, name: str, data: TableData, numbers: Numbers) -> Frame:
        """The same rows with one more variable."""
        return Frame(self.count, {**self.bound, name: Bound(data, numbers)})

    def only(self, names: tuple[str, ...]) -> Frame:
        """The same rows with some of their variables."""
        return Frame(self.count, {name: self.bound[name] for name in names})

    def named(self) -> list[str]:
        """The variables a user can name, by name."""
        return sorted(name for name in self.bound if not name.startswith(f"{ANONYMOUS}#"))
