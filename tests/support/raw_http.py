"""Raw HTTP over a socket: what a client library would not send."""

from __future__ import annotations

import re
import socket

from support.server import WAIT_S

_STATUS = re.compile(rb"HTTP/1\.[01] (\d{3})")


def exchange(port: int, *parts: bytes) -> bytes:
    """Send bytes and return everything that the server answers until it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=WAIT_S) as connection:
        received = b""
        try:
            for part in parts:
                connection.sendall(part)
            while chunk := connection.recv(65536):
                received += chunk
        except ConnectionError:
            # The server closes a connection that it refuses, also while bytes are on the way.
            return received
        return received


def statuses(answer: bytes) -> list[int]:
    """Return the statuses of the responses in an answer."""
    return [int(status) for status in _STATUS.findall(answer)]
