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

STDIN = "-"


def read_text(path: str) -> str:
    """Return the UTF-8 text of a file, or of stdin for `-`; removes a byte order mark, keeps line endings."""
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'", code="no_such_file") from None
    except IsADirectoryError:
        raise InputError(f"'{path}' is a directory, not a file", code="no_such_file") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}", code="unreadable_file") from None
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"'{path}' is not UTF-8 text: invalid byte at offset {error.start}",
            code="not_utf8",
            hint="save it as UTF-8",
        ) from None


def replace_text(path: Path, text: str) -> None:
    """Replace the content of a file atomically; keeps its permissions."""
    import tempfile

    try:
        mode = path.stat().st_mode
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
