"""The log lines of a start: the program, the graphs with their heads and policies, and the limits."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict

from omnigraph.errors import OmniGraphError
from omnigraph.graph_handle import context_of
from omnigraph.server.deployment.graphs import ServedGraph
from omnigraph.server.deployment.state import ServerState
from omnigraph.server.observability.log import log_event
from omnigraph.version import STORAGE_FORMAT, __version__
from omnigraph.versioning.model.manifest_objects import MAIN


def log_start(state: ServerState) -> None:
    """Log what the process serves, and how."""
    settings = state.settings
    log_event(
        "start",
        version=__version__,
        storage_format=STORAGE_FORMAT,
        python=platform.python_version(),
        pid=os.getpid(),
        bind=settings.bind,
        mode=state.mode,
        workers=settings.workers,
        tokens=state.token_source,
        actors=len(state.tokens.actors) if state.tokens is not None else 0,
        issuers=len(state.settings.auth.oidc),
        config_digest=state.digests.config,
        tokens_digest=state.digests.tokens,
        server_policy=state.policies.server.digest if state.policies.server is not None else None,
    )
    for graph in state.graphs.values():
        _log_graph(state, graph)
    log_event("limits", **asdict(settings.limits))


def _log_graph(state: ServerState, served: ServedGraph) -> None:
    uri, failure = served.public_uri, served.failure.message if served.failure is not None else None
    if served.graph is None:
        log_event("graph", "error", graph=served.graph_id, uri=uri, failure=failure)
        return
    policy = state.policies.graphs.get(served.graph_id)
    digest = policy.digest if policy is not None else None
    try:
        stored = context_of(served.graph).repository.state()
        head, stamp = stored.get_head(MAIN).commit_id, stored.manifest.stamp
    except OmniGraphError as error:
        log_event("graph", "error", graph=served.graph_id, uri=uri, failure=error.code)
        return
    log_event("graph", graph=served.graph_id, uri=uri, head=head, storage_stamp=stamp, policy=digest)
