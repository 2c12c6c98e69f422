"""The service manager that started the process: messages to it (sd_notify) and the socket from it (LISTEN_FDS).

The protocols are those of systemd; other managers use them too. The variables are removed from the environment when
they are read, so that workers and commands do not take them for their own.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import MutableMapping

from omnigraph.errors import InputError

NOTIFY_SOCKET = "NOTIFY_SOCKET"
WATCHDOG = ("WATCHDOG_USEC", "WATCHDOG_PID")
LISTEN = ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES")
FIRST_SOCKET = 3
"""The file descriptor of the first socket that a service manager passes."""
_log = logging.getLogger(__name__)


class ServiceManager:
    """Tells a service manager when the process is ready, reloads, stops and is alive; without one, does nothing."""

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        self._address = address
        self._watchdog_s = watchdog_s if address is not None else None
        self._alive_at: float | None = None

    @classmethod
    def of(cls, environ: MutableMapping[str, str]) -> ServiceManager:
        """Return the service manager that the variables name, and remove the variables."""
        address = environ.pop(NOTIFY_SOCKET, None)
        interval, pid = (environ.pop(name, "") for name in WATCHDOG)
        is_ours = not pid or pid == str(os.getpid())
        watchdog_s = int(interval) / 1e6 if interval.isdecimal() and int(interval) > 0 and is_ours else None
        return cls(address or None, watchdog_s)

    def ready(self, status: str) -> None:
        """Tell that the process serves, after its start or after a reload."""
        self._send("READY=1", f"STATUS={status}")

    def reloading(self) -> None:
        """Tell that a reload begins; `ready` ends it."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.monotonic_ns() // 1000}", "STATUS=reloading")

    def stopping(self) -> None:
        """Tell that the shutdown begins."""
        self._send("STOPPING=1", "STATUS=stopping")

    def alive(self) -> None:
        """Tell that the process is alive, at most twice per interval of the watchdog."""
        now = time.monotonic()
        if self._watchdog_s is None or (self._alive_at is not None and now - self._alive_at < self._watchdog_s / 2):
            return
        self._alive_at = now
        self._send("WATCHDOG=1")

    async def keep_alive(self) -> None:
        """Call `alive` from the event loop until cancelled; a loop that hangs is restarted by the manager."""
        while self._watchdog_s is not None:
            self.alive()
            await asyncio.sleep(self._watchdog_s / 4)

    def _send(self, *assignments: str) -> None:
        if self._address is None:
            return
        # '@' stands for the null byte of an abstract address.
        address = f"\0{self._address[1:]}" if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.setblocking(False)
                manager.sendto("\n".join(assignments).encode(), address)
        except OSError as error:
            _log.warning("the service manager at '%s' cannot be told: %s", self._address, error)


def take_socket(environ: MutableMapping[str, str]) -> socket.socket | None:
    """Return the listening socket that a service manager passed to this process, or None; removes the variables."""
    number, pid, _ = (environ.pop(name, "") for name in LISTEN)
    if not number or pid != str(os.getpid()):
        return None
    if number != "1":
        raise InputError(
            f"the service manager passed {number} sockets; a server listens on one",
            code="cannot_bind",
            hint="give one ListenStream= in the socket unit",
        )
    return _listening_socket(FIRST_SOCKET)


def _listening_socket(descriptor: int) -> socket.socket:
    """Return an inherited socket; one that accepts no connections is refused."""
    try:
        listener = socket.socket(fileno=descriptor)
        listens = listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
    except OSError as error:
        raise _bad_socket(descriptor, error.strerror or str(error)) from None
    if listener.type != socket.SOCK_STREAM or not listens:
        listener.close()
        raise _bad_socket(descriptor, "it does not listen for streams")
    # A command that the server runs must not keep the address open.
    listener.set_inheritable(False)
    listener.setblocking(False)
    return listener


def _bad_socket(descriptor: int, reason: str) -> InputError:
    return InputError(
        f"file descriptor {descriptor} of the service manager cannot be used: {reason}",
        code="cannot_bind",
        hint="the socket unit needs ListenStream= and Accept=no",
    )
