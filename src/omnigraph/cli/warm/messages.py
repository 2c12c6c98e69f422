"""Messages between the program and a warm server: lists of byte strings, each with its length.

JSON would import regular expressions, which take as long as the rest of the client.
"""

from __future__ import annotations

READY, GO, REFUSED, EXIT, SIGNAL = b"ready", b"go", b"refused", b"exit", b"signal"
"""The first item of a message. A request is answered by `ready` or `refused`; `go` starts it; `exit` and `signal` end
it, and `signal` of the program is passed on."""

_LENGTH = 4
ITEMS_MAX, BYTES_MAX = 100_000, 16 * 1024 * 1024


class BadMessage(ValueError):
    """The other side sent no message, or no complete one."""


def encode(items: list[bytes]) -> bytes:
    """Return a message with its length."""
    body = b"".join(len(item).to_bytes(_LENGTH, "big") + item for item in items)
    return len(body).to_bytes(_LENGTH, "big") + body


def decode(body: bytes) -> list[bytes]:
    """Return the items of a message without its length."""
    items: list[bytes] = []
    at = 0
    while at < len(body):
        start = at + _LENGTH
        at = start + int.from_bytes(body[at:start], "big")
        if at > len(body) or len(items) >= ITEMS_MAX:
            raise BadMessage("the message is damaged")
        items.append(body[start:at])
    return items


class Reader:
    """Splits the bytes of a connection into messages."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, data: bytes) -> None:
        """Add received bytes."""
        self._data += data

    def next(self) -> list[bytes] | None:
        """Return the next message; None if it is not complete."""
        if len(self._data) < _LENGTH:
            return None
        end = _LENGTH + int.from_bytes(self._data[:_LENGTH], "big")
        if end > BYTES_MAX:
            raise BadMessage("the message is too long")
        if len(self._data) < end:
            return None
        body, self._data = self._data[_LENGTH:end], self._data[end:]
        return decode(body)
