"""Input files of users, on disk or in a bucket: found by path, folder or pattern, and read on demand.

The files of a graph itself are handled by `objects` and `tables`. The files here are only read, or written as an
export.
"""

from __future__ import annotations

import fnmatch
import glob
import io
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from pathlib import Path
from typing import IO, Any

import pyarrow as pa

from omnigraph.errors import InputError, OmniGraphError, RecordError
from omnigraph.fast_dataclass import dataclass
from omnigraph.file_replacement import output
from omnigraph.storage.files.location import Location, check_path, locate
from omnigraph.storage.files.object_errors import object_store_error
from omnigraph.storage.files.s3_objects import BucketFile, bucket_store
from omnigraph.storage.lance.lance_errors import store_errors
from omnigraph.table_format import PLAIN, TableFormat
from omnigraph.text_files import NamedPath

_MAGIC = "*?["
_BUFFER_BYTES = 4 << 20
_INFLATE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DataFile:
    """An input file: its name for the user, its location and its size."""

    name: str
    location: Location
    size: int
    format: TableFormat = PLAIN
    """The format of a table file."""
    type_name: str | None = None
    """The type of the rows of a table file; None if its name says it."""
    group: FileGroup | None = None
    """The other files that a file with several types is read with."""

    @property
    def stem(self) -> str:
        """The base name up to its first dot."""
        return self.base.split(".", 1)[0]

    @property
    def base(self) -> str:
        """The last segment of the name."""
        return self.name.rsplit("/", 1)[-1]

    def read(self, start: int = 0, end: int | None = None) -> bytes:
        """Return the bytes of a range."""
        end = self.size if end is None else min(end, self.size)
        if end <= start:
            return b""
        if self.location.path is not None:
            with _reading(self), self.location.path.open("rb") as file:
                file.seek(start)
                return file.read(end - start)
        import obstore  # noqa: PLC0415 (imported only if a bucket is read)

        with _reading(self):
            return bytes(obstore.get_range(bucket_store(self.location), self.location.prefix, start=start, end=end))

    def open(self) -> pa.NativeFile:
        """Open the file for Arrow."""
        with _reading(self):
            if self.location.path is not None:
                return pa.OSFile(str(self.location.path))
            return pa.PythonFile(self._in_bucket(), mode="r")

    def open_text(self) -> IO[bytes]:
        """Open the file as a stream of bytes."""
        with _reading(self):
            if self.location.path is not None:
                return self.location.path.open("rb")
            return io.BufferedReader(self._in_bucket(), _BUFFER_BYTES)

    def _in_bucket(self) -> BucketFile:
        return BucketFile(bucket_store(self.location), self.location.prefix, self.size)


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files that are read together: the header of a data file, and the files with the nodes that its edges join."""

    header: DataFile | None = None
    nodes: tuple[DataFile, ...] = ()
    memo: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """State that the files of one input share, such as the index of their nodes."""


def inflate(file: DataFile, *, line_bytes_max: int, block_bytes: int = 8 << 20) -> Iterator[bytes]:
    """Yield the text of a gzip file in blocks of whole lines, in bounded memory whatever the compression ratio.

    Concatenated gzip streams are one text. A line beyond the limit raises `RecordError`.
    """
    held = bytearray()
    lines = 0
    for chunk in inflated_chunks(file):
        held += chunk
        if len(held) < block_bytes:
            continue
        cut = held.rfind(b"\n") + 1
        if cut:
            block = bytes(held[:cut])
            del held[:cut]
            lines += block.count(b"\n")
            yield block
        if len(held) > line_bytes_max:
            message = f"the record is larger than the limit of {line_bytes_max:,} bytes"
            raise RecordError(message, source=file.name, line=lines + 1, rule="size")
    if held:
        yield bytes(held)


def inflated_chunks(file: DataFile) -> Iterator[bytes]:
    """Yield the content of a gzip file in chunks of at most one megabyte."""
    inflater = zlib.decompressobj(wbits=31)
    with file.open_text() as stream:
        try:
            while data := stream.read(_INFLATE_BYTES):
                while data:
                    chunk = inflater.decompress(data, _INFLATE_BYTES)
                    if chunk:
                        yield chunk
                    data = inflater.unconsumed_tail or inflater.unused_data
                    if inflater.eof and data:
                        inflater = zlib.decompressobj(wbits=31)
            if not inflater.eof:
                raise zlib.error("the file is truncated")
        except zlib.error as error:
            raise InputError(f"'{file.name}' cannot be read: {error}", code="unreadable_file") from None


def inflates_beyond(file: DataFile, size: int) -> bool:
    """Return True if the content of a gzip file is larger than `size`; reads no more than that."""
    total = 0
    for chunk in inflated_chunks(file):
        total += len(chunk)
        if total > size:
            return True
    return False


def is_compressed(name: str) -> bool:
    """Return True if the name is that of a gzip file."""
    return name.lower().endswith(".gz")


class _reading:  # noqa: N801 (used as a statement)
    """Converts exceptions around an input file into errors that name the file."""

    def __init__(self, file: DataFile) -> None:
        self._file = file

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, OmniGraphError) or not isinstance(error, Exception):
            return
        if isinstance(error, FileNotFoundError):
            raise no_such_file(self._file.name) from error
        if not self._file.location.is_local:
            raise object_store_error(error, self._file.name) from error
        if isinstance(error, OSError):
            reason = error.strerror or error
            raise InputError(f"'{self._file.name}' cannot be read: {reason}", code="unreadable_file") from error


def get_file(path: Path) -> DataFile:
    """Return one file on disk by its path; raise `InputError` if it cannot be read."""
    file = _local(str(path), path, 0)
    with file.open_text() as stream:
        return replace(file, size=stream.seek(0, os.SEEK_END))


_NO_FILE_NAME = re.compile(r"[\s{}]")


def read_text(path: Path) -> str:
    """Return the text of a UTF-8 file, with or without a byte order mark; raise `InputError` if it cannot be read."""
    check_path(str(path))
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise no_such_file(str(path)) from None
    except OSError as error:
        raise InputError(f"'{path}' cannot be read: {error.strerror}", code="unreadable_file") from None
    except UnicodeDecodeError as error:
        raise InputError(f"'{path}' is not UTF-8 text: byte {error.start} is wrong", code="not_utf8") from None


def read_source(source: Any, name: str = "<query>") -> tuple[str, str]:
    """Return the text of a query or schema, and its name in messages.

    A `Path` is read, and so is a str that can only be the name of a `.gq` or `.pg` file.
    """
    if isinstance(source, str):
        if not source.endswith((".gq", ".pg")) or _NO_FILE_NAME.search(source):
            return source, name
        source = Path(source)
    elif not isinstance(source, Path):
        what = name.strip("<>")
        raise InputError(
            f"a {what} is a str or a Path, not {type(source).__name__}", hint="pass its text or the path of its file"
        )
    return read_text(source), str(source)


@contextmanager
def writing(path: Path) -> Iterator[IO[str]]:
    """Yield a text file with LF line ends that replaces an existing one when it is complete.

    Raises `InputError` if it cannot be written.
    """
    check_path(str(path))
    try:
        with output(path) as file:
            text = io.TextIOWrapper(file, encoding="utf-8", newline="\n")
            yield text
            text.detach()
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}", code="unwritable_file") from None


def no_such_file(pattern: str) -> InputError:
    """Return the error for a name or pattern that matches no file."""
    return InputError(f"there is no file '{pattern}'", code="no_such_file")


def find_files(
    patterns: Sequence[str],
    environ: Mapping[str, str],
    is_data: Callable[[str], bool],
    *,
    format: TableFormat | None = None,
) -> list[DataFile]:
    """Return the files of paths, folders and patterns, in the given order; those of one pattern or folder by name.

    A folder contributes the files at any depth for which `is_data` returns True. Names that begin with a dot or an
    underscore are skipped, because other programs mark files that are not data in this way. The type of a `NamedPath`
    is that of its files.
    """
    found: list[DataFile] = []
    for pattern in patterns:
        files = _in_bucket(pattern, environ, is_data) if "://" in pattern else _on_disk(pattern, is_data)
        if not files:
            raise no_such_file(pattern)
        type_name = pattern.type_name if isinstance(pattern, NamedPath) else None
        if format is not None or type_name is not None:
            files = [replace(file, format=format or file.format, type_name=type_name) for file in files]
        found += files
    return found


def _on_disk(pattern: str, is_data: Callable[[str], bool]) -> list[DataFile]:
    check_path(pattern)
    # Brackets may be part of a literal file name.
    by_pattern = glob.has_magic(pattern) and not Path(pattern).exists()
    names = sorted(glob.glob(pattern, recursive=True)) if by_pattern else [pattern]  # noqa: PTH207
    found: list[DataFile] = []
    for name in names:
        path = Path(name)
        if path.is_file():
            shown = name.shown if isinstance(name, NamedPath) else name
            found.append(_local(shown, path, path.stat().st_size))
        elif path.is_dir():
            inner = sorted(p for p in path.rglob("*") if p.is_file() and is_data(p.name))
            found += [_local(str(p), p, p.stat().st_size) for p in inner if not _is_hidden(p.relative_to(path).parts)]
    return found


def _local(name: str, path: Path, size: int) -> DataFile:
    absolute = Path(os.path.abspath(path))  # noqa: PTH100 (lexical: links are not resolved)
    return DataFile(name, Location(str(absolute), absolute), size)


def _in_bucket(pattern: str, environ: Mapping[str, str], is_data: Callable[[str], bool]) -> list[DataFile]:
    if not pattern.startswith("s3://"):
        location = locate(pattern, environ)
        assert location.path is not None
        return _on_disk(str(location.path), is_data)
    import obstore  # noqa: PLC0415

    magic = min((position for sign in _MAGIC if (position := pattern.find(sign)) >= 0), default=len(pattern))
    fixed = pattern[:magic] if magic == len(pattern) else pattern[: pattern.rindex("/", 0, magic) + 1]
    root = locate(fixed, environ)
    prefix = root.prefix
    try:
        listed = [item for batch in obstore.list(bucket_store(root), prefix or None) for item in batch]
    except store_errors() as error:
        raise object_store_error(error, pattern) from error
    # Some stores list by whole path segments only, others by any prefix.
    if not listed and "/" in prefix:
        above = prefix.rpartition("/")[0]
        listed = [item for batch in obstore.list(bucket_store(root), above) for item in batch]
    found: list[DataFile] = []
    for item in sorted(listed, key=lambda item: item["path"]):
        key = item["path"]
        name = f"s3://{root.bucket}/{key}"
        inside = key.removeprefix(prefix).lstrip("/")
        if magic < len(pattern):
            taken = fnmatch.fnmatchcase(name, pattern)
        elif key == prefix:
            taken = True
        else:
            taken = key.startswith(f"{prefix}/") and is_data(key) and not _is_hidden(inside.split("/"))
        if taken and item["size"]:
            found.append(DataFile(name, Location(name, None, root.options), item["size"]))
    return found


def _is_hidden(parts: Sequence[str]) -> bool:
    return any(part.startswith((".", "_")) for part in parts)
