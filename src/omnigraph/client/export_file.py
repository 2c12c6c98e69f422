"""The JSONL file of an export."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from omnigraph.errors import InputError


class ExportFile:
    """A JSONL file that is written while its lines arrive; it is removed if the export fails.

    The file is opened when the first bytes arrive or the export ends, so that a refused export leaves an earlier file
    as it is.
    """

    def __init__(self, path: str) -> None:
        self._path = Path(path)
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
            if self._file is not None:
                self._file.close()
                if kind is not None:
                    self._path.unlink(missing_ok=True)
        except OSError as failure:
            raise self._unwritable(failure) from None

    def _opened(self) -> BinaryIO:
        if self._file is None:
            self._file = self._path.open("wb")
        return self._file

    def _unwritable(self, error: OSError) -> InputError:
        return InputError(f"'{self._path}' cannot be written: {error.strerror}", code="unwritable_file")
