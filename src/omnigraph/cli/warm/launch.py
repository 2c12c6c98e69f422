"""The start of a warm server on demand, by a command that ran without one (`cli.warm: true`)."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

from omnigraph.cli.warm import sockets
from omnigraph.cli.warm.client import COMMANDS


def start_server(uri: str, command: str) -> None:
    """Start the warm server of a graph in the background, unless a server of this program runs or cannot run."""
    if command.partition(" ")[0] not in COMMANDS or not sockets.is_offered():
        return
    if os.environ.get(sockets.SWITCH, "").strip().lower() in ("off", "0", "false", "no"):
        return
    folder = sockets.find_folder(os.environ, make=True)
    if folder is None or any(map(_answers, sockets.find_sockets(folder))):
        return
    address = uri if "://" in uri else os.path.abspath(uri)  # noqa: PTH100
    # A server that another command starts at the same time keeps the name; this one ends at once.
    with suppress(OSError):
        subprocess.Popen(  # noqa: S603 (this interpreter)
            [sys.executable, "-m", "omnigraph", "serve", "--warm", address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        ).returncode = 0  # it outlives this process, which does not wait for it


def _answers(path: str) -> bool:
    """True if a server accepts connections at a socket."""
    import socket

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        try:
            connection.connect(path)
        except OSError:
            return False
    return True
