"""The address of a server and the settings of its connections."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from urllib.parse import SplitResult, urlsplit

from omnigraph.errors import InputError
from omnigraph.redaction import redact_uri
from omnigraph.version import __version__

CONNECT_S = 10.0
_PORTS = {"http": 80, "https": 443}
_GRAPH = re.compile(r"/graphs/[^/]+$")
_TOKEN = re.compile(r"[\x21-\x7e]{1,4096}")


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
        try:
            parts = urlsplit(url.strip())
            port = parts.port
        except ValueError as error:
            raise _invalid(url, str(error)) from None
        fault = _fault(parts)
        if fault is not None:
            raise _invalid(url, fault)
        path = parts.path.rstrip("/")
        host = (parts.hostname or "").encode("idna").decode()
        return cls(parts.scheme, host, port or _PORTS[parts.scheme], path, _GRAPH.sub("", path))

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
        if self.token is not None and not _TOKEN.fullmatch(self.token):
            raise InputError(
                "the token contains a space or another character that a header cannot have", code="bad_token"
            )
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


def is_server_address(uri: object) -> bool:
    """Return True if the address of a graph is that of a server."""
    return isinstance(uri, str) and uri.lstrip().lower().startswith(("http://", "https://"))


def _fault(parts: SplitResult) -> str | None:
    if parts.scheme not in _PORTS:
        return "it must begin with http:// or https://"
    if not parts.hostname:
        return "it names no host"
    if parts.username is not None or parts.password is not None:
        return "it contains a user or a password"
    if parts.query or parts.fragment:
        return "it has a query or a fragment"
    return None


def _invalid(url: str, fault: str) -> InputError:
    return InputError(
        f"'{redact_uri(url)}' is not the address of a server: {fault}",
        code="bad_server_address",
        hint="give an address such as https://graph.example.org/graphs/ID, and the token as a parameter",
    )
