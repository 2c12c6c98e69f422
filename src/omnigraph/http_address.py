"""Addresses of servers and of the graphs that they serve."""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from omnigraph.errors import InputError
from omnigraph.redaction import redact_uri

_PORTS = {"http": 80, "https": 443}
_NO_CONTROL = re.compile(r"[^\x00-\x20\x7f]+")
_EXAMPLE = "write an address such as https://graph.example.com or https://graph.example.com/graphs/ID"


def is_server_url(text: str) -> bool:
    """True if a text begins with `http://` or `https://`."""
    return text.lower().startswith(("http://", "https://"))


def normalized_url(url: str) -> str:
    """Return the base URL of a server in a comparable form.

    The scheme and the host are in lower case; a default port and trailing slashes are removed. A user part, a query, a
    fragment and dot segments are refused.
    """
    if not is_server_url(url) or _NO_CONTROL.fullmatch(url) is None:
        raise _bad(url, "is not an http or https address")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise _bad(url, "is not a valid address") from None
    if not host:
        raise _bad(url, "has no host")
    if port == 0:
        raise _bad(url, "has the port 0")
    if "@" in parts.netloc:
        raise _bad(url, "contains a user name or password", "give the token to 'omnigraph login NAME'")
    if "?" in url or "#" in url:
        raise _bad(url, "has a query or a fragment")
    if any(unquote(segment) in (".", "..") for segment in parts.path.split("/")):
        raise _bad(url, "contains a dot segment")
    named = f"[{host}]" if ":" in host else host
    authority = named if port in (None, _PORTS[parts.scheme]) else f"{named}:{port}"
    return urlunsplit((parts.scheme, authority, parts.path.rstrip("/"), "", ""))


def graph_url(base: str, graph_id: str) -> str:
    """Return the address of a graph of a server."""
    return f"{base}/graphs/{quote(graph_id, safe='')}"


def graph_of_url(url: str) -> str | None:
    """Return the graph id that an address names, or None."""
    segments = urlsplit(url).path.split("/")
    return unquote(segments[-1]) if len(segments) >= 3 and segments[-2] == "graphs" and segments[-1] else None


def lies_under(url: str, base: str) -> bool:
    """True if a normalized address equals another, or extends it by whole path segments."""
    return url == base or url.startswith(f"{base}/")


def _bad(url: str, problem: str, hint: str = _EXAMPLE) -> InputError:
    return InputError(f"'{redact_uri(url)}' {problem}", code="bad_server_address", hint=hint)
