"""Filters of a search as conditions of the query language."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from omnigraph.errors import InputError

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "in", "contains", "starts_with", "icontains")
"""The operators of a filter, as in `Graph.search`."""

Filter = Mapping[str, Any] | str
"""`{"year": {">=": 1900}, "kind": "print"}`, or clauses of a match block on `$doc`."""


def conditions_of(filter: Filter | None, params: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
    """Return the clauses of a filter and their parameters.

    A text is clauses of a match block: `$doc.year >= $from  $author wrote $doc`; `params` are its parameters.
    """
    if filter is None or isinstance(filter, str):
        return filter or "", dict(params or {})
    if not isinstance(filter, Mapping):
        raise InputError(
            f"a filter is a mapping of properties to conditions or a text, not {type(filter).__name__}",
            code="bad_filter",
            hint='write {"year": {">=": 1900}, "kind": "print"}',
        )
    clauses: list[str] = []
    values = dict(params or {})
    for name, wanted in filter.items():
        if not str(name).isidentifier():
            raise InputError(f"'{name}' is not the name of a property", code="bad_filter")
        for operator, value in (wanted if isinstance(wanted, Mapping) else {"=": wanted}).items():
            if operator not in OPERATORS:
                raise InputError(
                    f"the filter of '{name}' has an unknown operator '{operator}'",
                    code="bad_filter",
                    hint=f"the operators are {' '.join(OPERATORS)}",
                )
            if value is None:
                if operator not in ("=", "!="):
                    raise InputError(f"the filter of '{name}' compares with null", code="bad_filter")
                clauses.append(f"$doc.{name} is {'' if operator == '=' else 'not '}null")
                continue
            parameter = f"filter_{len(values)}"
            values[parameter] = value
            clauses.append(f"$doc.{name} {operator} ${parameter}")
    return " ".join(clauses), values
