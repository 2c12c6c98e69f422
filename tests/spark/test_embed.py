"""Embedding of a file on Spark equals that of one process."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.embedding.specification import Specification, TypeTarget
from omnigraph.errors import InputError
from omnigraph.operations.load.load_request import LoadRequest
from omnigraph.pipeline.embed import EmbedRequest, embed_lines
from omnigraph.pipeline.load import load_source
from omnigraph.pipeline.runner import InlineRunner, Runner
from omnigraph.pipeline.splits import plan_input
from omnigraph.pipeline.staged_input import FileSource
from omnigraph.spark import SparkRunner
from omnigraph.storage.files.input_files import get_file
from support.hurry import HurriedRunner
from support.provider import running

SPEC = Specification(4, {"Note": TypeTarget("vec", ("text",))})
MOCK = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}


def notes(root: Path, count: int) -> Path:
    path = root / "notes.jsonl"
    path.write_text("".join(json.dumps({"type": "Note", "data": {"text": f"note {n}"}}) + "\n" for n in range(count)))
    return path


def outcome(runner: Runner, source: Path, output: Path, environ: dict[str, str] = MOCK) -> Any:
    try:
        report = embed_lines(runner, get_file(source), EmbedRequest(output, SPEC), environ=environ, split_bytes=300)
    except InputError as error:
        assert not output.exists()
        return error.message, error.code
    return report, output.read_bytes()


def test_output_equals_that_of_one_process(tmp_path: Path, spark: Any) -> None:
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


def test_rate_limit_applies_to_all_workers_together(tmp_path: Path, spark: Any) -> None:
    source, output = notes(tmp_path, 100), tmp_path / "out.jsonl"
    with running() as provider:
        here = outcome(InlineRunner(), source, output, provider.environ())
        requests = len(provider.seen)
        # The window of the provider is shorter, because requests arrive with a delay.
        provider.allows(6, 1.5)
        provider.delay_s = 0.05
        output.unlink()
        runner = HurriedRunner(SparkRunner(spark))
        assert outcome(runner, source, output, provider.environ(REQUESTS_PER_MINUTE=6)) == here
        # If the limit applied per worker, every second request would be rejected.
        assert provider.refused <= 2
        assert len(provider.seen) == 2 * requests + provider.refused
        assert provider.peak <= 2


def test_load_respects_concurrency_limit(tmp_path: Path, spark: Any) -> None:
    schema = 'node Note { text: String  vec: Vector(4) @embed("text") }'
    with running() as provider:
        provider.delay_s = 0.05
        environ = provider.environ(REQUESTS_AT_ONCE=1)
        graph = og.init(tmp_path / "graph.omni", schema, sync=False, environ=environ)
        frame = spark.range(0, 40, 1, 8).selectExpr("concat('note ', id) as text")
        result = graph.load({"Note": frame}, mode="append")
        assert result.embedded_rows == 40
        path = notes(tmp_path, 40)
        source = FileSource(plan_input([str(path)], {}, 2, split_bytes=300))
        load_source(graph._repository, SparkRunner(spark), source, LoadRequest("append", environ=environ))
    assert provider.peak == 1
    assert graph.snapshot().tables["node:Note"].pin.row_count == 80
