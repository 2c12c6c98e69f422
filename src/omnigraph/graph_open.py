"""Create and open graphs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from omnigraph.graph import Graph
from omnigraph.operations.create import create_graph
from omnigraph.operations.graph_context import GraphContext, Place
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.write import recovery
from omnigraph.versioning.write.repository import Repository


def init(
    uri: str | os.PathLike[str],
    schema: str | Path,
    *,
    actor: str | None = None,
    sync: bool = True,
    blob_sources: Sequence[Place] = (),
    environ: Mapping[str, str] | None = None,
) -> Graph:
    """Create a graph from a schema (text or path of a file) and open it; raise `GraphExists` if there is one."""
    environ = os.environ if environ is None else environ
    repository = create_graph(uri, schema, actor=actor, sync=sync, environ=environ)
    return Graph(GraphContext.of(repository, environ, blob_sources), actor=actor)


def open(
    uri: str | os.PathLike[str],
    *,
    branch: str = MAIN,
    actor: str | None = None,
    read_only: bool = False,
    sync: bool = True,
    blob_sources: Sequence[Place] = (),
    environ: Mapping[str, str] | None = None,
) -> Graph:
    """Open a graph; a writable one first recovers from crashed writers.

    `blob_sources` are the folders and `s3://` prefixes from which a write may copy the bytes of a Blob that is given as
    a reference; by default there are none.
    """
    environ = os.environ if environ is None else environ
    repository = Repository.open(uri, read_only=read_only, sync=sync, environ=environ)
    if not read_only:
        recovery.recover(repository)
    graph = Graph(GraphContext.of(repository, environ, blob_sources), branch=branch, actor=actor)
    repository.state().get_head(branch)
    return graph
