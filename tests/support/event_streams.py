"""Event streams of a server, as their clients read them."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from support.server import ServerUnderTest


class EventStream:
    """The events of one connection."""

    def __init__(self, client: socket.socket) -> None:
        self._file = client.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        while self._file.readline().strip():
            pass

    def close(self) -> None:
        """Close the connection, together with its socket."""
        self._file.close()

    def blocks(self) -> Iterator[dict[str, str]]:
        """Yield events and comments; the last one of a closed stream is followed by nothing."""
        block: dict[str, str] = {}
        while size := int(self._file.readline().strip() or b"0", 16):
            chunk = self._file.read(size).decode()
            self._file.readline()
            for line in chunk.splitlines():
                if line:
                    name, _, value = line.partition(": " if not line.startswith(":") else ":")
                    block[name or "comment"] = value
                elif block:
                    yield block
                    block = {}


@contextmanager
def stream(
    server: ServerUnderTest, query: str = "", *, path: str = "/changes/stream", **headers: str
) -> Iterator[EventStream]:
    """Connect to a stream; a header is named with `_` for `-`."""
    sent = {"Host": "localhost", **{name.replace("_", "-"): value for name, value in headers.items()}}
    if server.token is not None:
        sent["Authorization"] = f"Bearer {server.token}"
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
        client.sendall(f"GET {path}{query} HTTP/1.1\r\n{head}\r\n".encode())
        events = EventStream(client)
        try:
            yield events
        finally:
            events.close()
