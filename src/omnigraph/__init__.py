"""OmniGraph: a typed property graph database with branches, vector search and reviewed merges.

    import omnigraph as og

    graph = og.init("team.omni", schema=Path("team.pg"))
    graph = og.open("team.omni", branch="main", actor="act-ana")
    graph = og.connect("https://graph.example.org", token="og_…")

Heavy dependencies such as Lance are imported on first use.
"""

from __future__ import annotations

from omnigraph.version import __version__

TYPE_CHECKING = False  # `typing` is slow to import; type checkers know this name
if TYPE_CHECKING:
    from typing import Any

    from omnigraph import errors, spark
    from omnigraph.aio import AsyncGraph, aopen
    from omnigraph.client.async_remote_graph import AsyncRemoteGraph
    from omnigraph.client.connect import aconnect, connect
    from omnigraph.client.remote_graph import RemoteGraph
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.graph import Graph
    from omnigraph.graph_open import init, open
    from omnigraph.versioning.model.snapshot import Snapshot

__all__ = [
    "AsyncGraph",
    "AsyncRemoteGraph",
    "Cancellation",
    "Graph",
    "RemoteGraph",
    "Result",
    "Snapshot",
    "__version__",
    "aconnect",
    "aopen",
    "connect",
    "errors",
    "init",
    "open",
    "spark",
]

_HOMES = {
    "AsyncGraph": "omnigraph.aio",
    "AsyncRemoteGraph": "omnigraph.client.async_remote_graph",
    "RemoteGraph": "omnigraph.client.remote_graph",
    "aconnect": "omnigraph.client.connect",
    "aopen": "omnigraph.aio",
    "connect": "omnigraph.client.connect",
    "Cancellation": "omnigraph.engine.exec.cancellation",
    "Graph": "omnigraph.graph",
    "Result": "omnigraph.engine.result.result",
    "init": "omnigraph.graph_open",
    "open": "omnigraph.graph_open",
    "Snapshot": "omnigraph.versioning.model.snapshot",
    "errors": "omnigraph.errors",
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
