"""The address of a server and the settings of its connections."""

from __future__ import annotations

import math
import os
import re
import ssl
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlsplit

from omnigraph.credentials import check_token
from omnigraph.errors import InputError
from omnigraph.http_address import normalized_url
from omnigraph.version import __version__

CONNECT_S = 10.0
_PORTS = {"http": 80, "https": 443}
_GRAPH = re.compile(r"/graphs/[^/]+$")
TIMEOUT_MAX_S = 30 * 86_400
_RETRIES_MAX = 1_000

Verify = bool | str | os.PathLike[str] | ssl.SSLContext
"""How certificates are verified: not (False), by default (True), by a file of authorities, or by a context."""


@dataclass(frozen=True)
class Address:
    """An origin and the paths of a server and of one of its graphs, without a slash at the end."""

    scheme: str
    host: str
    port: int
    graph_path: str
    server_path: str

    @classmethod
    def of(cls, url: str) -> Address:
        """Parse the address of a server, `https://host[/prefix][/graphs/ID]`; raise `InputError` if it is none."""
        if not isinstance(url, str):
            raise InputError(f"the address of a server is a str, not {type(url).__name__}", code="bad_server_address")
        parts = urlsplit(normalized_url(url.strip()))
        path = quote(parts.path, safe="/%")
        host = _ascii_host(parts.hostname or "")
        return cls(parts.scheme, host, parts.port or _PORTS[parts.scheme], path, _GRAPH.sub("", path))

    @property
    def authority(self) -> str:
        """The value of the header `Host`."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The address of the graph."""
        return f"{self.scheme}://{self.authority}{self.graph_path}"


@dataclass(frozen=True)
class Settings:
    """The settings of a connection."""

    address: Address
    token: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    retries: int = 4
    verify: Verify = True

    def __post_init__(self) -> None:
        if self.token is not None:
            _check_token(self.token)
        _check_timeout(self.timeout_s)
        _check_retries(self.retries)
        _check_verify(self.verify)

    @property
    def headers(self) -> list[tuple[bytes, bytes]]:
        """The headers of every request."""
        found = [("Host", self.address.authority), ("User-Agent", f"omnigraph-python/{__version__}")]
        if self.token is not None:
            found.append(("Authorization", f"Bearer {self.token}"))
        return [(name.encode(), value.encode()) for name, value in found]

    def ssl_context(self) -> ssl.SSLContext | None:
        """Return the TLS context; None for the default one."""
        if isinstance(self.verify, ssl.SSLContext):
            return self.verify
        if self.verify is True:
            return None
        if self.verify is not False:
            return _context_of(os.fspath(self.verify))
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context


def _ascii_host(host: str) -> str:
    try:
        return host.encode("idna").decode()
    except UnicodeError as error:
        raise InputError(f"'{host[:100]}' is not the name of a host: {error}", code="bad_server_address") from None


def _context_of(path: str) -> ssl.SSLContext:
    """Return the context that trusts the authorities of a file."""
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        # An error of OpenSSL is an OSError.
        raise InputError(
            f"the certificates of '{path}' cannot be read: {error.strerror or error}",
            code="unreadable_file",
            hint="name a file of certificates in PEM format",
        ) from None


def _check_token(token: Any) -> None:
    if not isinstance(token, str):
        raise InputError(f"the token is a str, not {type(token).__name__}", code="bad_token")
    check_token(token, "the token")


def _check_timeout(seconds: Any) -> None:
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)) or math.isnan(seconds):
        raise InputError(f"timeout_s is a number of seconds (got {seconds!r})")
    if not 0 < seconds <= TIMEOUT_MAX_S:
        raise InputError(f"timeout_s must be positive and at most {TIMEOUT_MAX_S} (got {seconds})")


def _check_retries(retries: Any) -> None:
    if type(retries) is not int or not 0 <= retries <= _RETRIES_MAX:
        raise InputError(f"retries is an integer from 0 to {_RETRIES_MAX} (got {retries!r})")


def _check_verify(verify: Any) -> None:
    """Raise `InputError` unless `verify` is a value that names a way to verify: no other value turns it off."""
    if not isinstance(verify, (bool, str, os.PathLike, ssl.SSLContext)) or verify == "":
        raise InputError(
            f"verify is True, False, the path of a file of certificates, or an ssl.SSLContext (got {verify!r})"
        )
