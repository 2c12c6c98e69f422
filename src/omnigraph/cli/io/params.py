"""Parameters of a query, from options and arguments.

Precedence, high to low: `-p name=value`; `--params` or `--params-file`; the arguments of an alias. A value is parsed as
JSON, else it is a string. If the query declares a String, or compares the parameter with one, `29` is the string "29".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.io.files import read_text
from omnigraph.errors import InputError, ParameterError
from omnigraph.scalar_types.written_value import read_word

Declared = Mapping[str, str]
"""Declared parameters of a query and their types as written."""


class TakesArguments(Protocol):
    """An alias, of the configuration or of the operator file."""

    @property
    def name(self) -> str:
        """The name of the alias."""

    @property
    def args(self) -> Sequence[str]:
        """The parameters that its arguments give, in order."""


def gather(
    declared: Declared,
    *,
    params: str | None,
    params_file: str | None,
    assignments: Sequence[str],
    alias: TakesArguments | None = None,
    words: Sequence[str] = (),
    bare: bool = False,
) -> dict[str, Any]:
    """Return all given parameters by name; `bare` is true for a query without a head, which declares no types."""
    if params is not None and params_file is not None:
        raise UsageFault("--params and --params-file exclude each other")
    values: dict[str, Any] = {}
    if alias is not None:
        if len(words) > len(alias.args):
            expected, given = len(alias.args), len(words)
            raise InputError(f"alias '{alias.name}' takes {expected} arguments, not {given}", code="alias_arguments")
        for name, word in zip(alias.args, words, strict=False):
            values[name] = read_untyped(word) if bare else read_word(word, declared.get(name))
    if params is not None:
        values.update(_object(params, "--params"))
    if params_file is not None:
        values.update(_object(read_text(params_file), f"'{params_file}'"))
    for assignment in assignments:
        name, equals, word = assignment.partition("=")
        if not equals or not name.strip():
            raise UsageFault(f"'{assignment}' is not an assignment; write -p name=value")
        name = name.strip().removeprefix("$")
        values[name] = read_untyped(word) if bare else read_word(word, declared.get(name))
    return values


def read_untyped(word: str) -> Any:
    """Parse a word for a parameter without a declared type; a number keeps its text until the type is known."""
    from omnigraph.scalar_types.written_value import WrittenValue

    value = read_word(word, None)
    return WrittenValue(word) if isinstance(value, bool | int | float) else value


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        hint = 'write a JSON object in single quotes: \'{"name": "value"}\', or use -p name=value'
        raise ParameterError(f"{where} is not JSON: {error}", hint=hint) from None
    if not isinstance(value, dict):
        raise ParameterError(f"{where} is not a JSON object", hint='write {"name": value}')
    return value
