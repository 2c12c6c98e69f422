"""The side of the program: pass the command line to a warm server, if there is one that can run it.

The module imports nothing of the package but `sockets` and `messages`: its imports are most of its time. If anything
prevents the use of a server before the command has started, the program runs the command itself.
"""

from __future__ import annotations

import os
import signal
import socket
import sys

from omnigraph.cli.warm import messages, sockets

COMMANDS = frozenset(
    {
        "blame", "blob", "branch", "change", "changes", "check", "commit", "diff", "explain", "history", "lint", "log",
        "mutate", "query", "read", "revert", "schema", "snapshot", "status", "tag",
    }
)  # fmt: skip
"""Commands that a warm server runs. Others are interactive, start servers, or may use Spark."""

_ANSWER_S = 1.0
"""A server that does not answer in this time is busy or broken."""


def try_run(arguments: list[str]) -> int | None:
    """Run a command line in a warm server and return the exit code; None if the program must run it."""
    if not _is_eligible(arguments):
        return None
    folder = sockets.find_folder(os.environ)
    for path in sockets.find_sockets(folder) if folder is not None else ():
        connection = _connect(path)
        if connection is not None:
            with connection:
                return _Call(connection).run(arguments)
    return None


def _is_eligible(arguments: list[str]) -> bool:
    """True if a server can run a command as this process would."""
    if not sockets.is_offered() or not arguments or arguments[0] not in COMMANDS:
        return False
    environ = os.environ
    if environ.get(sockets.SWITCH, "").strip().lower() in ("off", "0", "false", "no"):
        return False
    if environ.get("_OMNIGRAPH_COMPLETE") or environ.get("OMNIGRAPH_DEBUG") == "1":
        return False
    if any(word.startswith("--engine") for word in arguments):
        # Spark passes objects of pandas to pyarrow, which a server has imported without pandas.
        return False
    return _has_streams() and not _may_page()


def _has_streams() -> bool:
    """True if the three standard streams are open."""
    try:
        for number in range(3):
            os.fstat(number)
    except OSError:
        return False
    return True


def _may_page() -> bool:
    """True if long output starts a pager, which needs the terminal as its controlling one."""
    named = os.environ.get("OMNIGRAPH_PAGER", os.environ.get("PAGER", "less")).strip()
    return os.isatty(1) and named not in ("", "cat")


def _connect(path: str) -> socket.socket | None:
    """Connect to a server of the same user; None if there is none."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(_ANSWER_S)
    try:
        connection.connect(path)
        if sockets.is_own_peer(connection):
            return connection
    except OSError:
        # The server ended without removing its socket.
        pass
    connection.close()
    return None


class _Call:
    """One command on a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = messages.Reader()

    def run(self, arguments: list[str]) -> int | None:
        try:
            if not self._offer(arguments):
                return None
            self._connection.settimeout(None)
            # From here on the command runs once, whatever happens to the connection.
            self._forward_interrupts()
            self._connection.sendall(messages.encode([messages.GO]))
        except (OSError, messages.BadMessage):
            return None
        return self._outcome()

    def _offer(self, arguments: list[str]) -> bool:
        """Send the request and the streams; return True if the server will run it."""
        mask = os.umask(0)
        os.umask(mask)
        environ = [os.fsencode(f"{name}={value}") for name, value in os.environ.items()]
        facts = [os.fsencode(fact) for fact in sockets.facts(os.environ)]
        words = [os.fsencode(word) for word in arguments]
        counts = [str(len(part)).encode() for part in (facts, words, environ)]
        request = messages.encode([str(mask).encode(), *counts, *facts, *words, *environ])
        folder = os.open(".", os.O_RDONLY)
        try:
            sent = socket.send_fds(self._connection, [request], [0, 1, 2, folder])
        finally:
            os.close(folder)
        self._connection.sendall(request[sent:])
        answer = self._receive()
        return answer is not None and answer[0] == messages.READY

    def _forward_interrupts(self) -> None:
        def forward(number: int, _: object) -> None:
            self._connection.sendall(messages.encode([messages.SIGNAL, str(number).encode()]))

        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, forward)

    def _outcome(self) -> int:
        """Wait for the end of the command; a command that a signal ended ends this process in the same way."""
        try:
            kind, value = self._receive() or (b"", b"")
        except (OSError, ValueError):
            kind = b""
        if kind == messages.EXIT:
            return int(value)
        if kind == messages.SIGNAL:
            number = int(value)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return 128 + number
        sys.stderr.write(
            "error: the warm server ended while it ran the command\n"
            f"hint: look at the result before you repeat a change; {sockets.SWITCH}=off does not use the server\n"
        )
        return 1

    def _receive(self) -> list[bytes] | None:
        while True:
            message = self._reader.next()
            if message is not None:
                return message
            data = self._connection.recv(65_536)
            if not data:
                return None
            self._reader.add(data)
