"""Parameters of a query without a head.

A query such as `match { … } return { … }` cannot declare its parameters. Their types follow from the values: a `str` is
a String, an `int` an I64, a list of numbers that is an argument of `nearest` a Vector of its length. `query.inference`
refines them by the properties that the parameters are compared with.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from numbers import Integral, Real
from pathlib import PurePath
from typing import Any
from uuid import UUID

import numpy as np

from omnigraph.checkpoints import paced
from omnigraph.errors import Hint, ParameterError
from omnigraph.lang.spans import Name
from omnigraph.lang.tokens import VAR, lex
from omnigraph.query.syntax.ast import Param
from omnigraph.query.syntax.parse_writes import BARE
from omnigraph.scalar_types.describe import describe_json
from omnigraph.scalar_types.registry import LITERAL_CALLS
from omnigraph.scalar_types.written_value import WrittenValue
from omnigraph.types import INTEGER_RANGES

_KEPT_TEXT_MAX = 65_536
"""The vector parameters of longer texts are found again by every call."""
_I64_MAX = INTEGER_RANGES["I64"][1]


def is_bare(text: str) -> bool:
    """True if the text is one query without a head."""
    if text.startswith("query"):
        return False
    return lex(text).tokens[0].text in BARE


def inline_params(text: str, given: Any) -> tuple[Param, ...]:
    """Return the parameters of a query without a head, typed by the values; none for any other text."""
    if not isinstance(given, dict) or not given or text.startswith("query"):
        return ()
    vectors = (_kept_vectors if len(text) <= _KEPT_TEXT_MAX else _vectors_of)(text)
    if vectors is None:
        return ()
    for name in given:
        _refuse_dollar(name)
    return tuple(_param(str(name), value, str(name) in vectors) for name, value in given.items())


def _vectors_of(text: str) -> frozenset[str] | None:
    """Return the vector parameters of a query without a head; None for any other text."""
    return frozenset(_compared_vectors(text)) if is_bare(text) else None


_kept_vectors = lru_cache(maxsize=512)(_vectors_of)


def _refuse_dollar(name: Any) -> None:
    if isinstance(name, str) and name.startswith("$"):
        plain = name[1:]
        raise ParameterError(
            f"parameter names are written without the dollar sign, not as '{name}'",
            hint=Hint(f"write {{'{plain}': …}}", cli=f"write -p {plain}=…, or {plain!r} in --params"),
        )


def _param(name: str, value: Any, is_vector: bool) -> Param:
    if is_vector and _is_list(value):
        return Param(Name(name), Name("Vector"), dim=len(value))
    if isinstance(value, WrittenValue):
        return Param(Name(name), Name(_scalar(name, value.value)), alternatives=("String",))
    if _is_list(value):
        kinds = {_scalar(name, item) for item in paced(value) if item is not None}
        kind = "F64" if kinds == {"I64", "F64"} else kinds.pop() if len(kinds) == 1 else "String"
        alternatives = ("Vector",) if kind in _NUMBERS else _ALTERNATIVES.get(kind, ())
        return Param(Name(name), Name(kind), is_list=True, alternatives=alternatives)
    kind = _scalar(name, value)
    return Param(Name(name), Name(kind), alternatives=_ALTERNATIVES.get(kind, ()))


_ALTERNATIVES = {"String": tuple(kind.name for kind in LITERAL_CALLS.values())}
"""Other types that a value of a scalar type can be read as."""
_NUMBERS = ("I64", "F64")
"""Types of the items of a list that can be read as a vector."""


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple) or (hasattr(value, "shape") and len(value.shape) == 1)


_KINDS: tuple[tuple[Any, str], ...] = (
    (Enum, "String"),
    (str, "String"),
    (UUID, "String"),
    (PurePath, "String"),
    ((bool, np.bool_), "Bool"),
    (datetime, "DateTime"),
    (date, "Date"),
    (Integral, "I64"),
    ((Real, Decimal), "F64"),
)
"""Return the type of a Python value: that of the first class that matches."""


def _scalar(name: str, value: Any) -> str:
    kind = next((kind for classes, kind in _KINDS if isinstance(value, classes)), None)
    if kind is None:
        raise ParameterError(
            f"the type of parameter '{name}' cannot be taken from {describe_json(value)}",
            hint=f"declare it: query name(${name}: Type) {{ … }}",
        )
    return "U64" if kind == "I64" and int(value) > _I64_MAX else kind


def _compared_vectors(text: str) -> set[str]:
    """Return the parameters that are the second argument of `nearest`."""
    tokens = lex(text).tokens
    return {
        tokens[position + 6].text[1:]
        for position, token in enumerate(tokens[:-6])
        if token.text == "nearest" and tokens[position + 5].text == "," and tokens[position + 6].kind == VAR
    }
