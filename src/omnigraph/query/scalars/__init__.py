"""The scalar functions of the language: a registry with one entry for each.

To add a function, write its entry (name, arguments, result, computation, summary), its row in the reference, its test
case, and its rule in the test oracle. The parser, type checker, formatter, `explain`, both engines and the shell read
the registry.
"""

from __future__ import annotations

from omnigraph.query.scalars.conversions import CONVERSIONS
from omnigraph.query.scalars.dates import DATE_FUNCTIONS
from omnigraph.query.scalars.lists import LIST_FUNCTIONS
from omnigraph.query.scalars.numbers import NUMBERS
from omnigraph.query.scalars.signature import Columns, Scalar
from omnigraph.query.scalars.texts import TEXT_FUNCTIONS

SCALARS: dict[str, Scalar] = {
    scalar.name: scalar for scalar in (*NUMBERS, *TEXT_FUNCTIONS, *DATE_FUNCTIONS, *LIST_FUNCTIONS, *CONVERSIONS)
}

__all__ = ["SCALARS", "Columns", "Scalar"]
