"""The files of an audit directory: their names, their order, and the heads of the chains."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from uuid import uuid4

import msgspec

from omnigraph.decodable import decodable
from omnigraph.wire.audit import AuditRecord

GENESIS = "0" * 64
"""`prev` of the first record of a chain."""
_FILE = re.compile(r"audit-(\d{8})-([0-9a-f]{16})-(\d{6,12})\.jsonl")
_HEAD = re.compile(r"audit-([0-9a-f]{16})\.head")
_MARK = re.compile(r"(\d{20}) ([0-9a-f]{64})\n")
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_decode = msgspec.json.Decoder(decodable(AuditRecord)).decode


def line_hash(line: bytes) -> str:
    """Return the hash of a line, which has no line end."""
    return hashlib.sha256(line).hexdigest()


def parse_line(line: bytes) -> AuditRecord | None:
    """Return the record of a line; None if it is not a record."""
    try:
        return _decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


@dataclass(frozen=True)
class Mark:
    """A position of a chain: the number of a record and the hash of its line."""

    seq: int = 0
    hash: str = GENESIS

    def to_bytes(self) -> bytes:
        """Return the content of a head, which always has the same length."""
        return f"{self.seq:020d} {self.hash}\n".encode()

    @classmethod
    def parse(cls, content: bytes) -> Self | None:
        """Return the mark of a head; None if the head is damaged. A head without content is that of a new chain."""
        if not content:
            return cls()
        found = _MARK.fullmatch(content.decode("ascii", "replace"))
        return cls(int(found[1]), found[2]) if found else None


@dataclass(frozen=True)
class ChainFile:
    """One file of a chain. All its records are of one day."""

    path: Path
    day: str
    """The day of the records, as YYYYMMDD."""
    number: int

    def lines(self) -> Iterator[tuple[bytes, bool]]:
        """Yield each line without its end, and whether the end is there: a torn last line has none."""
        with self.path.open("rb") as file:
            for raw in file:
                if not raw.endswith(b"\n"):
                    # The end of the file; a process that writes now may append the rest of the line.
                    yield raw, False
                    return
                yield raw[:-1], True


def file_path(folder: Path, day: str, chain: str, number: int) -> Path:
    """Return the path of a file of a chain."""
    return folder / f"audit-{day}-{chain}-{number:06d}.jsonl"


def files_of(folder: Path) -> dict[str, list[ChainFile]]:
    """Map each chain of a folder to its files in order; a chain without files has an empty list."""
    found: dict[str, list[ChainFile]] = {}
    for path in sorted(folder.iterdir()):
        if head := _HEAD.fullmatch(path.name):
            found.setdefault(head[1], [])
        elif name := _FILE.fullmatch(path.name):
            found.setdefault(name[2], []).append(ChainFile(path, name[1], int(name[3])))
    return {chain: sorted(files, key=lambda file: file.number) for chain, files in sorted(found.items())}


def head_path(folder: Path, chain: str) -> Path:
    """Return the path of the head of a chain."""
    return folder / f"audit-{chain}.head"


class HeldChain:
    """A chain that this process has locked: its head, which is open."""

    def __init__(self, chain: str, handle: int) -> None:
        self.chain = chain
        self._handle = handle

    @classmethod
    def take(cls, folder: Path) -> Iterator[HeldChain]:
        """Yield the existing chains that no other process holds, each locked, then new ones."""
        for chain in files_of(folder):
            if held := cls._lock(folder, chain, os.O_RDWR):
                yield held
        while True:
            if held := cls._lock(folder, uuid4().hex[:16], os.O_RDWR | os.O_CREAT | os.O_EXCL):
                yield held

    @classmethod
    def _lock(cls, folder: Path, chain: str, flags: int) -> HeldChain | None:
        try:
            handle = os.open(head_path(folder, chain), flags | _NO_LINK, 0o600)
        except (FileNotFoundError, FileExistsError):
            return None
        if _lock_file(handle, is_new=bool(flags & os.O_CREAT)):
            return cls(chain, handle)
        os.close(handle)
        return None

    def read(self) -> Mark | None:
        """Return the mark of the head; None if it is damaged."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        return Mark.parse(os.read(self._handle, 4096))

    def write(self, mark: Mark) -> None:
        """Replace the mark of the head in place."""
        os.lseek(self._handle, 0, os.SEEK_SET)
        content = mark.to_bytes()
        if os.write(self._handle, content) != len(content):
            raise OSError(errno.ENOSPC, "the head of the chain was not written completely")

    def release(self) -> None:
        """Release the chain to other processes."""
        os.close(self._handle)


def _lock_file(handle: int, *, is_new: bool) -> bool:
    """Lock a head until it is closed; return False if another process holds it."""
    try:
        import fcntl  # noqa: PLC0415 (absent on Windows, where every process starts a chain of its own)
    except ImportError:
        return is_new
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def last_record(files: list[ChainFile]) -> Mark | None:
    """Return the position of the last complete line of a chain; None if that line is not a record."""
    for file in reversed(files):
        content = file.path.read_bytes()
        end = content.rfind(b"\n")
        if end < 0:
            continue
        line = content[content.rfind(b"\n", 0, end) + 1 : end]
        record = parse_line(line)
        return Mark(record.seq, line_hash(line)) if record is not None else None
    return Mark()


def sync_folder(folder: Path) -> None:
    """Flush the names of the files of a folder to disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
