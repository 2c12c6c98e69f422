"""The folder of a diff: JSON lines by table, which are written while they arrive."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from omnigraph.client.call import Stream
from omnigraph.client.failures import unreadable
from omnigraph.errors import InputError
from omnigraph.pipeline.diff import SUMMARY, DiffResult
from omnigraph.versioning.compare.diff import RowChange

_OPS = ("insert", "update", "delete")
_TABLE_KEY = re.compile(r"(?:node|edge):\w+", re.ASCII)
"""The form of a table key, which is a part of a file name."""


class DiffFiles:
    """A new folder with one file for each changed table. If the diff fails, what was written is removed."""

    def __init__(self, out: str, commits: tuple[str, str], changes: Stream[RowChange]) -> None:
        self._out = out
        self._folder = Path(out)
        self._commits = commits
        self.changes = changes
        self._made = False
        self._tables: dict[str, dict[str, int]] = {}
        self._names: list[str] = []
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        if self._folder.exists() and (not self._folder.is_dir() or any(self._folder.iterdir())):
            raise InputError(f"'{self._out}' is not empty", code="not_empty", hint="write a diff to a new folder")
        try:
            self._made = not self._folder.exists()
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unwritable(error) from None
        return self

    def add(self, change: RowChange) -> None:
        """Write a change. The changes of a table follow each other."""
        counts = self._tables.get(change.table_key)
        if counts is None:
            if _TABLE_KEY.fullmatch(change.table_key) is None:
                raise unreadable(f"{change.table_key[:100]!r} is not the key of a table")
            counts = self._tables[change.table_key] = dict.fromkeys(_OPS, 0)
            self._open(f"{change.table_key.replace(':', '-')}.{len(self._names):05}.jsonl")
        counts[change.op] += 1
        assert self._file is not None
        self._file.write(json.dumps(change.to_json(), ensure_ascii=False) + "\n")

    def finish(self) -> DiffResult:
        """Write the summary and return the counts."""
        self._close()
        first, last = self._commits
        summary = {"from": first, "to": last, "tables": self._tables, "files": self._names}
        (self._folder / SUMMARY).write_text(json.dumps(summary, indent=1), encoding="utf-8")
        return DiffResult(self._out, self._tables, tuple(self._names))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()
        if kind is None:
            return
        for name in (*self._names, SUMMARY):
            (self._folder / name).unlink(missing_ok=True)
        if self._made:
            shutil.rmtree(self._folder, ignore_errors=True)
        if isinstance(error, OSError):
            raise self._unwritable(error) from None

    def _open(self, name: str) -> None:
        self._close()
        self._names.append(name)
        self._file = (self._folder / name).open("w", encoding="utf-8", newline="\n")

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"'{self._out}' cannot be written: {error.strerror}", code="unwritable_file")
