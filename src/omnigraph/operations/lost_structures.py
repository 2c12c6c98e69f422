"""Repetition of operations that lost a search structure.

A structure on an object store that is read by range can be removed or damaged while an operation uses it. It is a
cache: the operation is repeated, and computes what it lacks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from omnigraph.engine.cache.ranged_arrays import StructureLost
from omnigraph.operations.graph_context import GraphContext

_TRIES = 16
"""An operation can use several structures, each of which is lost once."""

P = ParamSpec("P")
R = TypeVar("R")


def repeated_if_lost(
    operation: Callable[Concatenate[GraphContext, P], R],
) -> Callable[Concatenate[GraphContext, P], R]:
    """Repeat an operation, which publishes nothing before it fails, if it lost a structure."""

    @wraps(operation)
    def run(context: GraphContext, /, *args: P.args, **kwargs: P.kwargs) -> R:
        for _ in range(_TRIES):
            try:
                return operation(context, *args, **kwargs)
            except StructureLost:
                context.cache.forget()
        return operation(context, *args, **kwargs)

    return run
