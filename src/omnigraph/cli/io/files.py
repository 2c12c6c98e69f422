"""Reading and atomic writing of files that the user names."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from omnigraph.cli.errors import BROKEN_PIPE
from omnigraph.errors import InputError
from omnigraph.text_files import decode_text, read_text_file

STDIN = "-"


def read_text(path: str) -> str:
    """Return the UTF-8 text of a file, or of stdin for `-`; removes a byte order mark, keeps line endings."""
    return decode_text(sys.stdin.buffer.read(), path) if path == STDIN else read_text_file(path)


def replace_text(path: Path, text: str) -> None:
    """Write a file atomically; an existing one keeps its permissions."""
    import tempfile

    try:
        mode = path.stat().st_mode if path.exists() else 0o644
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(text.encode())
            Path(temporary).chmod(mode)
            Path(temporary).replace(path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}", code="unwritable_file") from None


@contextmanager
def writing(path: str | None) -> Iterator[IO[bytes]]:
    """Yield stdout, or a temporary file that is renamed to `path` when it is complete and synced."""
    if path is None or path == STDIN:
        try:
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise SystemExit(BROKEN_PIPE) from None
        return
    import tempfile

    target = Path(path)
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}", code="unwritable_file") from None
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        mask = os.umask(0)
        os.umask(mask)
        Path(temporary).chmod(0o666 & ~mask)
        Path(temporary).replace(target)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
