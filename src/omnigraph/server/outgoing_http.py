"""Requests of the server to other hosts: one exchange with a time limit, to an address that was checked.

The name of the host is resolved once per request, every address that it has is checked, and the connection is opened to
one of these addresses. A name that resolves to another address a moment later (DNS rebinding) has no effect. Redirects
are not followed: a redirect is an answer with status 3xx. Proxies of the environment are not used.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from http.client import HTTPConnection, HTTPException
from typing import Literal
from urllib.parse import urlsplit

from omnigraph.http_time_limit import response_until

Reach = Literal["public", "private", "any"]
"""The addresses that a request may reach: public ones, also those of a private network, or all."""
Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Networks = tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]


def _networks(text: str) -> Networks:
    return tuple(map(ipaddress.ip_network, text.split()))


_PRIVATE = _networks("127.0.0.0/8 10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 ::1/128 fc00::/7")
"""Addresses of this machine and of private networks."""
_PLATFORM = _networks("168.63.129.16/32 fd00:ec2::/32 fd20:ce::254/128 fd00:c1::/32 fd00:42::42/128")
"""Metadata and control services of Azure, Amazon, Google, Oracle and Scaleway at addresses that are otherwise public or
private. Others are in special-purpose blocks: 169.254.169.254, 169.254.170.2, 100.100.100.200 and 192.0.0.192.
"""
_SPECIAL = _networks(
    "192.0.0.0/24 192.31.196.0/24 192.52.193.0/24 192.88.99.0/24 192.175.48.0/24 224.0.0.0/4 240.0.0.0/4 "
    "2001::/23 2001:db8::/32 2002::/16 2620:4f:8000::/48 3fff::/20"
)
"""Blocks of the IANA special-purpose address registries (RFC 6890) that a version of Python calls global, at least in
part. Teredo is in 2001::/23, 6to4 is 2002::/16.
"""
_UNICAST = ipaddress.ip_network("2000::/3")
"""The IPv6 addresses that IANA assigns to networks. Outside are compatible, translated and site-local addresses."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class OutgoingFailed(Exception):
    """A request got no answer; the text names the reason, and neither path nor query of the URL."""

    def __init__(self, text: str, *, refused: bool = False) -> None:
        super().__init__(text)
        self.refused = refused
        """True if the address is not permitted; nothing was sent."""


@dataclass(frozen=True, slots=True)
class OutgoingAnswer:
    """An answer with any status."""

    status: int
    body: bytes
    headers: Mapping[str, str]
    """Names in lower case."""


def url_problem(url: str, *, plain: bool) -> str | None:
    """Return why a URL cannot be requested; None if it can. `plain` permits http."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "is not a URL"
    if parts.scheme not in ("https", "http"):
        return "must begin with https://"
    if parts.scheme == "http" and not plain:
        return "must begin with https://, because the network could read it"
    if not host or port == 0:
        return "names no host"
    if parts.username is not None or parts.password is not None:
        return "must not contain a user or a password"
    if not url.isascii() or not url.isprintable() or " " in url or parts.fragment:
        return "contains characters that a URL cannot have"
    return None


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes | None = None,
    timeout_s: float,
    answer_max: int,
    reach: Reach,
) -> OutgoingAnswer:
    """Send one request and return its answer; `OutgoingFailed` if there is none.

    The time limit is for everything from the resolution of the name to the last byte. An answer that is longer than
    `answer_max` bytes is a failure.
    """
    ends = time.monotonic() + timeout_s
    parts = urlsplit(url)
    host = parts.hostname or ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        address = _choose(host, port, timeout_s, reach)
        context = _tls() if parts.scheme == "https" else None
        connection = _PinnedConnection(host, port, address, context, ends)
        try:
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            connection.request(method, path, body, {**headers, "Connection": "close"})
            with connection.getresponse() as response:
                data = response.read(answer_max + 1)
                if len(data) > answer_max:
                    raise OutgoingFailed(f"'{host}' answered with more than {answer_max:,} bytes")
                found = {name.lower(): value for name, value in response.getheaders()}
                return OutgoingAnswer(response.status, data, found)
        finally:
            connection.close()
    except TimeoutError:
        raise OutgoingFailed(f"'{host}' did not answer within {timeout_s:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise OutgoingFailed(f"the certificate of '{host}' is not valid: {error.verify_message}") from None
    except OSError as error:
        raise OutgoingFailed(f"no connection to '{host}': {error.strerror or type(error).__name__}") from None
    except (HTTPException, ValueError):
        raise OutgoingFailed(f"'{host}' does not answer in HTTP") from None


class _PinnedConnection(HTTPConnection):
    """A connection to a given address; the name of the host is that of the certificate and of the header `Host`."""

    def __init__(self, host: str, port: int, address: str, context: ssl.SSLContext | None, ends: float) -> None:
        super().__init__(host, port)
        if context is not None:
            self.default_port = 443
        self._address = address
        self._tls_context = context
        self._ends = ends
        self.response_class = response_until(ends)

    def connect(self) -> None:
        """Open the connection to the address that was checked."""
        self.sock = socket.create_connection((self._address, self.port), self._left_s())
        if self._tls_context is not None:
            self.sock.settimeout(self._left_s())
            self.sock = self._tls_context.wrap_socket(self.sock, server_hostname=self.host)
        self.sock.settimeout(self._left_s())

    def _left_s(self) -> float:
        left_s = self._ends - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s


def _choose(host: str, port: int, timeout_s: float, reach: Reach) -> str:
    """Return an address of a host; every address that the name has must be permitted."""
    found = _resolve(host, port, timeout_s)
    for text in found:
        if not is_permitted(text, reach):
            raise OutgoingFailed(f"'{host}' has the address {text}, which is not permitted", refused=True)
    return found[0]


def is_permitted(text: str, reach: Reach) -> bool:
    """Return True if a request may reach an address: a public one, or with `private` also one of a private network."""
    if reach == "any":
        return True
    address = _destination(ipaddress.ip_address(text.partition("%")[0]))
    if _is_in(address, _PLATFORM):
        return False
    if _is_in(address, _PRIVATE):
        return reach == "private"
    return address.is_global and not _is_in(address, _SPECIAL) and (address.version == 4 or address in _UNICAST)


def _is_in(address: Address, networks: Networks) -> bool:
    return any(address in network for network in networks)


def _destination(address: Address) -> Address:
    """Return the IPv4 address that a mapped IPv6 address, or one that NAT64 translates, leads to; else the address."""
    if isinstance(address, ipaddress.IPv6Address) and (address.ipv4_mapped is not None or address in _NAT64):
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def _resolve(host: str, port: int, timeout_s: float) -> list[str]:
    """Return the addresses of a host. A lookup cannot be interrupted, so it runs in a thread of its own."""
    outcome: list[list[str] | OSError] = []
    done = threading.Event()

    def look_up() -> None:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            outcome.append([str(entry[4][0]) for entry in found])
        except (OSError, UnicodeError) as error:
            outcome.append(error if isinstance(error, OSError) else OSError(str(error)))
        finally:
            done.set()

    threading.Thread(target=look_up, name="omnigraph-resolve", daemon=True).start()
    if not done.wait(timeout_s):
        raise TimeoutError
    result = outcome[0]
    if isinstance(result, OSError):
        raise OutgoingFailed(f"the name '{host}' cannot be resolved")
    return result


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()
