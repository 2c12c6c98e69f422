"""A version of a table is finished only if every new file of it is complete."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.lance.indexes import IndexSpec, stage_indexes
from omnigraph.storage.lance.staging import StagedWrite, TableWrite, stage
from omnigraph.storage.lance.tables import Table
from omnigraph.storage.lance.version_files import finish_versions, new_files
from support.graphs import Line, files_below, new_line, people

LARGE = pa.schema([pa.field("id", pa.utf8(), nullable=False), pa.field("raw", pa.large_binary())])


def large(*sizes: int) -> pa.Table:
    return pa.table({"id": [str(size) for size in sizes], "raw": [b"x" * size for size in sizes]}, schema=LARGE)


def many(count: int) -> pa.Table:
    return people(*(f"p{number:06}" for number in range(count)))


def write(change: TableWrite) -> Callable[[Table], StagedWrite | None]:
    return lambda table: stage(table, change, {})


def dense() -> list[str]:
    """Ids of rows whose deletion Lance writes as a bitmap, with containers of each form."""
    numbers = np.r_[0:6_000, np.arange(70_000, 100_000, 3)]
    return [f"p{number:06}" for number in numbers]


CHANGES = {
    "append": (people("a", "b"), write(TableWrite(append=people("n")))),
    "upsert": (people("a", "b"), write(TableWrite(append=people("n"), upsert=people("b")))),
    "delete": (many(100), write(TableWrite(delete=["p000001"]))),
    "delete many": (many(100_000), write(TableWrite(delete=dense()))),
    "index": (many(100), lambda table: stage_indexes(table, [IndexSpec("name")])[0]),
    "large values": (large(1), write(TableWrite(append=large(10, 70_000, 80_000, 5_000_000)))),
}


@pytest.fixture
def line(tmp_path, request) -> Line:
    rows, _ = CHANGES[request.param]
    line = new_line(tmp_path, schema=rows.schema) if rows.schema == LARGE else new_line(tmp_path)
    line.write(TableWrite(append=rows))
    return line


@pytest.mark.parametrize(("line", "kind"), [(kind, kind) for kind in CHANGES], indirect=["line"])
def test_every_file_of_a_change_is_checked(line, kind, tmp_path):
    before, base = files_below(tmp_path), line.table
    staged = CHANGES[kind][1](base)
    made, _ = staged.promote(finish=False)
    finish_versions([(base, made)])
    files = {path for path in new_files(base, made) if path.exists()}
    assert {path.relative_to(tmp_path).as_posix() for path in files} == {
        name for name in set(files_below(tmp_path)).difference(before) if name.rpartition(".")[2] not in ("txn", "json")
    }
    for path in sorted(files):
        whole = path.read_bytes()
        for size in {0, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:size])
            with pytest.raises(StorageError) as caught:
                finish_versions([(base, made)])
            assert caught.value.code == "incomplete_file"
            assert str(path) in caught.value.message
        path.write_bytes(whole)
    finish_versions([(base, made)])
