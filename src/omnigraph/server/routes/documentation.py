"""The description of the interface: OpenAPI, and a page that shows it and sends requests."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from html import escape
from pathlib import Path

from omnigraph.error_page import error_pages
from omnigraph.errors import NotFound
from omnigraph.server.api_description.openapi_bytes import openapi_bytes
from omnigraph.server.caller import Caller
from omnigraph.server.messages.answers import Content
from omnigraph.wire.server_state import ProtectedResourceDocument

_PAGE = Path(__file__).parents[1] / "static" / "docs.html"
_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)


def openapi(caller: Caller) -> Content:
    """Return the OpenAPI document of this server."""
    state = caller.state
    body = openapi_bytes(nested=state.default_graph is None, secured=state.authenticator is not None)
    return Content(body, "application/json; charset=utf-8")


def protected_resource(caller: Caller) -> ProtectedResourceDocument:
    """Return where a client gets a token for this server."""
    found = caller.state.authenticator
    issued = found.json_web_tokens if found is not None else None
    if issued is None or caller.resource is None:
        raise NotFound(
            "the server accepts no tokens of an issuer",
            code="no_issuer",
            hint="'server.auth.oidc' in the configuration names issuers",
        )
    return ProtectedResourceDocument(
        resource=caller.resource, authorization_servers=list(issued.issuers), bearer_methods_supported=["header"]
    )


def docs(caller: Caller) -> Content:
    """Return the page that shows the routes and sends requests; it loads nothing from elsewhere."""
    body, policy = _page()
    return Content(body, "text/html; charset=utf-8", {"Content-Security-Policy": policy})


def error_codes(caller: Caller) -> Content:
    """Return the page of error codes; the code is the fragment of its address."""
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
    return Content(_error_page(), "text/html; charset=utf-8", {"Content-Security-Policy": policy})


@cache
def _error_page() -> bytes:
    pages, words = error_pages()
    texts = {**pages, **{code: meaning for code, (_, meaning) in words.items()}}
    rows = "".join(
        f'<section id="{escape(code)}"><h2>{escape(code)}</h2><p>{escape(text)}</p></section>\n'
        for code, text in sorted(texts.items())
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>OmniGraph error codes</title><style>'
        "body{max-width:50rem;margin:2rem auto;padding:0 1rem;font:15px/1.5 system-ui,sans-serif}"
        "p{white-space:pre-wrap}h2{font-size:1rem}section:target{background:#ff03}</style>"
        f"<h1>Error codes</h1>\n{rows}</html>\n"
    ).encode()


@cache
def _page() -> tuple[bytes, str]:
    """Return the page, and a content security policy that permits its own script and requests to this server."""
    text = _PAGE.read_text(encoding="utf-8")
    script = _SCRIPT.search(text)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script.group(1).encode()).digest()).decode()
    policy = (
        "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; img-src data:; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    return text.encode(), policy
