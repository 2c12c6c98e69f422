"""OmniGraph: a typed property graph database with branches, vector search and reviewed merges.

    import omnigraph as og

    graph = og.init("team.omni", schema=Path("team.pg"))
    graph = og.open("team.omni", branch="main", actor="act-ana")

Heavy dependencies such as Lance are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph import errors
from omnigraph.version import __version__

if TYPE_CHECKING:
    from omnigraph import spark
    from omnigraph.aio import AsyncGraph, aopen
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.graph import Graph
    from omnigraph.graph_open import init, open
    from omnigraph.versioning.model.snapshot import Snapshot

__all__ = [
    "AsyncGraph",
    "Cancellation",
    "Graph",
    "Result",
    "Snapshot",
    "__version__",
    "aopen",
    "errors",
    "init",
    "open",
    "spark",
]

_HOMES = {
    "AsyncGraph": "omnigraph.aio",
    "aopen": "omnigraph.aio",
    "Cancellation": "omnigraph.engine.exec.cancellation",
    "Graph": "omnigraph.graph",
    "Result": "omnigraph.engine.result.result",
    "init": "omnigraph.graph_open",
    "open": "omnigraph.graph_open",
    "Snapshot": "omnigraph.versioning.model.snapshot",
    "spark": "omnigraph.spark",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'omnigraph' has no attribute '{name}'")
    from importlib import import_module  # noqa: PLC0415

    value = import_module(home) if home == f"omnigraph.{name}" else getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
