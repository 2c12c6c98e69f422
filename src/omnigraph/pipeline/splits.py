"""Inputs cut into splits, and splits read as records.

A split of JSONL is a range of bytes and owns the lines whose first byte lies in it, so any cut is a good one, and
nobody has to look for line ends beforehand. Compressed files cannot be cut.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.engine.ingest.record_reader import LINE_BYTES_MAX, read_text
from omnigraph.engine.ingest.records import Faults, RecordSet
from omnigraph.engine.ingest.tabular import Stretch, read_table_file, stretches
from omnigraph.operations.load import file_kind, known_kind
from omnigraph.pipeline.job import Job
from omnigraph.storage.files.input_files import DataFile, find_files, inflate, is_compressed

SPLIT_BYTES = 64 << 20
SPLIT_BYTES_MIN = 8 << 20
_LOOK_BYTES = 64 << 10
_INFLATION = 6
"""How much larger compressed text is presumed to be once it is read."""


@dataclass(frozen=True, slots=True)
class Split:
    """A part of the input: a range of bytes of JSONL, or a stretch of a table; `label` is what errors call the file."""

    number: int
    file: DataFile
    label: str | None
    start: int = 0
    end: int = 0
    stretch: Stretch | None = None

    @property
    def is_compressed(self) -> bool:
        """Whether the bytes are gzip."""
        return is_compressed(self.file.base)


@dataclass(frozen=True)
class Input:
    """All of an input, cut; `bytes` is its size once it is read."""

    splits: tuple[Split, ...]
    bytes: int


def plan_input(
    patterns: Sequence[str],
    environ: Mapping[str, str],
    parallelism: int,
    *,
    split_bytes: int | None = None,
    delimiter: str | None = None,
) -> Input:
    """Find the files of an input and cut them, by default into as many splits as keep everybody busy."""
    files = find_files(patterns, environ, lambda name: file_kind(name) is not None, delimiter=delimiter)
    total = sum(file.size for file in files)
    size = split_bytes or _split_bytes(total, parallelism)
    splits: list[Split] = []
    read = 0
    for file in files:
        if known_kind(file) == "table":
            for stretch in stretches(file, size):
                splits.append(Split(len(splits), file, file.name, stretch=stretch))
                read += stretch.bytes
        elif is_compressed(file.base):
            splits.append(Split(len(splits), file, file.name, 0, file.size))
            read += file.size * _INFLATION
        else:
            read += file.size
            splits += _ranges(file, file.name, size, len(splits))
    return Input(tuple(splits), read)


def cut_lines(file: DataFile, parallelism: int, *, split_bytes: int | None = None) -> list[Split]:
    """The splits of one file of lines."""
    return _ranges(file, None, split_bytes or _split_bytes(file.size, parallelism), 0)


def _split_bytes(total: int, parallelism: int) -> int:
    return max(SPLIT_BYTES_MIN, min(SPLIT_BYTES, -(-total // max(parallelism, 1))))


def _ranges(file: DataFile, label: str | None, size: int, first: int) -> list[Split]:
    starts = range(0, max(file.size, 1), size)
    return [
        Split(number, file, label, start, min(start + size, file.size)) for number, start in enumerate(starts, first)
    ]


@dataclass
class Reading:
    """A split on its way through a task; `lines` counts what was read so far."""

    job: Job
    split: Split
    faults: Faults
    lines: int = 0

    def chunks(self) -> Iterator[dict[str, list[RecordSet]]]:
        """Table key → records, of parts that fit memory; lines of JSONL are numbered within the split, from 1."""
        if self.split.stretch is not None:
            for key, part in read_table_file(self.split.file, self.job.catalog, self.faults, self.split.stretch):
                yield {key: [part]}
            return
        for text in texts_of(self.split):
            first = self.lines + 1
            self.lines += count_lines(text)
            yield read_text(text, self.job.catalog, self.faults, self.split.label, first)


def texts_of(split: Split) -> Iterable[bytes]:
    """The text of a split of JSONL, in pieces of whole lines that fit memory."""
    return inflate(split.file, line_bytes_max=LINE_BYTES_MAX) if split.is_compressed else [own_lines(split)]


def count_lines(text: bytes) -> int:
    """The number of lines; the last one may lack its end."""
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


def own_lines(split: Split) -> bytes:
    """The lines that begin within the split; where they do is found first, so that the text is in memory once."""
    first, last = _line_from(split.file, split.start), _line_from(split.file, split.end)
    return split.file.read(first, last) if first < last else b""


def _line_from(file: DataFile, place: int) -> int:
    """Where the first line begins from a place on; the end of the file if none does."""
    if place == 0:
        return 0
    # From the byte before: if that ends a line, the next one begins at the place itself.
    for start in range(place - 1, file.size, _LOOK_BYTES):
        end = file.read(start, start + _LOOK_BYTES).find(b"\n")
        if end >= 0:
            return start + end + 1
    return file.size
