"""Inputs of a job and the location of their records: tables, compressed files, folders, any split."""

from __future__ import annotations

import gzip
import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from omnigraph.errors import InputError, OmniGraphError
from omnigraph.pipeline.splits import own_lines, plan_input
from support.bulk import GraphPair

PEOPLE = {"name": [f"p{n}" for n in range(100)], "age": [n % 90 for n in range(100)]}


@pytest.fixture
def pair(tmp_path):
    return GraphPair.below(tmp_path)


@pytest.fixture
def people(tmp_path):
    path = tmp_path / "Person.parquet"
    pq.write_table(pa.table(PEOPLE), path, row_group_size=17)
    return path


# -- splits ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_any_split_reads_every_line_once(tmp_path, seed):
    chooser = random.Random(seed)
    text = b"".join(
        chooser.choice([b"", b"x", "é€😀".encode(), b"long " * 9]) + chooser.choice([b"\n", b"\r\n"]) for _ in range(30)
    ) + chooser.choice([b"", b"no end"])
    path = tmp_path / "a.jsonl"
    path.write_bytes(text)
    source = plan_input([str(path)], {}, 1, split_bytes=chooser.choice([1, 2, 7, 50, 10_000]))
    parts = [own_lines(split) for split in source.splits]
    assert b"".join(parts) == text


def test_empty_file_is_an_empty_load(pair, tmp_path):
    empty = tmp_path / "a.jsonl"
    empty.touch()
    pair.load([empty], "overwrite")
    assert len(pair.bulk.commits()) == 1


# -- tables ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("split_bytes", [1, 300, 1 << 20])
def test_parquet_by_row_groups(pair, people, split_bytes):
    pair.split_bytes = split_bytes
    pair.load([people], "append")
    assert pair.bulk.snapshot().tables["node:Person"].pin.row_count == 100


def test_wrong_row_of_a_table_is_reported_by_its_number(pair, tmp_path):
    path = tmp_path / "Person.parquet"
    pq.write_table(pa.table({**PEOPLE, "age": [200 if n == 57 else 1 for n in range(100)]}), path, row_group_size=10)
    pair.split_bytes = 1
    pair.load([path], "append")
    with pytest.raises(OmniGraphError, match=r"Person\.parquet, line 58: @range violation"):
        pair.bulk_load([str(path)], "append")


@pytest.mark.parametrize("set_aside", [False, True])
def test_csv_with_wrong_rows(pair, people, tmp_path, set_aside):
    path = tmp_path / "Knows.csv"
    path.write_text('from,to,since\np1,p2,2024-01-01\np1,p3\n"p\n9",p3,\np4,p5,"20\n24"\np1,nobody,\n,p5,\np8,p9,\n')
    pair.load([people, path], "append", set_aside=set_aside)


def test_unknown_column_is_refused(pair, tmp_path):
    path = tmp_path / "Person.csv"
    path.write_text("name,shoe\na,43\n")
    pair.load([path], "append", set_aside=True)


def test_table_of_unknown_type_is_refused(pair, tmp_path):
    path = tmp_path / "Nobody.csv"
    path.write_text("name\na\n")
    pair.load([path], "append")


def test_numbers_in_range_are_accepted_and_others_refused(pair, tmp_path):
    path = tmp_path / "Thing.parquet"
    sizes = pa.array([1.5, None, float("inf")], pa.float64())
    pq.write_table(pa.table({"label": ["a", "b", "c"], "sku": pa.array([1, 2, 3], pa.int16()), "size": sizes}), path)
    pair.load([path], "append", set_aside=True)
    assert pair.bulk.snapshot().tables["node:Thing"].pin.row_count == 2


# -- compressed files, folders, patterns --------------------------------------------------------------


def test_gzip_with_several_streams(pair, tmp_path):
    lines = [json.dumps({"type": "Person", "data": {"name": f"p{n}"}}).encode() + b"\n" for n in range(50)]
    lines[30] = b'{"type": "Person", "data": {"name": "UPPER"}}\n'
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b"".join(lines[:20])) + gzip.compress(b"".join(lines[20:])))
    pair.load([path], "append", set_aside=True)
    with pytest.raises(OmniGraphError, match=r"line 31: @check violation"):
        pair.bulk_load([str(path)], "merge")


def test_truncated_gzip_file_is_refused(pair, tmp_path):
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(b'{"type": "Person", "data": {"name": "a"}}\n' * 100)[:-12])
    with pytest.raises(InputError) as caught:
        pair.bulk_load([str(path)], "append")
    assert caught.value.code == "unreadable_file"


def test_folder_loads_its_data_files_by_name(pair, people, tmp_path):
    folder = tmp_path / "all"
    (folder / "deep" / "_temporary").mkdir(parents=True)
    people.rename(folder / "deep" / "Person.parquet")
    for name in ("_SUCCESS", ".hidden.jsonl", "notes.txt", "deep/_temporary/b.jsonl"):
        (folder / name).write_text("not data")
    (folder / "a.jsonl").write_text('{"edge": "Knows", "from": "p1", "to": "p2"}\n')
    pair.load([folder], "append")
    assert pair.bulk.snapshot().tables["edge:Knows"].pin.row_count == 1


def test_glob_patterns(pair, people, tmp_path):
    pair.load([tmp_path / "Per*.parquet"], "append")
    with pytest.raises(InputError, match="there is no file"):
        pair.bulk_load([str(tmp_path / "x*.jsonl")], "append")


def test_file_of_unknown_type_is_refused(pair, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("hello")
    pair.load([path], "append")
