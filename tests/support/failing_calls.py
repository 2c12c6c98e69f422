"""Every call that changes a file, failed once: the calls of each write of `failing_disk`, and their outcomes.

`failing_calls.c` counts and fails the calls. It takes effect in a process that loads it at its start, so `run_case`
starts one for each write.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, NamedTuple

from support.failing_disk import Case

SOURCE = Path(__file__).with_suffix(".c")
Selection = Literal["kinds", "every"]


class Failure(NamedTuple):
    """A call that failed and what became of the write."""

    kind: str
    """`create`, `write`, `truncate`, `fsync`, `rename`, `link`, `unlink` or `mkdir`."""
    path: str
    outcome: str
    """`refused`, `complete` or `damaged`."""
    report: str
    """The error of a damaged graph."""


def compiler() -> str | None:
    """The C compiler of the machine."""
    return shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")


def build(folder: Path) -> Path:
    """Compile the library."""
    library = folder / "failing_calls.so"
    command = [compiler() or "cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return library


def run_case(name: str, seed: Path, folder: Path, library: Path, selection: Selection) -> list[Failure]:
    """Fail calls of a write, one per run, in a process of its own."""
    environ = {**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": str(SOURCE.parents[1])}
    command = [sys.executable, "-m", "support.failing_calls", name, str(seed), str(folder), selection, str(library)]
    ended = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True, text=True)
    return [Failure(*json.loads(line)) for line in ended.stdout.splitlines()]


class Disk:
    """The library, which this process has loaded at its start."""

    def __init__(self, library: str, record: Path) -> None:
        self._calls = ctypes.CDLL(library)
        self._record = record

    @contextmanager
    def failing(self, root: Path, call: int, error: int) -> Iterator[None]:
        """Within the block, fail one call below a folder (0: none)."""
        started = self._calls.disk_start(os.fsencode(root), os.fsencode(self._record), ctypes.c_long(call), error)
        assert started == 0
        try:
            yield
        finally:
            self._calls.disk_stop()

    def calls(self) -> list[tuple[str, str]]:
        """Kind and path of every call; the kind of the one that failed begins with `!`."""
        lines = self._record.read_text().splitlines()
        return [(kind, path) for kind, path in (line.split("\t") for line in lines)]


def selected(calls: Sequence[tuple[str, str]], selection: Selection) -> list[int]:
    """Numbers of calls to fail: all, or the first and last of each kind and the last write of each file."""
    numbers = range(1, len(calls) + 1)
    if selection == "every":
        return list(numbers)
    firsts = {calls[number - 1][0]: number for number in reversed(numbers)}
    lasts = {calls[number - 1][0]: number for number in numbers}
    ends = {calls[number - 1]: number for number in numbers if calls[number - 1][0] == "write"}
    return sorted({*firsts.values(), *lasts.values(), *ends.values()})


def main(name: str, seed: str, folder: str, selection: Selection, library: str) -> None:
    """Write a line of JSON for each call that failed."""
    works = Path(folder) / "works"
    disk = Disk(library, Path(folder) / "calls")
    case = Case.of(name, Path(seed), works, disk.failing(works / "graph", 0, 0))
    numbers = selected(disk.calls(), selection)
    shutil.rmtree(works)
    for number in numbers:
        copy = Path(tempfile.mkdtemp(dir=folder)) / "copy"
        error = errno.ENOSPC if number % 2 else errno.EIO
        report = ""
        try:
            outcome: str = case.run(Path(seed), copy, disk.failing(copy / "graph", number, error))
        except Exception:
            outcome, report = "damaged", traceback.format_exc()
        shutil.rmtree(copy.parent)
        for kind, path in disk.calls():
            if kind.startswith("!"):
                print(json.dumps(Failure(kind[1:], path, outcome, report)), flush=True)  # noqa: T201 (its result)


if __name__ == "__main__":
    main(*sys.argv[1:])
