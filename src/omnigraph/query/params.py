"""Conversion of JSON parameters to the values of a plan, by their declared types.

There are two dialects. The standard dialect accepts integers of any width as numbers. The JavaScript dialect refuses a
number that JavaScript cannot represent exactly, and accepts `3.0` as an integer because JavaScript does not distinguish
it. Both accept integers as decimal strings.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from omnigraph.checkpoints import paced
from omnigraph.errors import ParameterError, ValueFormatError
from omnigraph.query.plan.ir import ParamDecl
from omnigraph.scalar_types.describe import describe_json
from omnigraph.scalar_types.registry import JS_SAFE_MAX
from omnigraph.scalar_types.written_value import WrittenValue
from omnigraph.suggestions import did_you_mean, listing
from omnigraph.types import INTEGER_RANGES, PropertyType
from omnigraph.values import is_json, read_json

_DECIMAL = re.compile(r"-?[0-9]{1,100}")


def bind_params(
    declared: Sequence[ParamDecl], given: Mapping[str, Any] | None, *, javascript: bool = False
) -> dict[str, Any]:
    """Return the values of all declared parameters.

    A given parameter that is not declared, and the first one that is missing or invalid, raise `ParameterError`.
    """
    if given is None:
        given = {}
    if type(given) is not dict and not isinstance(given, Mapping):
        raise ParameterError(
            f"parameters are an object of names and values, not {describe_json(given)}", hint='write {"name": value}'
        )
    refuse_unknown(given, {param.name for param in declared})
    values: dict[str, Any] = {}
    for param in declared:
        if param.name not in given:
            if not param.type.nullable:
                raise ParameterError(f"parameter '{param.name}' ({param.type}) is missing")
            values[param.name] = None
            continue
        try:
            values[param.name] = _read(given[param.name], param.type, javascript)
        except ValueFormatError as error:
            raise ParameterError(f"parameter '{param.name}' ({param.type}): {error.message}", hint=error.hint) from None
    return values


def refuse_unknown(given: Iterable[Any], names: Collection[str]) -> None:
    """Raise `ParameterError` for the first given name that is not the name of a parameter."""
    unknown = next((str(name) for name in given if name not in names), None)
    if unknown is None:
        return
    if unknown.startswith("$"):
        hint = "parameter names are given without the dollar sign"
    else:
        takes = f"it takes {listing(names)}" if names else "it takes no parameters"
        hint = did_you_mean(unknown, names) or takes
    raise ParameterError(f"the query has no parameter '{unknown[:100]}'", hint=hint)


def valid_params(declared: Iterable[ParamDecl], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given values of some parameters in stored form. Null and invalid values are left out.

    A plan is chosen before parameters are bound, and `bind_params` reports an invalid value.
    """
    values: dict[str, Any] = {}
    for param in declared:
        value = given.get(param.name)
        if value is not None:
            with suppress(ValueFormatError):
                values[param.name] = _read(value, param.type, javascript=False)
    return values


def _read(value: Any, type_: PropertyType, javascript: bool) -> Any:
    if isinstance(value, WrittenValue):
        value = str(value) if type_.kind.is_json_text and not type_.is_list else value.value
    if value is None or not is_json(value):
        return read_json(value, type_)
    if type_.is_list:
        if not isinstance(value, list):
            raise ValueFormatError(f"expected {type_}, found {describe_json(value)}")
        return [_read(item, type_.item, javascript) for item in paced(value)]
    if type_.scalar in INTEGER_RANGES:
        return read_json(_integer(value, type_, javascript), type_)
    word = type_.kind.literal_call
    if word is not None and not isinstance(value, str):
        raise ValueFormatError(f"expected a {word} string, found {describe_json(value)}")
    return read_json(value, type_)


def _integer(value: Any, type_: PropertyType, javascript: bool) -> Any:
    if isinstance(value, str):
        if not _DECIMAL.fullmatch(value):
            raise ValueFormatError(f"expected {type_}, found {describe_json(value)}", hint="write decimal digits")
        return int(value)
    if not javascript or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) > JS_SAFE_MAX:
        raise ValueFormatError(
            f"{describe_json(value)} is beyond ±{JS_SAFE_MAX}, where JavaScript numbers are no longer exact",
            hint="pass a decimal string",
        )
    return int(value) if isinstance(value, float) and value.is_integer() else value
