"""The folder and the names of the sockets, and the facts in which the program and a warm server must agree.

The folder is private to the user: `XDG_RUNTIME_DIR/omnigraph`, else a folder of the user in the folder of temporary
files. A folder that another user owns or can enter is not used. The name of a socket is a digest of the address of the
graph and a digest of the program, so that several versions and several graphs have servers beside each other.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from binascii import crc32

import omnigraph
from omnigraph.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

SWITCH = "OMNIGRAPH_WARM"
"""The variable that turns the use of warm servers off."""

SUFFIX = ".sock"
_PATH_MAX = 100
"""The address of a Unix socket has at most 104 bytes on macOS, 108 on Linux."""

_START_PREFIXES = (
    "PYTHON", "LC_", "LANG", "LD_", "DYLD_", "OMP_", "OPENBLAS_", "MKL_", "NUMBA_", "NUMEXPR_", "ARROW_", "LANCE_",
    "RUST_", "TOKIO_", "RAYON_", "MALLOC_", "MIMALLOC_", "JE_", "GLIBC_", "OPENSSL_", "TZ",
)  # fmt: skip
"""Variables that the interpreter and the libraries read when they start, by their beginnings."""


def is_offered() -> bool:
    """True if the platform has Unix sockets and can fork."""
    return sys.platform != "win32" and hasattr(os, "fork") and hasattr(socket, "send_fds")


def find_folder(environ: Mapping[str, str], *, make: bool = False) -> str | None:
    """Return the folder of the sockets; None if there is none that only the user can enter."""
    base = environ.get("XDG_RUNTIME_DIR", "")
    if not os.path.isabs(base) or not _is_private(base):  # noqa: PTH117 (pathlib is slow to import)
        base = environ.get("TMPDIR", "") or "/tmp"  # noqa: S108 (the folder below it is checked)
        path = f"{base.rstrip('/')}/omnigraph-{os.geteuid()}"
    else:
        path = f"{base.rstrip('/')}/omnigraph"
    if make:
        _make(path)
    return path if _is_private(path) and len(path) + 40 <= _PATH_MAX else None


def _make(path: str) -> None:
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102
    except OSError:
        # It exists, or it cannot be made: the caller tests it.
        return


def _is_private(path: str) -> bool:
    """True for a folder, not a link, that belongs to the user and that no other user can enter or write."""
    try:
        state = os.lstat(path)
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.geteuid() and not state.st_mode & 0o077


def program_tag() -> str:
    """Return the part of a name that stands for this installation of the program."""
    return f"{crc32(os.fsencode(chr(0).join(_program()))):08x}"


def _program() -> list[str]:
    return [__version__, sys.executable, os.path.dirname(os.path.abspath(omnigraph.__file__))]  # noqa: PTH100,PTH120


def find_sockets(folder: str) -> list[str]:
    """Return the paths of the sockets of this program."""
    ending = f"-{program_tag()}{SUFFIX}"
    try:
        names = sorted(os.listdir(folder))  # noqa: PTH208
    except OSError:
        return []
    return [f"{folder}/{name}" for name in names if name.endswith(ending)]


def facts(environ: Mapping[str, str]) -> list[str]:
    """Return what must be equal in the program and in a server for a command to run there as it would here.

    These are the program, the user, the limits and namespaces of the process, and the variables that are read at the
    start of a process. Everything else is passed with the command.
    """
    import resource

    limits = [
        f"{name}={resource.getrlimit(getattr(resource, name))}" for name in dir(resource) if name.startswith("RLIMIT_")
    ]
    spaces = [_link(f"/proc/self/ns/{name}") for name in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")]
    user = [os.getuid(), os.geteuid(), os.getgid(), os.getegid(), *os.getgroups()]
    variables = [f"{name}={value}" for name, value in sorted(environ.items()) if name.startswith(_START_PREFIXES)]
    flags = [str(sys.flags), str(sys.version_info), sys.getfilesystemencoding()]
    return [*_program(), *flags, str(user), _link("/proc/self/root"), *spaces, *limits, *variables]


def _link(path: str) -> str:
    try:
        return os.readlink(path)  # noqa: PTH115
    except OSError:
        return ""


def peer_user(connection: socket.socket) -> int | None:
    """Return the user of the other side; None if the platform does not tell it."""
    if hasattr(socket, "SO_PEERCRED"):
        data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
        return int.from_bytes(data[4:8], sys.byteorder)
    if sys.platform == "darwin":
        data = connection.getsockopt(0, 1, 76)  # SOL_LOCAL, LOCAL_PEERCRED: struct xucred
        return int.from_bytes(data[4:8], sys.byteorder)
    return None


def is_own_peer(connection: socket.socket) -> bool:
    """True if the other side belongs to the same user. Without credentials, the private folder is the only test."""
    try:
        user = peer_user(connection)
    except OSError:
        return False
    return user is None or user == os.geteuid()
