"""The blocking loop."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import httpcore2

from omnigraph.client.call import Call, Stream
from omnigraph.client.messages import Request, Response, joined
from omnigraph.client.transport.address import Settings
from omnigraph.client.transport.attempts import NETWORK_ERRORS, Attempts
from omnigraph.client.transport.network import CancellableBackend, cancelled_by
from omnigraph.client.transport.processes import renew_in_child
from omnigraph.client.transport.session import Operation, Session
from omnigraph.errors import NotFound, OmniGraphError, Overloaded, RemoteError

R = TypeVar("R")
T = TypeVar("T")

READ_AT_ONCE_BYTES = 256 * 1024
"""A streamed answer up to this size is read at once, so that no connection is held."""


class SyncLoop:
    """Carries out calls over a pool of connections, in the thread of the caller. Several threads can use it."""

    def __init__(self, settings: Settings) -> None:
        self.session = Session(settings)
        self._pool = self._new_pool()
        renew_in_child(self)

    def _new_pool(self) -> httpcore2.ConnectionPool:
        options: dict[str, Any] = {**self.session.pool_options, "network_backend": CancellableBackend()}
        proxy = self.session.proxy_options
        return httpcore2.HTTPProxy(**proxy, **options) if proxy else httpcore2.ConnectionPool(**options)

    def renew(self) -> None:
        """Replace the connections that a process inherited from its parent."""
        self._pool = self._new_pool()

    def close(self) -> None:
        """Close the connections."""
        self.session.closed = True
        self._pool.close()

    def run(self, call: Call[R]) -> R:
        """Return the value of a call."""
        try:
            request = next(call)
            while True:
                try:
                    response = self.send(request)
                except OmniGraphError as error:
                    error.idempotency_key = request.key or error.idempotency_key
                    request = call.throw(error)
                else:
                    request = self.session.resume(call, request, response)
        except StopIteration as finished:
            value: R = finished.value
            return value

    def iterate(self, stream: Stream[T]) -> Iterator[T]:
        """Send the request of a stream now, and return an iterator of its items."""
        return _items(stream, self.send(stream.request))

    def send(self, request: Request) -> Response:
        """Return the answer to a request; raise the error that it describes."""
        return Attempts(self.session.settings, request).run(lambda: self._attempt(request))

    def _resend(self, request: Request) -> Iterator[bytes]:
        return self.send(request).chunks()

    def _attempt(self, request: Request) -> Response:
        operation = Operation()
        http_request = self.session.http_request(request, operation.sending(request.body, request.cancel), operation)
        stop = partial(self._stop, operation) if request.key is not None else None
        with cancelled_by(request.cancel, stop):
            try:
                answer = self._pool.handle_request(http_request)
            except NETWORK_ERRORS as error:
                raise self.session.failure(error, request) from error
            try:
                response = self._read(request, answer)
            except NETWORK_ERRORS as error:
                answer.close()
                raise self.session.failure(error, request) from error
            except BaseException:
                answer.close()
                raise
        return self.session.completed(request, response)

    def _stop(self, operation: Operation) -> None:
        """Stop the work of a write; if the server does not know it, the answer of the write tells the outcome."""
        with suppress(NotFound, RemoteError, Overloaded):
            self.send(operation.stop_request())

    def _read(self, request: Request, answer: httpcore2.Response) -> Response:
        """Read an answer, or the first part of a large answer that is streamed."""
        headers = self.session.headers_of(answer)
        chunks = answer.iter_stream()
        read: list[bytes] = []
        size = 0
        for chunk in chunks:
            read.append(chunk)
            size += len(chunk)
            if request.streamed and size >= READ_AT_ONCE_BYTES and self.session.is_success(answer.status):
                rest = self._rest(request, answer, chunks, self._pool)
                return Response(answer.status, headers, joined(read), rest, self._resend)
            if self.session.has_enough(request, answer.status, size):
                break
        answer.close()
        return Response(answer.status, headers, joined(read))

    def _rest(
        self, request: Request, answer: httpcore2.Response, chunks: Iterator[bytes], owner: httpcore2.ConnectionPool
    ) -> Iterator[bytes]:
        """Yield the rest of an answer; the connection is closed when the iterator ends or is dropped."""
        try:
            while True:
                self._check_owner(owner)
                with cancelled_by(request.cancel):
                    chunk = next(chunks, None)
                if chunk is None:
                    return
                yield chunk
        except NETWORK_ERRORS as error:
            raise self.session.stream_error(error, request) from error
        finally:
            if owner is self._pool:
                answer.close()

    def _check_owner(self, pool: httpcore2.ConnectionPool) -> None:
        """Refuse to read an answer on a connection that a process inherited."""
        if pool is not self._pool:
            raise RemoteError(
                "an answer is read by the process that requested it", code="connection_lost", hint="repeat the call"
            )


def _items(stream: Stream[T], response: Response) -> Iterator[T]:
    decoder = stream.decoder()
    for chunk in response.chunks():
        yield from decoder.feed(chunk)
    decoder.finish()
