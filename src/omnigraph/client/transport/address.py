"""The address of a server and the settings of its connections."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import quote, urlsplit

from omnigraph.credentials import check_token
from omnigraph.errors import InputError
from omnigraph.http_address import normalized_url
from omnigraph.version import __version__

CONNECT_S = 10.0
_PORTS = {"http": 80, "https": 443}
_GRAPH = re.compile(r"/graphs/[^/]+$")


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
        parts = urlsplit(normalized_url(url.strip()))
        path = quote(parts.path, safe="/%")
        host = (parts.hostname or "").encode("idna").decode()
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
    """The settings of a connection. `verify` is False, True, the path of a file of certificates, or a context."""

    address: Address
    token: str | None = field(default=None, repr=False)
    timeout_s: float = 60.0
    retries: int = 4
    verify: bool | str | ssl.SSLContext = True

    def __post_init__(self) -> None:
        if self.token is not None:
            check_token(self.token, "the token")
        if self.timeout_s <= 0:
            raise InputError(f"timeout_s must be positive (got {self.timeout_s})")
        if self.retries < 0:
            raise InputError(f"retries must not be negative (got {self.retries})")

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
        if isinstance(self.verify, str):
            return ssl.create_default_context(cafile=self.verify)
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context
