"""Routes of the web explorer; they need no token and show nothing of a graph."""

from __future__ import annotations

from omnigraph.server.route import Route
from omnigraph.server.routes import explorer
from omnigraph.wire.server_state import ExplorerConfigDocument

ROUTES: tuple[Route, ...] = (
    Route(
        name="explorer",
        method="GET",
        path="/ui/",
        handler=explorer.explorer,
        tag="explorer",
        summary="Return the page of the web explorer.",
        scope="public",
        lane=None,
        forms=("html",),
        strict=False,
    ),
    Route(
        name="explorerAddress",
        method="GET",
        path="/ui",
        handler=explorer.explorer_address,
        tag="explorer",
        summary="Redirect to the page of the web explorer.",
        scope="public",
        lane=None,
        forms=("html",),
        strict=False,
        success=308,
    ),
    Route(
        name="explorerConfig",
        method="GET",
        path="/ui/config.json",
        handler=explorer.explorer_config,
        tag="explorer",
        summary="Return the settings of the web explorer.",
        answer=ExplorerConfigDocument,
        scope="public",
        lane=None,
        strict=False,
    ),
    Route(
        name="explorerFile",
        method="GET",
        path="/ui/{file}",
        handler=explorer.explorer_file,
        tag="explorer",
        summary="Return a file of the web explorer.",
        scope="public",
        lane=None,
        forms=("octets",),
        strict=False,
        statuses=(404,),
    ),
)
