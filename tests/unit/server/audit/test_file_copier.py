"""Copies of closed audit files in a folder and in a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.errors import InputError
from omnigraph.operations.file_copies import FileCopies
from omnigraph.server.audit import AuditLog, verify
from support.audit_entries import entry
from support.s3 import plain_store


def write(folder: Path, copies: FileCopies, count: int) -> None:
    log = AuditLog(folder, bytes_max=1000, copies=copies)
    for _ in range(count):
        log.record(entry())
    log.close()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*.jsonl")}


def test_closed_files_are_copied_to_a_folder(tmp_path):
    copies = FileCopies(str(tmp_path / "copies"), {})
    write(tmp_path / "audit", copies, 10)
    files = contents(tmp_path / "audit")
    assert len(files) > 3
    assert contents(tmp_path / "copies") == files
    (chain,) = (tmp_path / "copies").iterdir()
    assert copies.names(chain.name) == set(files)


def test_closed_files_are_copied_to_a_bucket(tmp_path):
    with plain_store() as store:
        copies = FileCopies(store.new_place(), store.environ)
        write(tmp_path, copies, 10)
        write(tmp_path, copies, 3)
        files = contents(tmp_path)
        chain = next(iter(files)).split("-")[2]
        assert copies.names(chain) == set(files)
        held = {key.rpartition("/")[2]: data for key, data in store.objects.items()}
        assert {name: bytes(held[name]) for name in files} == files


def test_a_copy_is_not_replaced(tmp_path):
    copies = FileCopies(str(tmp_path / "copies"), {})
    write(tmp_path / "audit", copies, 4)
    before = contents(tmp_path / "copies")
    for path in (tmp_path / "audit").glob("*.jsonl"):
        path.write_bytes(path.read_bytes().replace(b"allow", b"altered"))
        assert copies.add(next(iter((tmp_path / "copies").iterdir())).name, path) is False
    assert contents(tmp_path / "copies") == before


def test_files_of_a_process_that_ended_early_are_copied_by_the_next(tmp_path):
    write_without = AuditLog(tmp_path / "audit")
    write_without.record(entry())
    write_without.close()
    write(tmp_path / "audit", FileCopies(str(tmp_path / "copies"), {}), 0)
    assert contents(tmp_path / "copies") == contents(tmp_path / "audit")


def test_a_failing_copy_fails_no_request(tmp_path, caplog):
    (tmp_path / "copies").write_text("a file, not a folder")
    copies = FileCopies(str(tmp_path / "copies"), {})
    log = AuditLog(tmp_path / "audit", required=True, bytes_max=500, copies=copies)
    for _ in range(5):
        log.record(entry())
    log.close()
    assert verify(tmp_path / "audit").records == 5
    assert caplog.text.count("cannot be copied") == 1


@pytest.mark.parametrize("uri", ["", "ftp://host/x"])
def test_a_wrong_place_is_refused(uri):
    with pytest.raises(InputError):
        FileCopies(uri, {})
