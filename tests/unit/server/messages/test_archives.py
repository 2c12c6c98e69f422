"""Archives of files in request bodies."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path

import pytest

from omnigraph.errors import InputError
from omnigraph.server.messages.archives import unpacked


def archive(path: Path, *members: tuple[str, bytes], format: int = tarfile.PAX_FORMAT) -> Path:
    with tarfile.open(path, "w", format=format) as tar:
        for name, data in members:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


@pytest.mark.parametrize("format", [tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
def test_files_have_the_names_of_the_archive(tmp_path, format):
    given = [("a/Person.csv", b"name\nana\n"), ("../../escape.jsonl", b""), ("/etc/passwd", b"x" * 2000)]
    long = [(f"{'d' * 90}/{'n' * 200}.jsonl", b"1"), ("grün.jsonl", b"2")] if format == tarfile.PAX_FORMAT else []
    with unpacked(archive(tmp_path / "a.tar", *given, *long, format=format)) as found:
        assert [(path.shown, Path(path).read_bytes()) for path in found] == [*given, *long]
        assert {Path(path).parent for path in found} == {Path(tempfile.gettempdir())}
    assert not any(Path(path).exists() for path in found)


@pytest.mark.parametrize("kept", [0, 700, 512])
def test_archives_that_end_early_are_refused(tmp_path, kept):
    whole = archive(tmp_path / "a.tar", ("a.jsonl", b"x" * 600)).read_bytes()
    refused(tmp_path, whole[:kept])


@pytest.mark.parametrize("body", [b"no archive" * 100, b"\0" * 1024])
def test_other_bodies_are_refused(tmp_path, body):
    refused(tmp_path, body)


@pytest.mark.parametrize(("position", "byte"), [(20, b"\xff"), (156, b"x")])
def test_damaged_heads_are_refused(tmp_path, position, byte):
    whole = archive(tmp_path / "a.tar", ("a.jsonl", b"x" * 600)).read_bytes()
    refused(tmp_path, whole[:position] + byte + whole[position + 1 :])


def refused(folder: Path, body: bytes) -> None:
    (folder / "b.tar").write_bytes(body)
    with pytest.raises(InputError, match="tar archive") as caught, unpacked(folder / "b.tar"):
        pass
    assert caught.value.code == "bad_archive"


@pytest.mark.parametrize("kind", [tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE])
def test_only_regular_files_are_accepted(tmp_path, kind):
    info = tarfile.TarInfo("x")
    info.type, info.linkname = kind, "/etc/passwd"
    with tarfile.open(tmp_path / "a.tar", "w") as tar:
        tar.addfile(info)
    with pytest.raises(InputError, match="not a regular file"), unpacked(tmp_path / "a.tar"):
        pass


def test_control_characters_in_names_are_refused(tmp_path):
    with pytest.raises(InputError, match="printable name"), unpacked(archive(tmp_path / "a.tar", ("a\nb.jsonl", b""))):
        pass
