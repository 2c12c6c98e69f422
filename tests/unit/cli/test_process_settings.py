"""Settings of the whole process: temporary folder and memory pool."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from omnigraph.cli.process_settings import MEMORY_POOL, TEMPORARY, apply_process_settings
from omnigraph.errors import InputError
from support.commands import Cli


def test_nothing_changes_without_settings() -> None:
    environ = {"PATH": "/bin", TEMPORARY: " ", MEMORY_POOL: ""}
    apply_process_settings(environ)
    assert environ == {"PATH": "/bin", TEMPORARY: " ", MEMORY_POOL: ""}


def test_the_temporary_folder_is_that_of_python_and_of_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)
    environ = {TEMPORARY: str(tmp_path)}
    apply_process_settings(environ)
    assert environ["TMPDIR"] == str(tmp_path)
    assert tempfile.gettempdir() == str(tmp_path)


@pytest.mark.parametrize(("value", "size"), [("1 GiB", 1 << 30), ("16777216", 1 << 24), ("64MiB", 64 << 20)])
def test_the_memory_pool_is_that_of_lance(value: str, size: int) -> None:
    environ = {MEMORY_POOL: value}
    apply_process_settings(environ)
    assert environ["LANCE_MEM_POOL_SIZE"] == str(size)


@pytest.mark.parametrize("value", ["much", "-1", "1 MiB", "0", "1.5 GiB", "1 GB"])
def test_a_bad_memory_pool_is_refused(value: str) -> None:
    with pytest.raises(InputError, match=MEMORY_POOL) as caught:
        apply_process_settings({MEMORY_POOL: value})
    assert caught.value.code == "bad_setting"


def test_a_bad_temporary_folder_is_refused(folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(TEMPORARY, str(folder / "none"))
    code, _, err = cli("version")
    assert code == 1
    assert f"error: {TEMPORARY} names '{folder / 'none'}', which does not exist\n" in err
    monkeypatch.setenv(TEMPORARY, str(folder / "s.pg"))
    assert "which is not a folder" in cli("version")[2]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_temporary_folder_must_be_writable(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="is not writable"):
        apply_process_settings({TEMPORARY: str(tmp_path)})


SORT = """
import os, sys
from omnigraph.cli.process_settings import apply_process_settings
apply_process_settings(os.environ)
if sys.argv[2] == "gone":
    os.rmdir(os.environ["TMPDIR"])
import lance, numpy, pyarrow
names = pyarrow.array([f"{number * 7919 % 300_000:0>100}" for number in range(300_000)])
table = lance.write_dataset(pyarrow.table({"name": names}), sys.argv[1])
table.create_index_uncommitted("name", "BTREE", name="i", fragment_ids=list(table.fragment_ids()))
"""


def test_sorts_of_lance_use_the_temporary_folder(tmp_path: Path) -> None:
    """The names do not fit into the smallest pool. A folder that is gone makes the sort fail."""
    folder = tmp_path / "temporary"
    environ = {**os.environ, TEMPORARY: str(folder), MEMORY_POOL: "16 MiB"}
    for state, code in (("there", 0), ("gone", 1)):
        folder.mkdir(exist_ok=True)
        command = [sys.executable, "-c", SORT, str(tmp_path / state), state]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == code, done.stderr
        assert (str(folder) in done.stderr) == (state == "gone")
