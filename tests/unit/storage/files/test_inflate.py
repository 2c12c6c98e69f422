"""Compressed input is read in bounded chunks, whatever its declared size."""

from __future__ import annotations

import gzip

import pytest

import omnigraph as og
from omnigraph.errors import InputError, RecordError
from omnigraph.operations.load import record_sources
from omnigraph.storage.files import input_files
from omnigraph.storage.files.input_files import find_files, inflate, inflated_chunks, inflates_beyond


def compressed(tmp_path, data, name="x.jsonl.gz"):
    (tmp_path / name).write_bytes(data)
    (file,) = find_files([str(tmp_path / name)], {}, bool)
    return file


def test_chunks_and_blocks_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(input_files, "_INFLATE_BYTES", 100)
    text = b"".join(b"%d\n" % number for number in range(5000)) + b"last"
    file = compressed(tmp_path, gzip.compress(text[:7000]) + gzip.compress(text[7000:]))
    assert max(map(len, inflated_chunks(file))) <= 100
    blocks = list(inflate(file, line_bytes_max=50, block_bytes=1000))
    assert b"".join(blocks) == text
    assert max(map(len, blocks)) <= 1100
    assert all(block.endswith(b"\n") for block in blocks[:-1])


def test_a_line_beyond_the_limit_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(input_files, "_INFLATE_BYTES", 100)
    file = compressed(tmp_path, gzip.compress(b"a\nb\n" + b"x" * 100_000))
    with pytest.raises(RecordError) as caught:
        list(inflate(file, line_bytes_max=2000, block_bytes=500))
    assert caught.value.message == f"{file.name}, line 3: the record is larger than the limit of 2,000 bytes"


@pytest.mark.parametrize(
    "data",
    [b"", b"no gzip at all", gzip.compress(b"x" * 1000, mtime=0)[:-9], gzip.compress(b"x", mtime=0) + b"!"],
    ids=["empty", "text", "truncated", "trailing"],
)
def test_a_file_that_is_not_gzip_is_refused(tmp_path, data):
    with pytest.raises(InputError, match="cannot be read") as caught:
        list(inflated_chunks(compressed(tmp_path, data)))
    assert caught.value.code == "unreadable_file"


def test_inflates_beyond_compares_the_content_size(tmp_path):
    file = compressed(tmp_path, gzip.compress(b"x" * 10_000))
    assert inflates_beyond(file, 9_999)
    assert not inflates_beyond(file, 10_000)


@pytest.mark.parametrize("engine", ["auto", "memory"])
@pytest.mark.parametrize(
    ("name", "text"),
    [("x.jsonl.gz", b'{"type":"T","data":{"a":"x"}}\n' * 500), ("T.csv.gz", b"a\n" + b"x\n" * 500)],
)
def test_content_larger_than_memory_is_read_in_chunks(tmp_path, monkeypatch, tune, name, text, engine):
    tune(memory_load_bytes_max=900)
    monkeypatch.setattr(record_sources, "_read_files", lambda *_: pytest.fail("read in one go"))
    graph = og.init(tmp_path / "g", "node T { a: String? }\n", sync=False, environ={})
    file = compressed(tmp_path, gzip.compress(text), name)
    assert file.size * 6 < 900
    assert graph.load(tmp_path / name, mode="append", engine=engine).tables == (("node:T", 500),)


def test_a_compressed_record_beyond_the_limit_is_not_loaded(tmp_path, tune):
    tune(record_bytes_max=1000)
    graph = og.init(tmp_path / "g", "node T { a: String? }\n", sync=False, environ={})
    compressed(tmp_path, gzip.compress(b'a\n"' + b"x\n" * 5000 + b'"\n'), "T.csv.gz")
    with pytest.raises(RecordError, match="line 2: the record is larger than the limit of 1,000 bytes"):
        graph.load(tmp_path / "T.csv.gz", mode="append")
    assert list(graph.export()) == []
