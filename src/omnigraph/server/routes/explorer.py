"""The web explorer: its page, its files and its settings."""

from __future__ import annotations

from http import HTTPStatus

from omnigraph import ui
from omnigraph.server.auth.oidc.issuers import Issuer
from omnigraph.server.caller import Caller
from omnigraph.server.errors import RequestFault
from omnigraph.server.messages.answers import Content
from omnigraph.server.messages.request import matches_none
from omnigraph.version import __version__
from omnigraph.wire.server_state import ExplorerConfigDocument, SignInDocument


def explorer(caller: Caller) -> Content:
    """Return the page; its address ends with a slash."""
    _check_enabled(caller)
    page = ui.render_page(tuple(issuer.origin for issuer in _issuers(caller)))
    if page is None:
        raise _not_found("the explorer is not built", hint="run 'make web' in the source tree")
    return Content(page[0], "text/html; charset=utf-8", page[1])


def explorer_address(caller: Caller) -> Content:
    """Redirect to the address of the page, which its relative addresses need."""
    _check_enabled(caller)
    headers = {"Location": "ui/", "Cache-Control": "no-store"}
    return Content(b"", "text/html; charset=utf-8", headers, status=HTTPStatus.PERMANENT_REDIRECT)


def explorer_file(caller: Caller, file: str) -> Content:
    """Return one file of the page."""
    _check_enabled(caller)
    found = ui.find_file(file)
    if found is None:
        raise _not_found(f"the explorer has no file '{file}'")
    if matches_none(caller.headers, found.etag):
        return Content(b"", found.media_type, found.headers, status=HTTPStatus.NOT_MODIFIED)
    if caller.negotiated.gzip:
        return Content(found.compressed, found.media_type, {**found.headers, "Content-Encoding": "gzip"})
    return Content(found.body, found.media_type, found.headers)


def explorer_config(caller: Caller) -> ExplorerConfigDocument:
    """Return what the page must know before it has a token."""
    _check_enabled(caller)
    state = caller.state
    return ExplorerConfigDocument(
        version=__version__,
        needs_token=state.authenticator is not None,
        single_graph=state.graph_list.single,
        default_graph=state.default_graph,
        read_only=all(graph.read_only for graph in state.graphs.values()),
        query_s=state.settings.limits.query_s,
        sign_in=[
            SignInDocument(issuer=each.issuer, client_id=each.client_id, scopes=list(each.scopes))
            for each in _issuers(caller)
            if each.client_id is not None
        ],
    )


def _issuers(caller: Caller) -> list[Issuer]:
    """Return the issuers at which the page can sign in."""
    authenticator = caller.state.authenticator
    issued = authenticator.json_web_tokens if authenticator is not None else None
    return [] if issued is None else [each for each in issued.issuers.values() if each.client_id is not None]


def _check_enabled(caller: Caller) -> None:
    if not caller.state.settings.ui:
        raise _not_found("this server runs without the explorer", hint="'server.ui' turns it on")


def _not_found(message: str, hint: str | None = None) -> RequestFault:
    return RequestFault(message, status=HTTPStatus.NOT_FOUND, code="no_such_path", hint=hint)
