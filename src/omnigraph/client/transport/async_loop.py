"""The asynchronous loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterator
from contextlib import aclosing, suppress
from typing import Any, TypeVar

import httpcore2

from omnigraph.aio import WriteCancelled
from omnigraph.client.call import Call, Stream
from omnigraph.client.messages import Request, Response, joined
from omnigraph.client.transport.address import Settings
from omnigraph.client.transport.attempts import NETWORK_ERRORS, Attempts
from omnigraph.client.transport.network import POLL_S, check
from omnigraph.client.transport.processes import renew_in_child
from omnigraph.client.transport.session import Operation, Session
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import Cancelled, NotFound, OmniGraphError, OutcomeUnknown, Overloaded, RemoteError

R = TypeVar("R")
T = TypeVar("T")


class AsyncLoop:
    """Carries out calls over a pool of connections, in one event loop."""

    def __init__(self, settings: Settings) -> None:
        self.session = Session(settings)
        self._pool = self._new_pool()
        renew_in_child(self)

    def _new_pool(self) -> httpcore2.AsyncConnectionPool:
        options = self.session.pool_options
        proxy = self.session.proxy_options
        return httpcore2.AsyncHTTPProxy(**proxy, **options) if proxy else httpcore2.AsyncConnectionPool(**options)

    def renew(self) -> None:
        """Replace the connections that a process inherited from its parent."""
        self._pool = self._new_pool()

    async def close(self) -> None:
        """Close the connections."""
        self.session.closed = True
        await self._pool.aclose()

    async def run(self, call: Call[R]) -> R:
        """Return the value of a call."""
        try:
            request = next(call)
            while True:
                try:
                    response = await self.send(request)
                except OmniGraphError as error:
                    error.idempotency_key = request.key or error.idempotency_key
                    request = call.throw(error)
                else:
                    request = self.session.resume(call, request, response)
        except StopIteration as finished:
            value: R = finished.value
            return value

    async def iterate(self, stream: Stream[T]) -> AsyncGenerator[T, None]:
        """Yield the items of a stream."""
        request, decoder = stream.request, stream.decoder()
        opened: list[httpcore2.Response] = []

        async def attempt() -> Response:
            answer = await self._open(request, Operation())
            headers = self.session.headers_of(answer)
            if self.session.is_success(answer.status):
                opened.append(answer)
                return Response(answer.status, headers, b"")
            return self.session.completed(request, Response(answer.status, headers, await self._body(request, answer)))

        await Attempts(self.session.settings, request).run_async(attempt)
        async with aclosing(self._chunks(request, opened[0])) as chunks:
            async for chunk in chunks:
                for item in decoder.feed(chunk):
                    yield item
        decoder.finish()

    async def send(self, request: Request) -> Response:
        """Return the answer to a request; raise the error that it describes."""
        attempts = Attempts(self.session.settings, request)
        if request.key is not None:
            return await self._write(request, attempts)
        if request.cancel is None:
            return await attempts.run_async(lambda: self._attempt(request, Operation()))
        return await _until_cancelled(attempts.run_async(lambda: self._attempt(request, Operation())), request.cancel)

    async def _write(self, request: Request, attempts: Attempts) -> Response:
        """Return the answer to a write; if it is cancelled, stop it and wait for its outcome."""
        check(request.cancel)
        current = [Operation()]

        async def attempt() -> Response:
            operation = current[0] = Operation()
            try:
                return await self._attempt(request, operation)
            finally:
                # Between two attempts there is no work to stop.
                operation.sent = False

        task = asyncio.ensure_future(attempts.run_async(attempt))
        try:
            await self._finish(task, request.cancel, current)
        except asyncio.CancelledError:
            attempts.stopped = True
            return await self._cancelled(task, request, attempts, current)
        return task.result()

    async def _finish(
        self, task: asyncio.Future[Response], cancel: Cancellation | None, current: list[Operation]
    ) -> None:
        """Wait for the end of a write; another thread can cancel it."""
        while cancel is not None and not cancel.cancelled and not task.done():
            await asyncio.wait([task], timeout=POLL_S)
        if cancel is not None and not task.done() and current[0].sent:
            await self._stop(current[0])
        await asyncio.wait([task])

    async def _cancelled(
        self, task: asyncio.Future[Response], request: Request, attempts: Attempts, current: list[Operation]
    ) -> Response:
        """Return the answer to a write whose caller was cancelled, or raise `WriteCancelled`."""
        name = request.path.strip("/")
        if not current[0].sent and not task.done():
            task.cancel()
            await asyncio.wait([task])
            raise WriteCancelled(name, request.key, settled=not attempts.lost) from None
        try:
            if not task.done():
                await self._stop(current[0])
            await asyncio.wait([task])
        except asyncio.CancelledError:
            task.cancel()
            raise WriteCancelled(name, request.key, settled=False) from None
        try:
            return task.result()
        except Cancelled:
            raise WriteCancelled(name, request.key, settled=True) from None
        except OutcomeUnknown:
            raise WriteCancelled(name, request.key, settled=False) from None

    async def _stop(self, operation: Operation) -> None:
        """Stop the work of a write; if the server does not know it, the answer of the write tells the outcome."""
        with suppress(NotFound, RemoteError, Overloaded):
            await self.send(operation.stop_request())

    async def _attempt(self, request: Request, operation: Operation) -> Response:
        answer = await self._open(request, operation)
        body = await self._body(request, answer)
        return self.session.completed(request, Response(answer.status, self.session.headers_of(answer), body))

    async def _open(self, request: Request, operation: Operation) -> httpcore2.Response:
        body = operation.sending(request.body, request.cancel)
        sent = _sent(body) if isinstance(body, Iterator) else body
        http_request = self.session.http_request(request, sent, operation)
        try:
            return await self._pool.handle_async_request(http_request)
        except NETWORK_ERRORS as error:
            raise self.session.failure(error, request) from error

    async def _body(self, request: Request, answer: httpcore2.Response) -> bytes:
        read: list[bytes] = []
        size = 0
        try:
            async with aclosing(_stream(answer)) as chunks:
                async for chunk in chunks:
                    read.append(chunk)
                    size += len(chunk)
                    if self.session.has_enough(request, answer.status, size):
                        break
            return joined(read)
        except NETWORK_ERRORS as error:
            raise self.session.failure(error, request) from error
        finally:
            await answer.aclose()

    async def _chunks(self, request: Request, answer: httpcore2.Response) -> AsyncGenerator[bytes, None]:
        """Yield the body of an answer; the connection is closed when the iterator ends or is closed."""
        try:
            async for chunk in answer.aiter_stream():
                check(request.cancel)
                yield chunk
        except NETWORK_ERRORS as error:
            raise self.session.stream_error(error, request) from error
        finally:
            await answer.aclose()


async def _stream(answer: httpcore2.Response) -> AsyncGenerator[bytes, None]:
    async for chunk in answer.aiter_stream():
        yield chunk


async def _sent(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the chunks of a body, which a thread reads."""
    while (chunk := await asyncio.to_thread(next, chunks, None)) is not None:
        yield chunk


async def _until_cancelled(work: Coroutine[Any, Any, R], cancel: Cancellation) -> R:
    """Return the result of a call; close its connection if another thread cancels it."""
    task = asyncio.ensure_future(work)
    try:
        check(cancel)
        while not task.done():
            await asyncio.wait([task], timeout=POLL_S)
            if not task.done():
                check(cancel)
        return task.result()
    finally:
        task.cancel()
