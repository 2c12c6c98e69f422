"""`omnigraph-server --health`: ask the server of this container whether it serves, without further programs."""

from __future__ import annotations

import http.client
import socket
import ssl
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from omnigraph.config import find_config, with_env_file
from omnigraph.errors import OmniGraphError
from omnigraph.server.deployment.settings import ServerSettings, read_settings

PATH = "/healthz"
TIMEOUT_S = 4.0
"""Below the time limit of the health check of a container, 5 s."""
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 (compared, not bound)


def find_problem(environ: Mapping[str, str], bind: str) -> str | None:
    """Return why the server with these variables and this address does not answer; None if it is healthy."""
    try:
        config = find_config(None, environ)
        settings = read_settings(config, with_env_file(config, environ), {"bind": bind}).settings
        status = _ask(settings)
    except OmniGraphError as error:
        return error.message
    except (OSError, http.client.HTTPException) as error:
        return f"the server at '{bind}' does not answer: {str(error) or type(error).__name__}"
    return None if status in (None, http.HTTPStatus.OK) else f"'{PATH}' answers with status {status}"


def _ask(settings: ServerSettings) -> int | None:
    """Return the status of the health route; None if the server demands a certificate, where only the port is tried."""
    connection = _Connection(settings)
    with closing(connection):
        connection.connect()
        if settings.tls.client_ca is not None:
            return None
        connection.request("GET", PATH)
        return connection.getresponse().status


class _Connection(http.client.HTTPConnection):
    """A connection to the address of a server on this machine."""

    def __init__(self, settings: ServerSettings) -> None:
        host, port = ("localhost", 80) if settings.socket_path is not None else settings.address
        super().__init__(_ANY.get(host, host), port, timeout=TIMEOUT_S)
        self._path: Path | None = settings.socket_path
        self._is_tls = settings.tls.cert is not None and settings.tls.client_ca is None

    def connect(self) -> None:
        """Connect to the port or the Unix socket, with TLS if the server uses it."""
        if self._path is None:
            super().connect()
        else:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(TIMEOUT_S)
            self.sock.connect(str(self._path))
        if self._is_tls:
            # The certificate names the public address; the peer is a process of this machine.
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            self.sock = context.wrap_socket(self.sock)
