"""Metadata of OAuth: where a client gets a token for this server (RFC 9728)."""

from __future__ import annotations

import re
from collections.abc import Mapping

from omnigraph.errors import Unauthorized

PATH = "/.well-known/oauth-protected-resource"
_HOST = re.compile(r"[A-Za-z0-9.\-]{1,253}(:[0-9]{1,5})?|\[[0-9A-Fa-f:.]{2,45}\](:[0-9]{1,5})?")


def resource_url(configured: str | None, scheme: str, headers: Mapping[str, str]) -> str | None:
    """Return the URL of the server: that of the settings, or that of the request; None if the request names none."""
    if configured is not None:
        return configured.rstrip("/")
    host = headers.get("host", "")
    return f"{scheme}://{host}" if _HOST.fullmatch(host) else None


def challenge(error: Unauthorized, resource: str | None) -> str:
    """Return the value of `WWW-Authenticate`: what is wrong with the token, and where the metadata is."""
    parts = [] if error.code == "missing_token" else ['error="invalid_token"']
    if resource is not None:
        parts.append(f'resource_metadata="{resource}{PATH}"')
    return "Bearer " + ", ".join(parts) if parts else "Bearer"
