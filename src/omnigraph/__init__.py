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
    from omnigraph.codegen.python_models import models_of
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.engine.exec.context import Limits
    from omnigraph.graph import Graph
    from omnigraph.graph_frames import from_frames
    from omnigraph.graph_open import init, open
    from omnigraph.models.base import Edge, Node
    from omnigraph.models.marks import (
        F32,
        F64,
        I32,
        I64,
        U32,
        U64,
        Card,
        Check,
        Ends,
        Implements,
        Index,
        Inherited,
        Key,
        Mark,
        Mixin,
        Named,
        Note,
        Range,
        Renamed,
        Unique,
        Valid,
        Vector,
    )
    from omnigraph.models.schema_text import schema_of
    from omnigraph.operations.inference.draft import SchemaDraft
    from omnigraph.operations.inference.infer import edges, infer_schema
    from omnigraph.operations.memory_graphs import from_networkx
    from omnigraph.versioning.model.snapshot import Snapshot

__all__ = [
    "F32",
    "F64",
    "I32",
    "I64",
    "U32",
    "U64",
    "AsyncGraph",
    "AsyncRemoteGraph",
    "Cancellation",
    "Card",
    "Check",
    "Edge",
    "Ends",
    "Graph",
    "Implements",
    "Index",
    "Inherited",
    "Key",
    "Limits",
    "Mark",
    "Mixin",
    "Named",
    "Node",
    "Note",
    "Range",
    "RemoteGraph",
    "Renamed",
    "Result",
    "SchemaDraft",
    "Snapshot",
    "Unique",
    "Valid",
    "Vector",
    "__version__",
    "aconnect",
    "aopen",
    "connect",
    "edges",
    "errors",
    "from_frames",
    "from_networkx",
    "infer_schema",
    "init",
    "models_of",
    "open",
    "schema_of",
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
    "Limits": "omnigraph.engine.exec.context",
    "Result": "omnigraph.engine.result.result",
    "SchemaDraft": "omnigraph.operations.inference.draft",
    "edges": "omnigraph.operations.inference.infer",
    "from_frames": "omnigraph.graph_frames",
    "from_networkx": "omnigraph.operations.memory_graphs",
    "infer_schema": "omnigraph.operations.inference.infer",
    "init": "omnigraph.graph_open",
    "open": "omnigraph.graph_open",
    "Snapshot": "omnigraph.versioning.model.snapshot",
    "errors": "omnigraph.errors",
    "load_ipython_extension": "omnigraph.notebook.magics",
    "Edge": "omnigraph.models.base",
    "Node": "omnigraph.models.base",
    "models_of": "omnigraph.codegen.python_models",
    "schema_of": "omnigraph.models.schema_text",
    **dict.fromkeys(
        (
            "Card",
            "Check",
            "Ends",
            "F32",
            "F64",
            "I32",
            "I64",
            "Implements",
            "Index",
            "Inherited",
            "Key",
            "Mark",
            "Mixin",
            "Named",
            "Note",
            "Range",
            "Renamed",
            "U32",
            "U64",
            "Unique",
            "Valid",
            "Vector",
        ),
        "omnigraph.models.marks",
    ),
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
