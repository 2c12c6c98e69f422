"""Settings of the whole process: the folder of temporary files and the memory pool of Lance.

The program hands them on by the variables that the standard library, Lance and Spark read: `TMPDIR` and
`LANCE_MEM_POOL_SIZE`. Worker processes of a server inherit them.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path
from threading import Event

from omnigraph.config_keys import MIB, parse_size
from omnigraph.errors import InputError

TEMPORARY, MEMORY_POOL = "OMNIGRAPH_TMPDIR", "OMNIGRAPH_LANCE_MEMORY_POOL"
MEMORY_POOL_MIN = 16 * MIB
"""Below this size, sorts of Lance become slow, and then fail."""


_owned = Event()


def own_process() -> None:
    """Declare that the process runs this program only; a test or another program that calls `run` does not."""
    _owned.set()


def owns_process() -> bool:
    """True if the process runs this program only."""
    return _owned.is_set()


_wanted: list[tuple[str, str]] = []
"""The graph and the command for which a warm server is wanted at the end of the process."""


def want_server(uri: str, command: str) -> None:
    """Let a warm server of a graph be started when the process ends, if it runs this program only."""
    if owns_process():
        _wanted[:] = [(uri, command)]


def start_wanted_server() -> None:
    """Start the warm server that a command wanted."""
    for uri, command in _wanted:
        from omnigraph.cli.warm.launch import start_server

        start_server(uri, command)


def apply_process_settings(environ: MutableMapping[str, str]) -> None:
    """Check the settings and put them in force for this process and its children."""
    folder = environ.get(TEMPORARY, "").strip()
    if folder:
        _use_temporary_folder(Path(folder).expanduser().absolute(), environ)
    pool = environ.get(MEMORY_POOL, "").strip()
    if pool:
        environ["LANCE_MEM_POOL_SIZE"] = str(_pool_size(pool))


def _use_temporary_folder(folder: Path, environ: MutableMapping[str, str]) -> None:
    import tempfile

    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
    elif not os.access(folder, os.W_OK | os.X_OK):
        problem = "is not writable"
    else:
        environ["TMPDIR"] = tempfile.tempdir = str(folder)
        return
    raise InputError(
        f"{TEMPORARY} names '{folder}', which {problem}",
        code="bad_setting",
        hint=f"create the folder, or unset {TEMPORARY} to use that of the system",
    )


def _pool_size(text: str) -> int:
    size = parse_size(text)
    if size is None or size < MEMORY_POOL_MIN:
        raise InputError(
            f"{MEMORY_POOL} must be a number of bytes of at least {MEMORY_POOL_MIN // MIB} MiB, not '{text[:40]}'",
            code="bad_setting",
            hint="such as 1073741824 or 1 GiB; unset, Lance uses its own default",
        )
    return size
