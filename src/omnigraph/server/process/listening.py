"""The listening socket: a TCP address or a Unix socket."""

from __future__ import annotations

import shlex
import socket
import stat
from pathlib import Path

from omnigraph.errors import InputError
from omnigraph.server.deployment.settings import UNIX, ServerSettings

VARIABLE = "OMNIGRAPH_LISTEN_ADDR"
BACKLOG = 2048
_SOCKET_MODE = 0o600
_OTHER_FILES = 1024
"""Open files of a process beside its connections: tables, caches, logs."""


def bind(settings: ServerSettings) -> socket.socket:
    """Return the listening socket; port 0 takes any free port."""
    path = settings.socket_path
    if path is not None:
        return _bind_unix(path)
    host, port = settings.address
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise _cannot_bind(settings.bind, error) from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _cannot_bind(settings.bind, error) from None
    listener.setblocking(False)
    return listener


def _bind_unix(path: Path) -> socket.socket:
    """Bind a Unix socket that only the owner can use; a socket that no process listens on is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        if path.exists() and _is_abandoned(path):
            path.unlink()
        # A socket takes connections from `listen` on, so its mode is set before.
        listener.bind(str(path))
        path.chmod(_SOCKET_MODE)
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise _cannot_bind(f"{UNIX}{path}", error) from None
    listener.setblocking(False)
    return listener


def _is_abandoned(path: Path) -> bool:
    """True if a path is a socket on which no process listens."""
    if not stat.S_ISSOCK(path.stat().st_mode):
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False


def _cannot_bind(address: str, error: OSError) -> InputError:
    return InputError(
        f"cannot listen on '{address}': {error.strerror or error}",
        code="cannot_bind",
        hint="stop the process that uses the address, or give another --bind (port 0: any free port)",
    )


def raise_file_limit(connections: int) -> str | None:
    """Raise the limit of open files of the process for its connections; returns a warning if that is not possible."""
    try:
        import resource  # noqa: PLC0415 (Unix only)
    except ImportError:
        return None
    needed = connections + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return None
    possible = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (possible, hard))
    if possible == needed:
        return None
    return f"the limit of open files is {possible}, but 'server.limits.connections' of {connections} needs {needed}"


def listen_address(listener: socket.socket) -> str:
    """Return the address of a listening socket, with the real port."""
    name = listener.getsockname()
    if listener.family == socket.AF_UNIX:
        # An abstract address, which only a service manager creates, begins with a null byte.
        return f"{UNIX}@{name[1:].decode()}" if isinstance(name, bytes) else f"{UNIX}{name}"
    host, port = name[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def remove_socket_file(settings: ServerSettings) -> None:
    """Remove the file of the Unix socket."""
    if settings.socket_path is not None:
        settings.socket_path.unlink(missing_ok=True)


def curl_command(address: str, token: str, certificate: Path | None) -> str:
    """Return a command that reads the tables of the graph from a server."""
    scheme = "https" if certificate is not None else "http"
    options = f"-H 'Authorization: Bearer {token}'"
    if certificate is not None:
        options += f" --cacert {shlex.quote(str(certificate))}"
    if address.startswith(UNIX):
        options += f" --unix-socket {shlex.quote(address.removeprefix(UNIX))}"
        address = "localhost"
    return f"curl {options} {scheme}://{address}/snapshot"
