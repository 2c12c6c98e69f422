"""The proxy that the environment names: `HTTP_PROXY`, `HTTPS_PROXY` and `NO_PROXY`."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

from omnigraph.client.transport.address import Address
from omnigraph.errors import InputError
from omnigraph.redaction import redact_uri

_PORTS = {"http": 80, "https": 443}


def proxy_options(address: Address) -> dict[str, Any]:
    """Return the options of a pool that connects through the proxy for an address; {} if there is none."""
    found = getproxies().get(address.scheme)
    # `NO_PROXY` names hosts, or hosts with ports.
    if not found or proxy_bypass(f"{address.host}:{address.port}") or proxy_bypass(address.host):
        return {}
    return _options(found if "://" in found else f"http://{found}", f"{address.scheme.upper()}_PROXY")


def _options(url: str, variable: str) -> dict[str, Any]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host or parts.scheme not in _PORTS:
        raise InputError(
            f"{variable} is not the address of an HTTP proxy (got '{redact_uri(url)}')",
            code="bad_config",
            hint=f"write {variable}=http://host:port, or name the server in NO_PROXY",
        )
    named = f"[{host}]" if ":" in host else host
    options: dict[str, Any] = {"proxy_url": f"{parts.scheme}://{named}:{port or _PORTS[parts.scheme]}"}
    if parts.username is not None:
        user, password = unquote(parts.username), unquote(parts.password or "")
        options["proxy_auth"] = (user.encode(), password.encode())
    return options
