"""The JSONL file of an export."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from omnigraph.errors import InputError
from omnigraph.file_replacement import output


class ExportFile:
    """A JSONL file that replaces an earlier one when all its lines have arrived."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)
        self._stack = ExitStack()
        self._file: BinaryIO | None = None
        self.records = 0
        """The number of lines."""

    def __enter__(self) -> Self:
        return self

    def write(self, data: bytes) -> None:
        """Append lines or parts of lines."""
        try:
            self._opened().write(data)
        except OSError as error:
            raise self._unwritable(error) from None
        self.records += data.count(b"\n")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._opened()
            self._stack.__exit__(kind, error, trace)
        except OSError as failure:
            raise self._unwritable(failure) from None

    def _opened(self) -> BinaryIO:
        if self._file is None:
            self._file = self._stack.enter_context(output(self._path))
        return self._file

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"'{self._path}' cannot be written: {error.strerror}", code="unwritable_file")
