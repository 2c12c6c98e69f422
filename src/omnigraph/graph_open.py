"""Create and open graphs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from omnigraph.graph import Graph
from omnigraph.http_address import is_server_url
from omnigraph.operations.graph_context import GraphContext, Place
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.versioning.write import recovery
from omnigraph.versioning.write.repository import Repository

if TYPE_CHECKING:
    from omnigraph.operations.authorization.access import Access
    from omnigraph.policy.decide import Policy

PolicySource: TypeAlias = "str | os.PathLike[str] | Policy | None"
"""A policy file, a compiled policy, or none."""


def init(
    uri: str | os.PathLike[str],
    schema: str | Path,
    *,
    actor: str | None = None,
    sync: bool = True,
    blob_sources: Sequence[Place] = (),
    memory: int | str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Graph:
    """Create a graph from a schema (text or path of a file) and open it; raise `GraphExists` if there is one.

    A graph in the folder of a cluster is created by `cluster apply` only.
    """
    from omnigraph.operations.cluster_graph import check_new_graph
    from omnigraph.operations.create import create_graph

    environ = os.environ if environ is None else environ
    check_new_graph(uri, environ)
    repository = create_graph(uri, schema, actor=actor, sync=sync, environ=environ)
    return Graph(GraphContext.of(repository, environ, blob_sources, memory), actor=actor)


def open(
    uri: str | os.PathLike[str],
    *,
    branch: str = MAIN,
    actor: str | None = None,
    read_only: bool = False,
    sync: bool = True,
    blob_sources: Sequence[Place] = (),
    memory: int | str | None = None,
    environ: Mapping[str, str] | None = None,
    policy: PolicySource = None,
    approximate: bool = False,
) -> Graph:
    """Open a graph; a writable one first recovers from crashed writers.

    `blob_sources` are the folders and `s3://` prefixes from which a write may copy the bytes of a Blob that is given as
    a reference; by default there are none.
    `memory` is the budget for caches, queries and builds: a size such as "4GiB", or a share of the memory of the
    control group or machine such as "50%", which is the default. Columns that do not fit it are read batch by batch; a
    query that needs more raises `LimitReached`.
    With a `policy`, given as a file or compiled, the graph does only what the policy allows its actor; without an
    actor, it does nothing.
    With `approximate`, every `nearest` that orders rows may use an approximate index, as with the word `approx`; bulk
    loads and `optimize` build the index.
    An `http://` or `https://` address connects to a server as `connect` does; the `RemoteGraph` that is returned has
    the methods of `Graph`.
    """
    if isinstance(uri, str) and is_server_url(uri):
        from omnigraph.client.connect import open_remote

        local = {
            "read_only": read_only,
            "blob_sources": tuple(blob_sources),
            "memory": memory,
            "policy": policy,
            "approximate": approximate,
        }
        return cast(Graph, open_remote(uri, branch=branch, actor=actor, environ=environ, local=local))
    access = None if policy is None else _access(policy, actor)
    environ = os.environ if environ is None else environ
    repository = Repository.open(uri, read_only=read_only, sync=sync, environ=environ)
    if not read_only:
        recovery.recover(repository)
    graph = Graph(GraphContext.of(repository, environ, blob_sources, memory, approximate=approximate), actor=actor)
    return (graph if access is None else graph.with_access(access)).on(branch)


def _access(policy: str | os.PathLike[str] | Policy, actor: str | None) -> Access:
    """Return the access of an actor by a policy, given as a file or compiled."""
    from omnigraph.operations.authorization.access import Access
    from omnigraph.policy.decide import Policy, load_policy

    return Access(policy if isinstance(policy, Policy) else load_policy(Path(policy)), actor)
