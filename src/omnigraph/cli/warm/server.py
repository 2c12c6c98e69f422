"""The side of the warm server: accept requests, fork a process for each, and report how it ended.

The process that forks has one thread of Python and opens no graph: Lance has not started its threads, and those of
other libraries survive a fork. It ends if it was idle for a time, or if a module that it imported changed on disk.
"""

from __future__ import annotations

import gc
import os
import pkgutil
import selectors
import signal
import socket
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import Any, BinaryIO, cast

from omnigraph.cli.warm import messages, sockets
from omnigraph.engine import kernels
from omnigraph.errors import InputError
from omnigraph.large_modules import importing_large_modules

IDLE_S = 600.0
"""A server ends after this time without a command."""

_REQUEST_S = 2.0
"""A client that does not complete its request in this time is refused."""

_PACKAGES = (
    "cli",
    "engine",
    "lang",
    "operations",
    "policy",
    "query",
    "scalar_types",
    "schema",
    "storage",
    "versioning",
)
_LEFT_OUT = ("omnigraph.cli.shell", "omnigraph.cli.commands.serve", "omnigraph.engine.kernels.build")
_MODULES = (
    "omnigraph.graph_history",
    "omnigraph.graph_io",
    "omnigraph.graph_maintenance",
    "omnigraph.graph_open",
    "omnigraph.graph_tables",
    "omnigraph.wire.errors",
    "omnigraph.wire.json_values",
    "encodings.utf_8_sig",
    "typer._click.decorators",
    "yaml",
)


@dataclass(frozen=True)
class Job:
    """A command that a forked process runs."""

    arguments: list[str]
    environ: dict[str, str] = field(repr=False)
    mask: int
    streams: tuple[int, int, int]
    folder: int

    def enter(self) -> None:
        """Take on the streams, the working directory and the environment of the caller."""
        os.fchdir(self.folder)
        os.close(self.folder)
        for number, stream in enumerate(self.streams):
            os.dup2(stream, number)
            os.close(stream)
        os.umask(self.mask)
        os.environ.clear()
        os.environ.update(self.environ)
        tempfile.tempdir = None  # chosen again from the variables
        # As at the start of a process; the server may have been started with signals that are ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        # The interpreter opened its streams on those of the server; only their encodings are the same.
        sys.stdin = _stream(0, "r", sys.__stdin__)
        sys.stdout = _stream(1, "w", sys.__stdout__)
        sys.stderr = _stream(2, "w", sys.__stderr__)


def _stream(number: int, mode: str, like: Any) -> TextIOWrapper:
    """Open a standard stream as the interpreter does at its start."""
    form: dict[str, Any] = {"encoding": like.encoding, "errors": like.errors, "newline": "\n", "closefd": False}
    opened = cast(TextIOWrapper, open(number, mode, **form))  # noqa: SIM115 (open until the process ends)
    opened.reconfigure(line_buffering=number == 2 or (number == 1 and os.isatty(1)))
    return opened


class WarmServer:
    """A Unix socket, and the commands that run."""

    def __init__(self, path: str, lock: BinaryIO, *, idle_s: float = IDLE_S) -> None:
        self._path = path
        self._lock = lock
        self._idle_s = idle_s
        self._selector = selectors.DefaultSelector()
        self._running: dict[int, _Client] = {}
        self._stopping = False
        self._files = _loaded_files()
        self._facts = [os.fsencode(fact) for fact in sockets.facts(os.environ)]
        self.served = 0
        """Number of commands that were started."""
        self._listener = _listen(path)
        self._wake, self._woken = socket.socketpair()

    def serve(self) -> Job | None:
        """Serve until the server ends, and return None; in a forked process, return its command."""
        with self._signals():
            self._selector.register(self._listener, selectors.EVENT_READ)
            self._selector.register(self._woken, selectors.EVENT_READ)
            last = time.monotonic()
            while not self._stopping or self._running:
                wait = None if self._running else max(0.0, last + self._idle_s - time.monotonic())
                events = self._selector.select(wait)
                if not events and not self._running:
                    break
                for key, _ in events:
                    job = self._handle(key.fileobj)
                    if job is not None:
                        return job
                last = time.monotonic()
        self._close()
        return None

    def _handle(self, ready: Any) -> Job | None:
        if ready is self._listener:
            return self._accept()
        if ready is self._woken:
            with suppress(BlockingIOError):
                self._woken.recv(4096)
            self._reap()
        else:
            self._read(ready)
        return None

    def _accept(self) -> Job | None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return None
        connection.settimeout(_REQUEST_S)
        files: list[int] = []
        try:
            if not sockets.is_own_peer(connection):
                connection.close()
                return None
            job = self._request(connection, files)
        except (OSError, ValueError):
            job = None
        if job is None:
            for file in files:
                os.close(file)
            connection.close()
            return None
        return self._start(connection, job)

    def _request(self, connection: socket.socket, files: list[int]) -> Job | None:
        """Read a request; return None if this server does not run it."""
        reader = messages.Reader()
        data, received, _, _ = socket.recv_fds(connection, 65_536, 4)
        files.extend(received)
        reader.add(data)
        request = _complete(connection, reader)
        if request is None or len(files) != 4:
            return None
        mask, facts, words, environ = (int(number) for number in request[:4])
        rest = request[4:]
        if rest[:facts] != self._facts or self._is_outdated():
            connection.sendall(messages.encode([messages.REFUSED]))
            return None
        arguments = [os.fsdecode(word) for word in rest[facts : facts + words]]
        variables = dict(os.fsdecode(one).split("=", 1) for one in rest[facts + words : facts + words + environ])
        connection.sendall(messages.encode([messages.READY]))
        if _complete(connection, reader) != [messages.GO]:
            return None
        return Job(arguments, variables, mask, (files[0], files[1], files[2]), files[3])

    def _start(self, connection: socket.socket, job: Job) -> Job | None:
        """Fork; return the command in the new process."""
        with warnings.catch_warnings():
            # Lance warns about every fork; it has no threads here.
            warnings.simplefilter("ignore")
            process = os.fork()
        if not process:
            os.setpgid(0, 0)
            self._leave(connection)
            return job
        for file in (*job.streams, job.folder):
            os.close(file)
        with suppress(OSError):
            os.setpgid(process, process)
        connection.setblocking(False)
        self.served += 1
        self._running[process] = _Client(connection)
        self._selector.register(connection, selectors.EVENT_READ)
        return None

    def _leave(self, connection: socket.socket) -> None:
        """Close what belongs to the server, in a forked process."""
        self._selector.close()
        for other in (
            connection,
            self._listener,
            self._wake,
            self._woken,
            *(c.connection for c in self._running.values()),
        ):
            other.close()
        self._lock.close()

    def _read(self, connection: socket.socket) -> None:
        """Pass on the signals of a client; if it ended, end its command."""
        process = next(number for number, client in self._running.items() if client.connection is connection)
        reader = self._running[process].reader
        try:
            data = connection.recv(4096)
            reader.add(data)
            message = reader.next()
        except BlockingIOError:
            return
        except (OSError, ValueError):
            data, message = b"", None
        if message is not None and message[0] == messages.SIGNAL:
            _signal(process, int(message[1]))
        if not data:
            self._selector.unregister(connection)
            _signal(process, signal.SIGKILL)

    def _reap(self) -> None:
        """Report the commands that ended."""
        for process, client in list(self._running.items()):
            ended, status = os.waitpid(process, os.WNOHANG)
            if not ended:
                continue
            del self._running[process]
            kind, value = messages.EXIT, os.waitstatus_to_exitcode(status)
            if value < 0:
                kind, value = messages.SIGNAL, -value
            with suppress(OSError, KeyError, ValueError):
                self._selector.unregister(client.connection)
            with suppress(OSError):
                client.connection.sendall(messages.encode([kind, str(value).encode()]))
            client.connection.close()

    def _is_outdated(self) -> bool:
        """True if a module changed since it was imported; the server then ends."""
        if all(_changed_at(path) == time_ for path, time_ in self._files.items()):
            return False
        self._stop()
        return True

    def _stop(self) -> None:
        """Accept no more commands."""
        if not self._stopping:
            self._stopping = True
            self._selector.unregister(self._listener)
            self._remove()

    def _close(self) -> None:
        self._remove()
        self._selector.close()
        self._listener.close()
        self._lock.close()

    def _remove(self) -> None:
        with suppress(OSError):
            os.unlink(self._path)  # noqa: PTH108

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Wake the loop when a command ends, and stop at SIGTERM and SIGINT."""
        self._woken.setblocking(False)
        self._wake.setblocking(False)

        def stop(*_: object) -> None:
            self._stop()

        handlers: dict[int, Any] = {signal.SIGCHLD: lambda *_: None, signal.SIGTERM: stop, signal.SIGINT: stop}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        wakeup = signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        try:
            yield
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in before.items():
                signal.signal(number, handler)


@dataclass
class _Client:
    """The connection of a command that runs."""

    connection: socket.socket
    reader: messages.Reader = field(default_factory=messages.Reader)


def _complete(connection: socket.socket, reader: messages.Reader) -> list[bytes] | None:
    """Return the next message of a connection; None if the other side closed it."""
    while True:
        message = reader.next()
        if message is not None:
            return message
        data = connection.recv(65_536)
        if not data:
            return None
        reader.add(data)


def _signal(process: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process, number)


def _listen(path: str) -> socket.socket:
    """Listen on a socket that only the user can connect to; it appears at its path when it accepts connections."""
    new = f"{path}.new"
    with suppress(FileNotFoundError):
        os.unlink(new)  # noqa: PTH108
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        listener.bind(new)
    finally:
        os.umask(mask)
    listener.listen(64)
    os.replace(new, path)  # noqa: PTH105
    return listener


def claim(folder: str, name: str) -> BinaryIO | None:
    """Lock the name of a server; None if another server has it. The sockets of servers that ended are removed."""
    import fcntl

    own: BinaryIO | None = None
    for other in {*_names(folder), name}:
        file = Path(folder, f"{other}.lock").open("ab")  # noqa: SIM115 (its lock is held while it is open)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            continue
        if other == name:
            own = file
            continue
        with suppress(OSError):
            Path(folder, other + sockets.SUFFIX).unlink()
        file.close()
    return own


def _names(folder: str) -> list[str]:
    return [path.name.removesuffix(sockets.SUFFIX) for path in Path(folder).glob(f"*{sockets.SUFFIX}")]


def preload() -> None:
    """Import the modules of the commands."""
    with importing_large_modules(freeze=True, pandas=False):
        from omnigraph.storage.lance.lance_module import load_lance

        load_lance()
        for name in (*_MODULES, *_package_modules()):
            import_module(name)
    kernels.load_if_cached()
    gc.freeze()


def _package_modules() -> list[str]:
    found = []
    for package in _PACKAGES:
        path = import_module(f"omnigraph.{package}").__path__
        found += [module.name for module in pkgutil.walk_packages(path, f"omnigraph.{package}.")]
    return [name for name in found if not name.startswith(_LEFT_OUT) and not name.endswith("__main__")]


def _loaded_files() -> dict[str, int]:
    """Return the times of change of the modules of the package that are imported."""
    files = {
        str(module.__file__)
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] == "omnigraph" and getattr(module, "__file__", None)
    }
    return {path: _changed_at(path) for path in files}


def _changed_at(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns  # noqa: PTH116
    except OSError:
        return 0


def open_server(uri: str, *, idle_s: float = IDLE_S) -> WarmServer:
    """Open the warm server of a graph; raises `InputError` if there is one, or if there is no place for its socket."""
    if not sockets.is_offered():
        raise InputError(
            "a warm server needs Unix sockets and fork, which this platform does not have",
            code="no_warm_server",
            hint="run the commands without it, or 'omnigraph serve' and --server",
        )
    folder = sockets.find_folder(os.environ, make=True)
    if folder is None:
        raise InputError(
            "there is no private folder for the socket of a warm server",
            code="no_warm_server",
            hint="set XDG_RUNTIME_DIR or TMPDIR to a folder of yours with a short path and mode 0700",
        )
    name = f"{_digest(uri)}-{sockets.program_tag()}"
    lock = claim(folder, name)
    if lock is None:
        raise InputError(
            "a warm server of this graph runs already", code="warm_server_runs", hint="commands use it by themselves"
        )
    preload()
    return WarmServer(f"{folder}/{name}{sockets.SUFFIX}", lock, idle_s=idle_s)


def _digest(uri: str) -> str:
    """Return a digest of the address of a graph: for a folder, of its real path."""
    from hashlib import sha256

    address = uri if "://" in uri and not uri.startswith("file://") else os.path.realpath(uri.removeprefix("file://"))
    return sha256(os.fsencode(address.rstrip("/"))).hexdigest()[:16]
