"""Offline embedding on Spark writes the file one process writes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from omnigraph.embedding.specification import Specification, TypeTarget
from omnigraph.errors import InputError
from omnigraph.pipeline.embed import embed_lines
from omnigraph.pipeline.runner import InlineRunner, Runner
from omnigraph.spark import SparkRunner
from omnigraph.storage.files import get_file

SPEC = Specification(4, {"Note": TypeTarget("vec", ("text",))})
MOCK = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}


def notes(root: Path, count: int) -> Path:
    path = root / "notes.jsonl"
    path.write_text("".join(json.dumps({"type": "Note", "data": {"text": f"note {n}"}}) + "\n" for n in range(count)))
    return path


def outcome(runner: Runner, source: Path, output: Path) -> Any:
    try:
        report = embed_lines(runner, get_file(source), output, SPEC, environ=MOCK, split_bytes=300)
    except InputError as error:
        assert not output.exists()
        return error.message, error.code
    return report, output.read_bytes()


def test_the_same_file(tmp_path: Path, spark: Any) -> None:
    source, output = notes(tmp_path, 40), tmp_path / "out.jsonl"
    here = outcome(InlineRunner(), source, output)
    output.unlink()
    assert outcome(SparkRunner(spark), source, output) == here
    output.unlink()
    with source.open("a") as file:
        file.write('{"type": "Note"}\n')
    said = outcome(SparkRunner(spark), source, output)
    assert said == outcome(InlineRunner(), source, output)
    assert "line 41 of" in said[0]
    assert [path.name for path in tmp_path.iterdir()] == ["notes.jsonl"]
