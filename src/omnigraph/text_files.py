"""Files that the user names: their text, and their names in errors."""

from __future__ import annotations

from pathlib import Path

from omnigraph.errors import InputError


class NamedPath(str):
    """A path with the name that errors show for it, and the type of its rows if its name does not say it."""

    shown: str
    type_name: str | None

    def __new__(cls, path: str, shown: str, type_name: str | None = None) -> NamedPath:
        """Create the path of a file with its name for users."""
        made = super().__new__(cls, path)
        made.shown = shown
        made.type_name = type_name
        return made


def read_text_file(path: str | Path) -> str:
    """Return the UTF-8 text of a file; removes a byte order mark, keeps line endings."""
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise InputError(f"there is no file '{path}'", code="no_such_file") from None
    except IsADirectoryError:
        raise InputError(f"'{path}' is a directory, not a file", code="no_such_file") from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}", code="unreadable_file") from None
    return decode_text(data, str(path))


def decode_text(data: bytes, source: str) -> str:
    """Return UTF-8 bytes as text without a byte order mark; `source` names them in the error."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"'{source}' is not UTF-8 text: invalid byte at offset {error.start}",
            code="not_utf8",
            hint="save it as UTF-8",
        ) from None
