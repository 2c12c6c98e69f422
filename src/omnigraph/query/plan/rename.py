"""Variables of a pipeline: their order, and pipelines with other names."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, cast

from omnigraph.query.plan import ir

_ONE = frozenset({"var", "src_var", "dst_var", "edge_var", "path_var"})
_SEVERAL = frozenset({"outer_vars", "variables"})


def variables_in_order(pipeline: ir.Pipeline) -> list[str]:
    """Return the variables of a pipeline in the order of their first occurrence."""
    return [*dict.fromkeys(_variables(pipeline))]


def renamed(pipeline: ir.Pipeline, names: Mapping[str, str]) -> ir.Pipeline:
    """Return a pipeline with some variables renamed."""
    return cast(ir.Pipeline, _renamed(pipeline, names))


def canonical(pipeline: ir.Pipeline, kept: Collection[str] = ()) -> ir.Pipeline:
    """Return a pipeline with numbers in place of names, except those of `kept` variables.

    Pipelines that differ in names only have the same canonical form.
    """
    own = (name for name in variables_in_order(pipeline) if name not in kept)
    return renamed(pipeline, {name: f"#{number}" for number, name in enumerate(own)})


def _variables(node: Any) -> Iterator[str]:
    if isinstance(node, tuple):
        for item in node:
            yield from _variables(item)
    elif is_dataclass(node):
        for member in fields(node):
            value = getattr(node, member.name)
            if member.name in _ONE:
                yield from (value,) if value is not None else ()
            elif member.name not in _SEVERAL:  # the pipeline of the block names them too
                yield from _variables(value)


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    if isinstance(node, tuple):
        return tuple(_renamed(item, names) for item in node)
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changes: dict[str, Any] = {}
    for member in fields(node):
        value = getattr(node, member.name)
        if member.name in _ONE:
            changes[member.name] = names.get(value, value)
        elif member.name in _SEVERAL:
            changes[member.name] = tuple(names.get(name, name) for name in value)
        else:
            changes[member.name] = _renamed(value, names)
    return replace(node, **changes)
