"""Calls and streams: what a loop carries out.

A call is a generator without I/O. It yields requests, receives their answers, and returns the value of a method of
`Graph`. If a request fails, the loop raises the error inside the call, which can handle it; an error that leaves the
call is the error of the method.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from omnigraph.client.messages import Request, Response

R = TypeVar("R")
T = TypeVar("T")

Call = Generator[Request, Response, R]
"""A call that returns an `R`."""


Calls = Generator[Call[R], R, None]
"""A sequence of calls: it yields each call and receives its value, which is an item of the sequence."""


class Decoder(Protocol[T]):
    """Items from the bytes of a body."""

    def feed(self, data: bytes) -> list[T]:
        """Return the items that these bytes complete."""

    def finish(self) -> None:
        """Raise `RemoteError` if the body is not complete."""


@dataclass(frozen=True, slots=True)
class Stream(Generic[T]):
    """A request whose answer is a stream of items, and the decoder of its body.

    A loop makes an iterator of it: blocking or asynchronous. A stream that was begun is not repeated.
    """

    request: Request
    decoder: Callable[[], Decoder[T]]
