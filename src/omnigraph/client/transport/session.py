"""The state that the handles of one connection share, and the HTTP form of a request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpcore2

from omnigraph.client.call import Call
from omnigraph.client.failures import unreadable
from omnigraph.client.messages import JSON, Chunks, Request, Response, path_of
from omnigraph.client.transport.address import CONNECT_S, TIMEOUT_MAX_S, Settings
from omnigraph.client.transport.attempts import (
    Retry,
    answer_failure,
    network_failure,
    no_free_connection,
    outcome_unknown,
    read_timeout,
)
from omnigraph.client.transport.network import check
from omnigraph.client.transport.proxy import proxy_options
from omnigraph.engine.exec.cancellation import Cancellation
from omnigraph.errors import InputError, OmniGraphError, RemoteError
from omnigraph.versioning.model.ids import new_ulid, system_clock

CONNECTIONS_MAX = 100
IDLE_CONNECTIONS_MAX = 20
IDLE_S = 60.0
"""Seconds after which an idle connection is closed, less than the 75 s of the server."""
_SUCCESS = range(200, 300)
ERROR_BYTES_MAX = 16 * 1024 * 1024
"""The part of an answer that is read if it is not a success."""
DOCUMENT_BYTES_MAX = 1024 * 1024 * 1024
"""The largest JSON document; tables, Blob values and streams have no limit."""


@dataclass
class Operation:
    """The work of one attempt on the server, by whose id it can be stopped."""

    id: str = field(default_factory=lambda: new_ulid(system_clock()))
    sent: bool = False
    """True if the whole request was sent; before that, the server does nothing."""

    def stop_request(self) -> Request:
        """Return the request that stops the work; a write whose publish has begun runs to its end."""
        return Request(method="DELETE", path=path_of("operations", self.id), scope="server", urgent=True)

    def sending(self, body: bytes | Chunks | None, cancel: Cancellation | None) -> bytes | Iterator[bytes] | None:
        """Return the body of the request, which a cancellation cuts off."""
        if callable(body):
            return self._chunks(body(), cancel)
        self.sent = True
        return body

    def _chunks(self, chunks: Iterator[bytes], cancel: Cancellation | None) -> Iterator[bytes]:
        for chunk in chunks:
            check(cancel)
            yield chunk
        self.sent = True


class Session:
    """Settings, the commit of the last own write, and whether the connection was closed."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.min_commit: str | None = None
        """The newest commit that a write through this connection made; later answers contain it."""
        self.closed = False
        self.write_sent = False
        """True if a write was sent, whether or not its answer arrived."""
        self._headers = settings.headers
        self._ssl_context = settings.ssl_context()

    def http_request(self, request: Request, body: Any, operation: Operation) -> httpcore2.Request:
        """Return the HTTP form of a request; its id is that of the operation."""
        if self.closed:
            raise _closed()
        self.write_sent = self.write_sent or request.key is not None
        address = self.settings.address
        path = address.graph_path if request.scope == "graph" else address.server_path
        url = httpcore2.URL(
            scheme=address.scheme.encode(),
            host=address.host.encode(),
            port=address.port,
            target=f"{path}{request.target}".encode("ascii"),
        )
        timeouts = {
            "connect": CONNECT_S,
            "read": read_timeout(self.settings, request),
            "pool": self.settings.timeout_s,
        }
        headers = [*self._headers, *self._request_headers(request)]
        if request.key is not None:
            headers.append((b"X-Request-Id", operation.id.encode()))
        return httpcore2.Request(request.method, url, headers=headers, content=body, extensions={"timeout": timeouts})

    def _request_headers(self, request: Request) -> list[tuple[bytes, bytes]]:
        found = {"Accept": request.accept, **request.headers}
        if request.key is not None:
            found["Idempotency-Key"] = request.key
        if request.timeout is not None:
            found["Omnigraph-Timeout-Ms"] = str(max(1, round(min(request.timeout, TIMEOUT_MAX_S) * 1000)))
        if self.min_commit is not None and request.scope == "graph":
            found["Omnigraph-Min-Commit"] = self.min_commit
        if isinstance(request.body, bytes):
            found["Content-Type"] = request.media_type
            found["Content-Length"] = str(len(request.body))
        elif request.body is not None:
            found["Content-Type"] = request.media_type
            found["Transfer-Encoding"] = "chunked"
        elif request.method != "GET":
            found["Content-Length"] = "0"
        return [(name.encode(), _header_value(name, value)) for name, value in found.items()]

    def resume(self, call: Call[Any], request: Request, response: Response) -> Request:
        """Hand an answer to a call and return its next request; the outcome of a write without a readable answer is
        not known.
        """
        try:
            return call.send(response)
        except RemoteError as error:
            raise self._unread(request, error) from error.__cause__

    def _unread(self, request: Request, error: RemoteError) -> OmniGraphError:
        """Return the error of a success that cannot be read."""
        return error if request.key is None else outcome_unknown(self.settings, request.key, error.message)

    def failure(self, error: Exception, request: Request) -> Retry | OmniGraphError:
        """Return the failure of a request without an answer."""
        if isinstance(error, httpcore2.PoolTimeout):
            return no_free_connection(self.settings, CONNECTIONS_MAX)
        return network_failure(error, self.settings, request)

    def stream_error(self, error: Exception, request: Request) -> OmniGraphError:
        """Return the error of an answer whose begin was handed out, so that it is not repeated."""
        if self.closed:
            return _closed()
        failure = network_failure(error, self.settings, request)
        return failure.error if isinstance(failure, Retry) else failure

    def headers_of(self, answer: httpcore2.Response) -> dict[str, str]:
        """Return the headers of an answer by their names in lower case."""
        return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in answer.headers}

    def is_success(self, status: int) -> bool:
        """Return True if an answer is a success."""
        return status in _SUCCESS

    def has_enough(self, request: Request, status: int, size: int) -> bool:
        """Return True if no more of an answer is read; raise `RemoteError` if a document is too large."""
        if not self.is_success(status):
            return size >= ERROR_BYTES_MAX
        if size > DOCUMENT_BYTES_MAX and request.accept.startswith(JSON):
            raise self._unread(request, unreadable(f"the document has more than {DOCUMENT_BYTES_MAX} bytes"))
        return False

    def completed(self, request: Request, response: Response) -> Response:
        """Return a complete answer; raise the failure that it describes."""
        if not self.is_success(response.status):
            raise answer_failure(response.status, response.headers, response.body, self.settings.address.url)
        if request.key is not None and response.commit_id is not None:
            self.min_commit = response.commit_id
        return response

    @property
    def pool_options(self) -> dict[str, Any]:
        """The options of a pool of connections."""
        return {
            "ssl_context": self._ssl_context,
            "max_connections": CONNECTIONS_MAX,
            "max_keepalive_connections": IDLE_CONNECTIONS_MAX,
            "keepalive_expiry": IDLE_S,
        }

    @property
    def proxy_options(self) -> dict[str, Any]:
        """The options of a pool of connections to a proxy; {} without one."""
        return proxy_options(self.settings.address)


def _closed() -> InputError:
    return InputError("the graph was closed", code="graph_closed", hint="connect again with connect or aconnect")


def _header_value(name: str, value: str) -> bytes:
    if not isinstance(value, str):
        raise InputError(f"the value of {name} is a str, not {type(value).__name__}", code="bad_http_request")
    try:
        return value.encode("ascii")
    except UnicodeEncodeError:
        raise InputError(
            f"the value of {name} must have only ASCII characters (got {value[:40]!r})", code="bad_http_request"
        ) from None
