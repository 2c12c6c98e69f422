"""Offline embedding as a job gives the file, the counts and the errors one process gives."""

from __future__ import annotations

import json

import pytest

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.offline import embed_file
from omnigraph.embedding.rows import parse_selector
from omnigraph.embedding.specification import Specification, TypeTarget
from omnigraph.errors import InputError, ModelMismatch, OmniGraphError
from omnigraph.pipeline.embed import embed_files
from omnigraph.pipeline.runner import InlineRunner

SPEC = Specification(4, {"Object": TypeTarget("vec", ("label",))})
MOCK = {"OMNIGRAPH_EMBEDDINGS_MOCK": "1"}


def lines(count: int) -> list[str]:
    found = ["// objects", ""]
    for n in range(count):
        found.append(json.dumps({"type": "Object", "data": {"label": f"thing {n}"}}))
        found.append(json.dumps({"edge": "Near", "from": str(n), "to": "0"}))
        found.append(json.dumps({"type": "Object", "data": {"label": f"had {n}", "vec": [1, 0, 0, 0]}}))
    return found


def outcome(run, output):
    try:
        report = run()
    except OmniGraphError as error:
        assert not output.exists()
        return type(error).__name__, error.message, error.code
    return report.to_json() | {"output": None}, output.read_bytes()


@pytest.mark.parametrize("split_bytes", [40, 200])
@pytest.mark.parametrize("mode", ["fill", "reembed_all", "clean"])
@pytest.mark.parametrize(
    "wrong", [None, "{", '{"type": "Object"}', "\ufeff{}", '{"type": "Object", "data": {"label": "\\ud800"}}']
)
def test_same_as_one_process(tmp_path, mode, split_bytes, wrong):
    text = lines(8)
    if wrong is not None:
        text.insert(11, wrong)
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(text))
    one, job = tmp_path / "one.jsonl", tmp_path / "job" / "out.jsonl"
    expected = outcome(
        lambda: embed_file(source, one, SPEC, connect=lambda: EmbeddingClient(EmbeddingConfig("mock", "")), mode=mode),
        one,
    )
    found = outcome(
        lambda: embed_files(
            InlineRunner(), str(source), str(job), SPEC, environ=MOCK, mode=mode, split_bytes=split_bytes
        ),
        job,
    )
    assert found == expected
    assert [path for path in tmp_path.rglob("*") if "parts" in path.name or path.suffix == ".tmp"] == []


def test_selectors_and_types(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(lines(5)))
    report = embed_files(
        InlineRunner(),
        str(source),
        str(tmp_path / "out.jsonl"),
        SPEC,
        environ=MOCK,
        types=["Object"],
        selectors=[parse_selector("label=thing 3")],
        split_bytes=50,
    )
    assert (report.mode, report.rows, report.selected_rows, report.embedded_rows) == ("reembed_selected", 15, 1, 1)


def test_a_model_that_is_not_the_recorded_one(tmp_path):
    source = tmp_path / "in.jsonl"
    source.write_text("{}\n")
    with pytest.raises(ModelMismatch):
        embed_files(InlineRunner(), str(source), str(tmp_path / "o"), Specification(4, SPEC.types, "m"), environ=MOCK)


def test_one_plain_file(tmp_path):
    for name in ("a", "b"):
        (tmp_path / f"{name}.jsonl").write_text("{}\n")
    with pytest.raises(InputError, match="not one plain JSONL file"):
        embed_files(InlineRunner(), str(tmp_path / "*.jsonl"), str(tmp_path / "o"), SPEC, environ=MOCK)
