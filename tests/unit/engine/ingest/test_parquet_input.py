"""Parquet files are decoded in batches of bounded size, whatever the size of the file."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph as og
from omnigraph.engine.ingest.parquet_input import open_parquet, read_batches
from omnigraph.errors import InputError
from omnigraph.operations.load import record_sources


def test_dictionary_text_is_decoded_in_batches(tmp_path, tune):
    tune(parquet_batch_bytes=10_000)
    table = pa.table({"a": ["x" * 3000] * 50 + [None, "", "y" * 30_000, "z"], "n": list(range(54))})
    pq.write_table(table, tmp_path / "T.parquet")
    file = open_parquet(pa.OSFile(str(tmp_path / "T.parquet")), "T.parquet")
    batches = list(read_batches(file, 0))
    assert pa.Table.from_batches(batches).equals(table)
    assert max(batch.num_rows for batch in batches[:-1]) <= 5
    assert all(batch.num_rows == 1 or batch.column(0).nbytes < 12_000 for batch in batches)


def test_a_column_chunk_above_the_limit_is_refused(tmp_path, tune):
    tune(parquet_chunk_bytes_max=1000)
    pq.write_table(pa.table({"a": ["x" * 3000]}), tmp_path / "T.parquet")
    graph = og.init(tmp_path / "g", "node T { a: String? }\n", sync=False, environ={})
    with pytest.raises(InputError, match=r"row group 0 decompresses to [\d,]+ bytes in one column"):
        graph.load(tmp_path / "T.parquet", mode="append")


def test_a_small_file_with_many_rows_is_not_loaded_in_memory(tmp_path, monkeypatch, tune):
    pq.write_table(pa.table({"n": pa.array([7] * 20_000, pa.int32())}), tmp_path / "T.parquet")
    assert (tmp_path / "T.parquet").stat().st_size < 10_000
    tune(memory_load_bytes_max=10_000)
    monkeypatch.setattr(record_sources, "_read_files", lambda *_: pytest.fail("read into memory at once"))
    graph = og.init(tmp_path / "g", "node T { n: I32? }\n", sync=False, environ={})
    assert graph.load(tmp_path / "T.parquet", mode="append").tables == (("node:T", 20_000),)


@pytest.mark.parametrize("engine", ["auto", "memory"])
def test_a_table_larger_than_memory_is_read_in_batches(tmp_path, tune, engine):
    tune(decoded_bytes_max=100_000)
    pq.write_table(pa.table({"a": ["x" * 3000] * 100}), tmp_path / "T.parquet")
    assert (tmp_path / "T.parquet").stat().st_size < 50_000
    graph = og.init(tmp_path / "g", "node T { a: String? }\n", sync=False, environ={})
    before = len(graph.commits())
    result = graph.ingest(tmp_path / "T.parquet", branch="new", engine=engine)
    assert (result.tables, result.branch_created) == ((("node:T", 100),), True)
    assert len(graph.commits("new")) == before + 1
