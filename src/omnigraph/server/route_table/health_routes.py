"""Routes that need no token: liveness, readiness and version."""

from __future__ import annotations

from omnigraph.server.route import Route
from omnigraph.server.routes import health
from omnigraph.wire.graph_state import VersionDocument
from omnigraph.wire.server_state import HealthDocument, ReadyDocument

ROUTES: tuple[Route, ...] = (
    Route(
        name="health",
        method="GET",
        path="/healthz",
        handler=health.health,
        tag="health",
        summary="Tell that the process serves.",
        answer=HealthDocument,
        scope="public",
        lane=None,
        strict=False,
    ),
    Route(
        name="ready",
        method="GET",
        path="/readyz",
        handler=health.ready,
        tag="health",
        summary="Tell whether the process can do its work.",
        answer=ReadyDocument,
        scope="public",
        lane=None,
        strict=False,
        statuses=(503,),
    ),
    Route(
        name="version",
        method="GET",
        path="/version",
        handler=health.version,
        tag="health",
        summary="Return the version of the program and of its storage format.",
        answer=VersionDocument,
        scope="public",
        lane=None,
        strict=False,
    ),
)
