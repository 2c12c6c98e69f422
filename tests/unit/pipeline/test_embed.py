"""Offline embedding of files: one pass and many tasks give the same file."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.jsonl_rows import parse_selector
from omnigraph.embedding.mock import mock_vectors
from omnigraph.embedding.specification import Specification, TypeTarget
from omnigraph.errors import EmbeddingError, InputError, ModelMismatch, OmniGraphError, StorageError
from omnigraph.pipeline.embed import EmbedRequest, connect, embed_lines
from omnigraph.pipeline.runner import InlineRunner
from omnigraph.storage.files.input_files import get_file
from support.provider import running

SPEC = Specification(4, {"Object": TypeTarget("vec", ("label", "materials")), "Person": TypeTarget("face", ("name",))})

LINES = [
    "// a museum",
    '{"type": "Object", "data": {"label": "Comb ", "materials": ["bone", null, "silver"]}}',
    "",
    '{"type":"Object","data":{"label":"Ring","vec":[1,2,3,4]}, "note": 1.10}',
    '{"type":"Object","data":{"vec":null,"label":"Cup"}}',
    "   ",
    '{"type":"Object","data":{"label":"Bowl","vec":[]}}',
    '{"type":"Person","data":{"name":"Ana"}}',
    '{"type":"Place","data":{"name":"Rome"}}',
    '{"edge": "Owns",  "from": "ana", "to": "comb"}',
    "  // the end",
]
ROWS = 7
TEXTS = {
    "Comb": "type: Object\nlabel: Comb\nmaterials: bone, silver",
    "Ring": "type: Object\nlabel: Ring",
    "Cup": "type: Object\nlabel: Cup",
    "Bowl": "type: Object\nlabel: Bowl",
    "Ana": "type: Person\nname: Ana",
}


class Recording(EmbeddingClient):
    """A mock client that records its calls."""

    def __init__(self, model="m-1"):
        super().__init__(EmbeddingConfig("mock", model))
        self.asked = []

    def embed(self, texts, dim, role="document"):
        self.asked.append((list(texts), dim, role))
        return super().embed(texts, dim, role)


@pytest.fixture
def client():
    return Recording()


def embed(source, output, spec=SPEC, *, environ=None, connect=connect, split_bytes=None, types=(), **options):
    request = EmbedRequest(output, spec, types=frozenset(types), **options)
    return embed_lines(
        InlineRunner(), get_file(source), request, environ=environ or {}, connect=connect, split_bytes=split_bytes
    )


@pytest.fixture
def run(tmp_path, client):
    def run(lines=LINES, *, spec=SPEC, output="out.jsonl", select=(), connect=lambda _: client, **options):
        source = tmp_path / "in.jsonl"
        source.write_bytes(lines if isinstance(lines, bytes) else "\n".join(lines).encode())
        selectors = tuple(parse_selector(text) for text in select)
        return embed(source, tmp_path / output, spec, connect=connect, selectors=selectors, **options)

    return run


@pytest.fixture
def written(tmp_path):
    return lambda: (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()


def names(client):
    known = {text: name for name, text in TEXTS.items()}
    return [known[text] for texts, _, _ in client.asked for text in texts]


def counts(report):
    return report.mode, report.rows, report.selected_rows, report.embedded_rows, report.cleaned_rows


MODES = {
    # options → mode, selected, embedded, cleaned, names of embedded rows
    "fill": ({}, "fill_missing", 6, ["Comb", "Cup", "Bowl", "Ana"], 0),
    "fill one type": ({"types": ["Object"]}, "fill_missing", 4, ["Comb", "Cup", "Bowl"], 0),
    "fill two types": ({"types": ["Person", "Place"]}, "fill_missing", 2, ["Ana"], 0),
    "fill an unknown type": ({"types": ["Nobody"]}, "fill_missing", 0, [], 0),
    "selected": ({"select": ["label=Ring"]}, "reembed_selected", 1, ["Ring"], 0),
    "selected twice": ({"select": ["label=Ring", "Person:name=Ana"]}, "reembed_selected", 2, ["Ring", "Ana"], 0),
    "selected of a type": ({"select": ["name=Ana"], "types": ["Object"]}, "reembed_selected", 0, [], 0),
    "selected without a target": ({"select": ["name=Rome"]}, "reembed_selected", 1, [], 0),
    "all": ({"mode": "reembed_all"}, "reembed_all", 6, ["Comb", "Ring", "Cup", "Bowl", "Ana"], 0),
    "all, selected": ({"mode": "reembed_all", "select": ["label=Cup"]}, "reembed_all", 1, ["Cup"], 0),
    "clean": ({"mode": "clean"}, "clean", 6, [], 3),
    "clean, selected": ({"mode": "clean", "select": ["Object:label=Ring"]}, "clean", 1, [], 1),
    "clean one type": ({"mode": "clean", "types": ["Person"]}, "clean", 1, [], 0),
}


@pytest.mark.parametrize(("options", "mode", "selected", "embedded", "cleaned"), MODES.values(), ids=MODES)
def test_mode_selects_the_embedded_rows(run, client, options, mode, selected, embedded, cleaned):
    report = run(**options)
    assert counts(report) == (mode, ROWS, selected, len(embedded), cleaned)
    assert names(client) == embedded
    assert report.model == ("" if mode == "clean" else "m-1")
    assert report.dimension == 4


def test_vectors_are_written_into_the_lines(run, written):
    run()
    lines = written()
    assert lines[0] == LINES[0]
    assert lines[2] == LINES[3], "a row that has its vector is copied to the letter"
    assert lines[6:] == LINES[8:]
    assert len(lines) == 9, "blank lines are dropped"
    comb, cup, bowl, ana = (json.loads(lines[place]) for place in (1, 3, 4, 5))
    assert list(comb["data"]) == ["label", "materials", "vec"], "a new property goes last"
    assert list(cup["data"]) == ["vec", "label"], "an old one stays where it was"
    for made, target, name in ((comb, "vec", "Comb"), (cup, "vec", "Cup"), (bowl, "vec", "Bowl"), (ana, "face", "Ana")):
        stored = np.array(made["data"][target]).astype(np.float32)
        assert (stored == mock_vectors([TEXTS[name]], 4)[0]).all()


def test_texts_are_embedded_as_documents(run, client):
    run()
    assert [(dim, role) for _, dim, role in client.asked] == [(4, "document")]


def test_clean_removes_the_property_without_a_client(run, written):
    def refuse(_):
        raise AssertionError("no client is built")

    run(mode="clean", connect=refuse, spec=Specification(4, SPEC.types, "another-model"))
    lines = written()
    assert lines[1] == LINES[1]
    assert lines[2] == '{"type":"Object","data":{"label":"Ring"},"note":1.1}'
    assert lines[3] == '{"type":"Object","data":{"label":"Cup"}}'


def test_report_has_all_counts(run, tmp_path):
    report = run(types=["Object"])
    source, output = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    assert report.to_json() == {
        "input": str(source),
        "output": str(output),
        "rows": 7,
        "selected_rows": 4,
        "embedded_rows": 3,
        "cleaned_rows": 0,
        "mode": "fill_missing",
        "dimension": 4,
        "model": "m-1",
    }
    assert report.describe() == f"embed fill_missing width=4: 3 embedded, 0 cleaned, 4 selected; {source} -> {output}"


def test_second_fill_changes_nothing(run, tmp_path, client):
    run()
    first = (tmp_path / "out.jsonl").read_bytes()
    again = run(first)
    assert again.embedded_rows == 0
    assert (tmp_path / "out.jsonl").read_bytes() == first


def test_line_ends_and_byte_order_mark(run, written, tmp_path):
    report = run(b'\xef\xbb\xbf// c\r\n{"type":"Person","data":{"name":"\xc3\x84na"}}\r\n\r\n{"edge":1}')
    assert report.rows == 2
    assert b"\r" not in (tmp_path / "out.jsonl").read_bytes()
    assert (tmp_path / "out.jsonl").read_bytes().endswith(b'{"edge":1}\n')
    assert written()[0] == "// c"
    assert '"Äna"' in written()[1]


def test_other_line_separators_are_part_of_a_row(run):
    assert run([json.dumps({"type": "Person", "data": {"name": "a\u2028b\x85c"}}, ensure_ascii=False)]).rows == 1


def test_empty_file(run, tmp_path):
    assert counts(run(b"")) == ("fill_missing", 0, 0, 0, 0)
    assert (tmp_path / "out.jsonl").read_bytes() == b""


def test_rows_are_embedded_in_batches_and_stay_in_order(run, client, written, monkeypatch):
    monkeypatch.setattr("omnigraph.embedding.offline._TEXTS_PER_FLUSH", 3)
    monkeypatch.setattr("omnigraph.embedding.offline._LINES_PER_FLUSH", 5)
    lines = []
    for number in range(20):
        lines.append(json.dumps({"type": "Person", "data": {"name": f"p{number}"}}))
        lines.append(f"// {number}")
        lines.extend(['{"edge": 1}'] * (number % 4))
    assert run(lines).embedded_rows == 20
    assert len(client.asked) > 7
    kept = [line if line.startswith(("//", '{"edge"')) else json.loads(line)["data"]["name"] for line in written()]
    wanted = [line if line.startswith(("//", '{"edge"')) else json.loads(line)["data"]["name"] for line in lines]
    assert kept == wanted


def test_output_may_be_the_input(run, tmp_path):
    assert run(output="in.jsonl").embedded_rows == 4
    assert run((tmp_path / "in.jsonl").read_bytes()).embedded_rows == 0


def test_folders_of_the_output_are_created(run, tmp_path):
    run(output="a/b/out.jsonl")
    assert (tmp_path / "a/b/out.jsonl").exists()
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["out.jsonl"]


# -- failures ----------------------------------------------------------------------------------------


def test_recorded_model_must_equal_the_configured_one(run, client, tmp_path):
    spec = Specification(4, SPEC.types, "m-2", "spec.json")
    with pytest.raises(ModelMismatch, match=r"'spec\.json'.*'m-2'.*'m-1'"):
        run(spec=spec)
    assert client.asked == []
    assert not (tmp_path / "out.jsonl").exists()
    assert run(spec=Specification(4, SPEC.types, "m-1")).model == "m-1"


BAD_LINES = [
    ("{", "not JSON"),
    ("[1]", "expected a JSON object"),
    ('{"type": "Object"}', "needs an object 'data'"),
    ('{"type": "Unknown", "data": 1}', "needs an object 'data'"),
    ('{"type": 1}', "'type' must be a string"),
    ('{"type":"Person","data":{"name":"\\ud800"}}', "surrogate"),
    ('{"type":"Person","data":{"name":' + "[" * 100_000 + "]" * 100_000 + "}}", "nested too deeply"),
    ('{"type":"Person","data":{"name":' + "[" * 600 + "]" * 600 + "}}", "nested too deeply"),
]


@pytest.mark.parametrize(("line", "said"), BAD_LINES, ids=range(len(BAD_LINES)))
def test_bad_line_is_reported_and_the_output_is_unchanged(run, tmp_path, line, said):
    (tmp_path / "out.jsonl").write_text("old")
    with pytest.raises(InputError) as caught:
        run([*LINES, "", line, *LINES])
    assert said in caught.value.message
    assert f"line {len(LINES) + 2} of '{tmp_path / 'in.jsonl'}'" in caught.value.message
    assert (tmp_path / "out.jsonl").read_text() == "old"
    assert not (tmp_path / "out.jsonl.tmp").exists()


def test_invalid_utf8_is_refused(run):
    with pytest.raises(InputError, match=r"line 2 of .* not UTF-8"):
        run(b'{"edge":1}\n{"a":"\xff"}\n')


def test_failing_provider_leaves_no_file(run, tmp_path):
    class Failing(EmbeddingClient):
        def embed(self, *_):
            raise EmbeddingError("the provider is down", hint="wait", text_index=2)

    (tmp_path / "out.jsonl").write_text("old")
    with pytest.raises(EmbeddingError) as caught:
        run(connect=lambda _: Failing(EmbeddingConfig("mock", "")))
    # The third text is that of the bowl.
    assert caught.value.message == f"line 7 of '{tmp_path / 'in.jsonl'}': the provider is down"
    assert (caught.value.code, caught.value.hint) == ("embedding_error", "wait")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl", "out.jsonl"]
    assert (tmp_path / "out.jsonl").read_text() == "old"


def test_temporary_file_is_removed_after_an_interrupt(run, tmp_path):
    class Interrupted(EmbeddingClient):
        def embed(self, *_):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(connect=lambda _: Interrupted(EmbeddingConfig("mock", "")))
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_unconfigured_client_fails_before_files_are_created(run, tmp_path):
    def unconfigured(_):
        raise EmbeddingError("no provider is configured")

    with pytest.raises(EmbeddingError):
        run(connect=unconfigured, output="a/out.jsonl")
    assert not (tmp_path / "a").exists()


def test_missing_input_is_refused(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        embed(tmp_path / "none.jsonl", tmp_path / "a/out.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        embed(tmp_path, tmp_path / "a/out.jsonl")
    assert list(tmp_path.iterdir()) == []


def test_unwritable_output_is_refused(run, tmp_path):
    (tmp_path / "folder").mkdir()
    with pytest.raises(StorageError, match=r"'.*folder' cannot be written"):
        run(output="folder")
    with pytest.raises(StorageError, match="cannot be written"):
        run(output="in.jsonl/out.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "in.jsonl"]


def test_full_disk_is_reported(run, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match="No space left") as caught:
        run()
    assert caught.value.code == "disk_full"
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_http_provider(tmp_path, written):
    source = tmp_path / "in.jsonl"
    source.write_text("\n".join(LINES))
    with running() as provider:
        embed(source, tmp_path / "out.jsonl", environ=provider.environ("gemini"))
    assert sorted(seen.body["content"]["parts"][0]["text"] for seen in provider.seen) == sorted(
        TEXTS[name] for name in ("Comb", "Cup", "Bowl", "Ana")
    )
    assert {seen.body["taskType"] for seen in provider.seen} == {"RETRIEVAL_DOCUMENT"}
    assert len(json.loads(written()[1])["data"]["vec"]) == 4


# -- many tasks ---------------------------------------------------------------------------------------


def many_lines(wrong):
    found = ["// objects", ""]
    for n in range(8):
        found.append(json.dumps({"type": "Object", "data": {"label": f"thing {n}"}}))
        found.append(json.dumps({"edge": "Near", "from": str(n), "to": "0"}))
        found.append(json.dumps({"type": "Object", "data": {"label": f"had {n}", "vec": [1, 0, 0, 0]}}))
    return [*found[:11], *wrong, *found[11:]]


WRONG = {
    "no error": [],
    "invalid JSON": ["{"],
    "missing data": ['{"type": "Object"}'],
    "byte order mark inside": ["\ufeff{}"],
    "lone surrogate": ['{"type": "Object", "data": {"label": "\\ud800"}}'],
    "two errors": ["[]", '{"type": "Object"}'],
}


@pytest.mark.parametrize("split_bytes", [1, 40, 200])
@pytest.mark.parametrize("options", [{}, {"mode": "reembed_all"}, {"mode": "clean"}, {"select": ["label=thing 3"]}])
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
def test_any_split_gives_the_same_file(run, tmp_path, split_bytes, options, wrong):
    def outcome(**more):
        output = tmp_path / "out.jsonl"
        output.unlink(missing_ok=True)
        try:
            report = run(many_lines(wrong), **options, **more)
        except OmniGraphError as error:
            assert not output.exists()
            return type(error).__name__, error.message, error.code
        return report, output.read_bytes()

    assert outcome(split_bytes=split_bytes) == outcome()
    assert {path.name for path in tmp_path.iterdir()} <= {"in.jsonl", "out.jsonl"}
