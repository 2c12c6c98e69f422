"""The address of the metrics: a small HTTP server in threads, beside the address of the graphs.

It answers `GET /metrics` and nothing else, without authentication; a firewall or a loopback address protects it.
"""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from omnigraph.errors import InputError
from omnigraph.server.observability.exposition import CONTENT_TYPE

PATH = "/metrics"
THREADS = 4
"""Scrapes that are answered at once."""
TIMEOUT_S = 10.0
_log = logging.getLogger(__name__)


class MetricsEndpoint:
    """Serves the metrics on an address of its own until it is closed."""

    def __init__(self, host: str, port: int, render: Callable[[], bytes]) -> None:
        try:
            self._server = _Server((host, port), render)
        except OSError as error:
            raise InputError(
                f"the address {host}:{port} of 'server.metrics.bind' cannot be used: {error.strerror}",
                code="cannot_bind",
                hint="choose another address or port",
            ) from error
        self._thread = threading.Thread(target=self._server.serve_forever, name="omnigraph-metrics-http", daemon=True)
        self._thread.start()

    @property
    def address(self) -> str:
        """Host and port."""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._thread.join(TIMEOUT_S)
        self._server.server_close()


class _Server(HTTPServer):
    allow_reuse_address = True
    request_queue_size = 16

    def __init__(self, address: tuple[str, int], render: Callable[[], bytes]) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.render = render
        self._pool = ThreadPoolExecutor(THREADS, "omnigraph-metrics-http")
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer a request in a thread."""
        self._pool.submit(self._answer, request, client_address)

    def _answer(self, request: Any, client_address: Any) -> None:
        try:
            self.finish_request(request, client_address)
        except Exception as error:
            _log.debug("a scrape failed: %s", type(error).__name__)
        finally:
            self.shutdown_request(request)

    def server_close(self) -> None:
        """Close the socket and end the threads."""
        super().server_close()
        self._pool.shutdown(wait=False, cancel_futures=True)


class _Handler(BaseHTTPRequestHandler):
    timeout = TIMEOUT_S
    server: _Server

    def do_GET(self) -> None:
        """Answer with the metrics."""
        if self.path.partition("?")[0] != PATH:
            self._send(HTTPStatus.NOT_FOUND, f"the metrics are at {PATH}\n".encode())
            return
        try:
            text = self.server.render()
        except Exception:
            _log.exception("the metrics cannot be shown")
            self._send(HTTPStatus.INTERNAL_SERVER_ERROR, b"the metrics cannot be shown\n")
            return
        self._send(HTTPStatus.OK, text)

    def _send(self, status: HTTPStatus, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE if status == HTTPStatus.OK else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def version_string(self) -> str:
        """Return the header `Server`, without versions."""
        return "omnigraph"

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: scrapes are no requests of users."""
