"""Offline embedding as a job: a task per split puts vectors into its lines, the driver puts the parts together.

Lines keep their order, and the output appears whole or not at all, as when one process does it.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import get_config
from omnigraph.embedding.offline import (
    Counts,
    EmbedReport,
    RequestedMode,
    Rewriting,
    WrongLine,
    check_model,
    line_error,
)
from omnigraph.embedding.rows import Selector
from omnigraph.embedding.specification import Specification
from omnigraph.errors import InputError
from omnigraph.pipeline.findings import Raised
from omnigraph.pipeline.job import EMBED_SETTINGS
from omnigraph.pipeline.runner import Runner
from omnigraph.pipeline.splits import Split, own_lines, plan_input
from omnigraph.storage.location import Location, locate
from omnigraph.storage.objects import object_store

_PURPOSE = "'omnigraph embed'"


@dataclass(frozen=True)
class EmbedJob:
    """What all tasks know; `parts` is where they leave their lines."""

    specification: Specification
    mode: RequestedMode
    types: frozenset[str]
    selectors: tuple[Selector, ...]
    environ: Mapping[str, str]
    parts: Location

    def client(self) -> EmbeddingClient | None:
        """The embeddings of this process; cleaning needs none."""
        return None if self.mode == "clean" else EmbeddingClient(get_config(self.environ, needed_by=_PURPOSE))

    def rewriting(self) -> Rewriting:
        """A pass over some lines."""
        return Rewriting(self.specification, self.client(), self.mode, self.types, self.selectors)


@dataclass(frozen=True)
class Embedded:
    """What became of a split: how many lines it has, what was done, or what is wrong with which line."""

    lines: int
    counts: Counts
    name: str = ""
    wrong: tuple[int, Raised] | None = None


def embed_split(job: EmbedJob, split: Split) -> Embedded:
    """Put vectors into the lines of one split."""
    text = own_lines(split)
    rewriting = job.rewriting()
    sink = io.BytesIO()
    lines = text.count(b"\n")
    try:
        for line in rewriting.run(io.BytesIO(text), at_start=split.start == 0):
            sink.write(line.encode() + b"\n")
    except WrongLine as wrong:
        return Embedded(lines, rewriting.counts, wrong=(wrong.line, Raised.of(wrong.error)))
    name = f"{split.number:05}-{uuid4().hex}"
    object_store(job.parts, sync=False).write(name, sink.getvalue())
    return Embedded(lines, rewriting.counts, name)


def embed_files(
    runner: Runner,
    source: str,
    output: str,
    specification: Specification,
    *,
    environ: Mapping[str, str],
    mode: RequestedMode = "fill",
    types: Collection[str] = (),
    selectors: Sequence[Selector] = (),
    split_bytes: int | None = None,
) -> EmbedReport:
    """Write a JSONL file with vectors; results and errors are those of `embedding.offline.embed_file`."""
    target = Path(output).absolute()
    parts = locate(target.with_name(f".{target.name}.{uuid4().hex}.parts"), environ)
    settings = {name: value for name, value in environ.items() if name.startswith(EMBED_SETTINGS)}
    job = EmbedJob(specification, mode, frozenset(types), tuple(selectors), settings, parts)
    client = job.client()
    check_model(specification, client)
    plan = plan_input([source], environ, runner.parallelism, split_bytes=split_bytes)
    if len({split.file.name for split in plan.splits}) != 1 or any(split.is_compressed for split in plan.splits):
        raise InputError(f"'{source}' is not one plain JSONL file", hint="embed files one by one, uncompressed")
    folder = object_store(parts, sync=False)
    counts = Counts()
    names: list[str] = []
    before = 0
    try:
        for done in runner.run("embed", embed_split, job, plan.splits):
            if done.wrong is not None:
                line, raised = done.wrong
                raise line_error(source, before + line, raised.error())
            before += done.lines
            counts += done.counts
            names.append(done.name)
        _join(folder.read, names, target)
    finally:
        folder.delete_folder("")
    return counts.report(source, output, job.rewriting().mode, specification, client)


def _join(read: Callable[[str], bytes | None], names: Sequence[str], target: Path) -> None:
    """Put the parts together; the output appears when it is whole."""
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"{target.name}.tmp")
    try:
        with temporary.open("wb") as file:
            for name in names:
                file.write(read(name) or b"")
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
