"""A new file counts only if it is complete: every shorter one is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.errors import StorageError
from omnigraph.storage.files.new_files import check_file, finish_files, finish_tree
from omnigraph.storage.lance.staging import TableWrite
from support.graphs import new_line, people


@pytest.fixture
def written(tmp_path) -> dict[str, Path]:
    """Suffix → a file that Lance wrote."""
    line = new_line(tmp_path)
    line.write(TableWrite(append=people("a", "b")))
    return {path.suffix: path for path in sorted((tmp_path / line.folder).rglob("*")) if path.is_file()}


@pytest.mark.parametrize("suffix", [".lance", ".manifest"])
def test_every_shorter_file_is_incomplete(written, suffix):
    path = written[suffix]
    check_file(path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(StorageError) as caught:
            check_file(path)
        assert caught.value.code == "incomplete_file"
        assert f"'{path}' is incomplete: it has {size} bytes" in caught.value.message
    path.write_bytes(whole)
    check_file(path)


@pytest.mark.parametrize("suffix", [".lance", ".manifest"])
def test_a_file_in_which_bytes_are_missing_is_incomplete(written, suffix):
    path = written[suffix]
    whole = path.read_bytes()
    path.write_bytes(whole[:10] + whole[11:])
    with pytest.raises(StorageError):
        check_file(path)


def test_a_file_has_its_recorded_length(tmp_path):
    path = tmp_path / "values.blob"
    path.write_bytes(b"abc")
    finish_files({path: 3}, sync=False)
    with pytest.raises(StorageError, match="it has 3 bytes, and 4 were written"):
        finish_files({path: 4}, sync=False)


def test_an_incomplete_manifest_is_removed(written):
    path = written[".manifest"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError):
        finish_files({path: None}, sync=True)
    assert not path.exists()
    finish_files({path: None}, sync=True)


def test_a_new_tree_is_checked(written):
    path = written[".lance"]
    folder = path.parents[1]
    finish_tree(folder, sync=False)
    path.write_bytes(b"")
    with pytest.raises(StorageError, match="its end is missing"):
        finish_tree(folder, sync=True)


def test_the_report_to_lance_is_true(tmp_path):
    """If this test fails because Lance reports the failure, the page is obsolete."""
    page = (Path(__file__).parents[4] / "docs" / "lance-local-writes.md").read_text(encoding="utf-8")
    program, output = re.findall(r"```(?:python reproduction|text)\n(.*?)```", page, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.stdout, done.returncode) == (output, 0), done.stderr
