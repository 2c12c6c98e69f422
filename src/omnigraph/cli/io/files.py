"""Reading and atomic writing of files that the user names."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from omnigraph.cli.errors import BROKEN_PIPE
from omnigraph.errors import InputError
from omnigraph.file_replacement import keep_permissions, output, replacement
from omnigraph.text_files import decode_text, read_text_file

STDIN = "-"


def read_text(path: str) -> str:
    """Return the UTF-8 text of a file, or of stdin for `-`; removes a byte order mark, keeps line endings."""
    return decode_text(sys.stdin.buffer.read(), path) if path == STDIN else read_text_file(path)


def replace_text(path: Path, text: str) -> None:
    """Replace the text of a file; an existing one keeps its permissions."""
    target = path.resolve()
    try:
        with replacement(target) as file:
            keep_permissions(target, file)
            file.write(text.encode())
    except OSError as error:
        raise _unwritable(path, error) from None


@contextmanager
def writing(path: str | None) -> Iterator[IO[bytes]]:
    """Yield stdout, or a file that takes the place of `path` when it is complete and synced."""
    if path is None or path == STDIN:
        try:
            sys.stdout.flush()
            yield sys.stdout.buffer
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise SystemExit(BROKEN_PIPE) from None
        return
    try:
        with output(Path(path)) as file:
            yield file
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: str | Path, error: OSError) -> InputError:
    return InputError(f"'{path}' cannot be written: {error.strerror}", code="unwritable_file")
