"""Offline embedding: one task per split adds vectors to its lines, the driver joins the results.

No graph is opened. Lines keep their order, and other lines are copied byte for byte. The output appears complete or not
at all. It may replace the input.
"""

from __future__ import annotations

import errno
import io
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from uuid import uuid4

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import get_config
from omnigraph.embedding.jsonl_rows import Selector
from omnigraph.embedding.offline import (
    EmbeddingCounts,
    EmbedReport,
    RequestedMode,
    Rewriting,
    WrongLine,
    check_model,
    line_error,
)
from omnigraph.embedding.rate_limit import share_settings
from omnigraph.embedding.specification import Specification
from omnigraph.errors import StorageError
from omnigraph.file_replacement import replacement
from omnigraph.pipeline.job import embed_settings
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.splits import Split, cut_lines, own_lines
from omnigraph.pipeline.violations import PackedError
from omnigraph.storage.files.input_files import DataFile

Connect = Callable[[Mapping[str, str]], EmbeddingClient]


def connect(settings: Mapping[str, str]) -> EmbeddingClient:
    """The client of this process, shared by all tasks that it runs."""
    return _client(tuple(sorted(settings.items())))


@lru_cache(maxsize=2)
def _client(settings: tuple[tuple[str, str], ...]) -> EmbeddingClient:
    return EmbeddingClient(get_config(dict(settings), needed_by="'omnigraph embed'"))


@dataclass(frozen=True)
class EmbedRequest:
    """An embedding of the lines of a JSONL file; `types` and `selectors` select the lines."""

    output: Path
    specification: Specification
    mode: RequestedMode = "fill"
    types: frozenset[str] = frozenset()
    selectors: tuple[Selector, ...] = ()


@dataclass(frozen=True)
class EmbedJob:
    """The constants of an embedding job. Tasks write their lines to the folder `parts`, next to the output."""

    request: EmbedRequest
    settings: Mapping[str, str]
    connect: Connect
    parts: Path

    def client(self) -> EmbeddingClient | None:
        """The embedding client; None in mode `clean`, which embeds nothing."""
        return None if self.request.mode == "clean" else self.connect(self.settings)

    def rewriting(self) -> Rewriting:
        """A new pass over some lines."""
        request = self.request
        return Rewriting(request.specification, self.client(), request.mode, request.types, request.selectors)


@dataclass(frozen=True)
class Embedded:
    """Result of a split: the number of lines, the counts, the file of its lines, or the number and error of a wrong
    line.
    """

    lines: int
    counts: EmbeddingCounts
    part: str
    wrong: tuple[int, PackedError] | None = None


def embed_split(job: EmbedJob, split: Split) -> Embedded:
    """Add vectors to the lines of one split."""
    text = own_lines(split)
    rewriting = job.rewriting()
    part = f"{split.number:05}-{uuid4().hex}"
    wrong = None
    try:
        with _writing(job.request.output), (job.parts / part).open("wb") as file:
            for line in rewriting.run(io.BytesIO(text), at_start=split.start == 0):
                file.write(line.encode() + b"\n")
    except WrongLine as error:
        wrong = error.line, PackedError.of(error.error)
    return Embedded(text.count(b"\n"), rewriting.counts, part, wrong)


def embed_lines(
    runner: Runner,
    file: DataFile,
    request: EmbedRequest,
    *,
    environ: Mapping[str, str],
    split_bytes: int | None = None,
    connect: Connect = connect,
) -> EmbedReport:
    """Write a JSONL file with vectors.

    Raises `InputError` with a line number for a bad row, and `ModelMismatch` before anything is embedded. On an error
    an existing output is unchanged. `connect` creates the client of a process.
    """
    target = Path(os.path.abspath(request.output))  # noqa: PTH100 (lexical: links are kept)
    parts = target.with_name(f".{target.name}.{uuid4().hex}.parts")
    settings, at_once = share_settings(embed_settings(environ), runner.parallelism)
    job = EmbedJob(replace(request, output=target), settings, connect, parts)
    client = job.client()
    check_model(request.specification, client)
    with _writing(request.output):
        target.parent.mkdir(parents=True, exist_ok=True)
        parts.mkdir()
    try:
        splits = cut_lines(file, runner.parallelism, split_bytes=split_bytes)
        done = list(_checked(file, runner.run("embed", embed_split, job, splits, at_once=at_once)))
        with _writing(request.output):
            _join([parts / one.part for one in done], target)
    finally:
        shutil.rmtree(parts, ignore_errors=True)
    counts = sum((one.counts for one in done), EmbeddingCounts())
    return counts.report(file.name, str(request.output), job.rewriting().mode, request.specification, client)


def _checked(file: DataFile, done: Iterator[Embedded]) -> Iterator[Embedded]:
    """Yield the results of the splits; raise the first wrong line, numbered within the file."""
    before = 0
    for one in done:
        if one.wrong is not None:
            line, raised = one.wrong
            raise line_error(file.name, before + line, raised.error())
        before += one.lines
        yield one


def _join(parts: Sequence[Path], target: Path) -> None:
    """Replace the output by the parts, one after the other."""
    with replacement(target) as file:
        for part in parts:
            with part.open("rb") as lines:
                shutil.copyfileobj(lines, file)
            part.unlink()


@contextmanager
def _writing(output: Path) -> Iterator[None]:
    """Convert an `OSError` on the output to a `StorageError` that names the output."""
    try:
        yield
    except OSError as error:
        code = "disk_full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else "unwritable_file"
        raise StorageError(f"'{output}' cannot be written: {error.strerror}", code=code) from error
