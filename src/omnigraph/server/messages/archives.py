"""Request bodies that are tar archives of files to load.

The names in an archive are shown in messages and name the types of tables. They never become paths: each file is copied
to a name of its own. Only regular files are accepted, and the extended headers that hold long names are bounded.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, BinaryIO

from omnigraph.errors import InputError, LimitReached
from omnigraph.server.messages.bodies import SpooledBody, new_body_file
from omnigraph.text_files import NamedPath
from omnigraph.wire.loads import TYPE_RECORD

FILES_MAX = 1_000
NAME_MAX = 1_000
_EXTENDED_MAX = 16 * 1024
_BLOCK = 512
_COPY_BYTES = 1024 * 1024
_EXTENDED_RECORD = re.compile(rb"([0-9]{1,6}) ([a-zA-Z.]{1,40})=")


@contextmanager
def unpacked(archive: Path) -> Iterator[list[NamedPath]]:
    """Copy the files of an archive, and return their paths with the names that the archive gives them.

    The copies are removed at the end of the block.
    """
    found: list[NamedPath] = []
    with ExitStack() as copies, archive.open("rb") as file:
        for name, type_name, size in _members(file):
            if len(found) == FILES_MAX:
                raise LimitReached(
                    f"the archive has more than {FILES_MAX:,} files",
                    resource="rows",
                    limit=FILES_MAX,
                    hint="load the files in several requests",
                )
            copy = SpooledBody(new_body_file(""), "")
            copies.callback(copy.discard)
            _copy(file, copy.file, size)
            found.append(NamedPath(str(copy.path), name, type_name))
        if not found:
            raise _invalid("it has no files")
        yield found


def _members(file: BinaryIO) -> Iterator[tuple[str, str | None, int]]:
    """Yield the name, the type and the size of each member; the file is then at the content of the member."""
    extended: dict[str, str] = {}
    while True:
        head = _read(file, _BLOCK)
        if not head.strip(b"\0"):
            return
        try:
            member = tarfile.TarInfo.frombuf(head, "utf-8", "strict")
        except (tarfile.HeaderError, UnicodeError, ValueError) as error:
            raise _invalid(str(error)) from None
        if member.type == tarfile.XHDTYPE:
            extended = _extended(file, member.size)
            continue
        name = extended.get("path", member.name)
        if not member.isreg() or member.size < 0 or not 0 < len(name) <= NAME_MAX or not name.isprintable():
            raise _invalid(f"the member {name[:80]!r} is not a regular file with a printable name")
        yield name, extended.get(TYPE_RECORD), _size(extended.get("size"), member.size)
        extended = {}


def _extended(file: BinaryIO, size: int) -> dict[str, str]:
    """Return the records of an extended header, such as a long name."""
    if not 0 <= size <= _EXTENDED_MAX:
        raise _invalid("an extended header is too long")
    data = _read(file, size + -size % _BLOCK)[:size]
    found: dict[str, str] = {}
    while data:
        record = _EXTENDED_RECORD.match(data)
        length = int(record[1]) if record is not None else 0
        if record is None or not record.end() < length <= len(data) or data[length - 1 : length] != b"\n":
            raise _invalid("an extended header is not valid")
        try:
            found[record[2].decode()] = data[record.end() : length - 1].decode()
        except UnicodeDecodeError:
            raise _invalid("a name is not UTF-8") from None
        data = data[length:]
    return found


def _size(extended: str | None, size: int) -> int:
    if extended is None:
        return size
    if not extended.isascii() or not extended.isdigit() or len(extended) > 15:
        raise _invalid("a size is not a number")
    return int(extended)


def _copy(file: BinaryIO, copy: IO[bytes], size: int) -> None:
    remaining = size
    while remaining:
        data = _read(file, min(_COPY_BYTES, remaining))
        copy.write(data)
        remaining -= len(data)
    copy.flush()
    _read(file, -size % _BLOCK)


def _read(file: BinaryIO, size: int) -> bytes:
    data = file.read(size)
    if len(data) != size:
        raise _invalid("it ends before its end marker")
    return data


def _invalid(reason: str) -> InputError:
    return InputError(
        f"the body is not a valid tar archive: {reason}",
        code="bad_archive",
        hint="send an uncompressed archive of regular files",
    )
