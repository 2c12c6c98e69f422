"""The orders of a match and the forms of its blocks that the optimizer compared."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class BlockChoice:
    """How a `not` or `optional` block runs: once for all rows or for each row."""

    kind: str
    """`without` or `optional`."""
    variables: tuple[str, ...]
    """The outer variables of the block."""
    each: float
    """The estimated nanoseconds if it runs for each row; infinite if its order is fixed."""
    once: float
    """The estimated nanoseconds if it runs once; infinite if it cannot."""
    runs_once: bool


@dataclass(frozen=True)
class OrderChoice:
    """The cheapest orders that start at different variables, the chosen one first."""

    orders: tuple[tuple[str, ...], ...]
    """The variables of each order, in the order in which they are bound."""
    costs: tuple[float, ...]
    """The estimated nanoseconds of each order."""
    blocks: tuple[BlockChoice, ...] = ()
