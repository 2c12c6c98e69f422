"""The orders of a match that the optimizer considered."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class OrderChoice:
    """The cheapest orders that start at different variables, the chosen one first."""

    orders: tuple[tuple[str, ...], ...]
    """The variables of each order, in the order in which they are bound."""
    costs: tuple[float, ...]
    """The estimated nanoseconds of each order."""
