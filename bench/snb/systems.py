"""The systems that answer the workload."""

from __future__ import annotations

from pathlib import Path

import omnigraph as og
from bench.snb.generate import Data
from bench.snb.workload import SCHEMA


def load(data: Data, folder: Path) -> og.Graph:
    """A new graph with all rows, as one commit."""
    graph = og.init(folder, SCHEMA, sync=False)
    graph.load({name: data.read(name) for name in data.names}, mode="append", engine="memory")
    return graph
