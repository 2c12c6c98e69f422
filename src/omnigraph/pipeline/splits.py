"""Division of an input into splits, and reading of splits as records.

A split of JSONL is a byte range. It contains the lines whose first byte is in the range, so any division is valid and
no line ends have to be found in advance. Compressed files are not divided.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from omnigraph.engine import tuning
from omnigraph.engine.ingest.record_reader import read_text
from omnigraph.engine.ingest.records import Faults, RecordSet
from omnigraph.engine.ingest.tabular import TableSplit, read_table_file, table_splits
from omnigraph.operations.load.record_sources import find_input_files, known_kind
from omnigraph.pipeline.job import Job
from omnigraph.storage.files.input_files import DataFile, inflate, is_compressed
from omnigraph.table_format import PLAIN, TableFormat

_LOOK_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Split:
    """A part of the input: a byte range of JSONL, or row groups of a table file. `label` names the file in errors."""

    number: int
    file: DataFile
    label: str | None
    start: int = 0
    end: int = 0
    table_split: TableSplit | None = None

    @property
    def is_compressed(self) -> bool:
        """True if the file is gzip."""
        return is_compressed(self.file.base)


@dataclass(frozen=True)
class Input:
    """An input, divided into splits. `bytes` is its estimated uncompressed size."""

    splits: tuple[Split, ...]
    bytes: int


def plan_input(
    patterns: Sequence[str],
    environ: Mapping[str, str],
    parallelism: int,
    *,
    split_bytes: int | None = None,
    format: TableFormat | None = None,
) -> Input:
    """Find the files of an input and divide them, by default into enough splits to occupy all workers."""
    files = find_input_files(patterns, environ, format or PLAIN)
    total = sum(file.size for file in files)
    size = split_bytes or _split_bytes(total, parallelism)
    splits: list[Split] = []
    read = 0
    for file in files:
        if known_kind(file) == "table":
            for table_split in table_splits(file, size):
                splits.append(Split(len(splits), file, file.name, table_split=table_split))
                read += table_split.bytes
        elif is_compressed(file.base):
            splits.append(Split(len(splits), file, file.name, 0, file.size))
            read += file.size * tuning.current.gzip_ratio
        else:
            read += file.size
            splits += _ranges(file, file.name, size, len(splits))
    return Input(tuple(splits), read)


def cut_lines(file: DataFile, parallelism: int, *, split_bytes: int | None = None) -> list[Split]:
    """Divide one JSONL file."""
    return _ranges(file, None, split_bytes or _split_bytes(file.size, parallelism), 0)


def _split_bytes(total: int, parallelism: int) -> int:
    limits = tuning.current
    return max(limits.split_bytes_min, min(limits.split_bytes_max, -(-total // max(parallelism, 1))))


def _ranges(file: DataFile, label: str | None, size: int, first: int) -> list[Split]:
    starts = range(0, max(file.size, 1), size)
    return [
        Split(number, file, label, start, min(start + size, file.size)) for number, start in enumerate(starts, first)
    ]


@dataclass
class SplitReader:
    """Reads the records of a split. `lines` counts the lines read so far."""

    job: Job
    split: Split
    faults: Faults
    lines: int = 0

    def chunks(self) -> Iterator[dict[str, list[RecordSet]]]:
        """Yield table key → records, in chunks that fit in memory. Lines of JSONL are numbered within the split, from
        1.
        """
        if self.split.table_split is not None:
            for key, part in read_table_file(self.split.file, self.job.catalog, self.faults, self.split.table_split):
                yield {key: [part]}
            return
        for text in texts_of(self.split):
            first = self.lines + 1
            self.lines += count_lines(text)
            yield read_text(text, self.job.catalog, self.faults, self.split.label, first)


def texts_of(split: Split) -> Iterable[bytes]:
    """The text of a JSONL split, in chunks of whole lines that fit in memory."""
    if not split.is_compressed:
        return [own_lines(split)]
    return inflate(split.file, line_bytes_max=tuning.current.record_bytes_max)


def count_lines(text: bytes) -> int:
    """The number of lines, including an unterminated last line."""
    return text.count(b"\n") + (not text.endswith(b"\n") and bool(text))


def own_lines(split: Split) -> bytes:
    """The lines that begin in the split. Their range is found first, so that the text is in memory only once."""
    first, last = _line_from(split.file, split.start), _line_from(split.file, split.end)
    return split.file.read(first, last) if first < last else b""


def _line_from(file: DataFile, offset: int) -> int:
    """The offset of the first line that begins at or after an offset; the end of the file if there is none."""
    if offset == 0:
        return 0
    # Start at the previous byte: if it ends a line, the next line begins at the offset itself.
    for start in range(offset - 1, file.size, _LOOK_BYTES):
        end = file.read(start, start + _LOOK_BYTES).find(b"\n")
        if end >= 0:
            return start + end + 1
    return file.size
