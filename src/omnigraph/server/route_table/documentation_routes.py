"""Routes that describe the interface; they need no token."""

from __future__ import annotations

from omnigraph.server.auth.oidc import metadata
from omnigraph.server.route import Route
from omnigraph.server.routes import documentation
from omnigraph.wire.server_state import ProtectedResourceDocument

ROUTES: tuple[Route, ...] = (
    Route(
        name="openapi",
        method="GET",
        path="/openapi.json",
        handler=documentation.openapi,
        tag="documentation",
        summary="Return the description of this interface.",
        scope="public",
        lane=None,
        strict=False,
    ),
    Route(
        name="protectedResource",
        method="GET",
        path=metadata.PATH,
        handler=documentation.protected_resource,
        tag="documentation",
        summary="Return the metadata of OAuth: where a client gets a token for this server (RFC 9728).",
        answer=ProtectedResourceDocument,
        scope="public",
        lane=None,
        statuses=(404,),
        strict=False,
    ),
    Route(
        name="docs",
        method="GET",
        path="/docs",
        handler=documentation.docs,
        tag="documentation",
        summary="Return a page that shows the routes and sends requests.",
        scope="public",
        lane=None,
        forms=("html",),
        strict=False,
    ),
    Route(
        name="errorCodes",
        method="GET",
        path="/docs/errors",
        handler=documentation.error_codes,
        tag="documentation",
        summary="Return the page that explains every error code.",
        scope="public",
        lane=None,
        forms=("html",),
        strict=False,
    ),
)
