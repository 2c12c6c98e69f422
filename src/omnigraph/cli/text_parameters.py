"""Parameters of commands that are text: their values are used without the validators of typer.

typer validates every value with pydantic, whose import takes longer than a point read. A text needs no conversion.
Every other value, and a text that is no valid Unicode, takes the way of typer, which reports the errors.
"""

from __future__ import annotations

from typing import Any


def pass_text(parameters: list[Any]) -> list[Any]:
    """Let absent values and texts of the parameters of a command pass unchanged; return the parameters."""
    for parameter in parameters:
        if not isinstance(parameter.process_value, _TextValue):
            parameter.process_value = _TextValue(parameter)
    return parameters


class _TextValue:
    """The `process_value` of a parameter."""

    def __init__(self, parameter: Any) -> None:
        self._parameter = parameter
        self._validate = parameter.process_value
        self._repeated = parameter.multiple or parameter.nargs == -1
        self._annotation = parameter.type_descriptor.annotation

    def __call__(self, ctx: Any, value: Any) -> Any:
        if value is None and not self._parameter.required:
            value = () if self._repeated else None
        elif self._annotation == list[str] and isinstance(value, list | tuple) and value and all(map(_is_text, value)):
            value = list(value)
        elif self._annotation is not str or not _is_text(value):
            return self._validate(ctx, value)
        callback = self._parameter.callback
        return value if callback is None else callback(ctx, self._parameter, value)


def _is_text(value: Any) -> bool:
    """True if a value is text without unpaired surrogates, which stand for bytes that are no UTF-8."""
    if not isinstance(value, str):
        return False
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
