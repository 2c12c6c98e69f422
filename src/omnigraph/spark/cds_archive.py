"""A class-data archive: what a JVM learned about Spark's classes, kept for the next one.

It halves the start. The first JVM writes it when it ends; its name says which Spark, which Java and which
installation it is of, because it fits no other.
"""

from __future__ import annotations

import os
import subprocess
from hashlib import sha256
from pathlib import Path

from omnigraph.spark.java import Java

_WRITES_ITSELF = 19
"""From this Java on, one option both uses an archive and keeps it fresh."""


def archive_options(java: Java, spark_version: str, spark_home: Path, cache: Path) -> list[str]:
    """The Java options that use the archive, or that write it when there is none yet."""
    if not os.access(cache, os.W_OK) or (java.trimmed and not _has_base(java)):
        return []
    installed = sha256(f"{java.executable.resolve()}\n{spark_home.resolve()}".encode()).hexdigest()[:12]
    archive = cache / f"spark-{spark_version}-java{java.version}-{installed}.jsa"
    quiet = ["-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    if java.version >= _WRITES_ITSELF:
        return ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}", *quiet]
    if _is_whole(archive):
        return [f"-XX:SharedArchiveFile={archive}", *quiet]
    return [f"-XX:ArchiveClassesAtExit={archive}", *quiet]


def _is_whole(archive: Path) -> bool:
    """Whether the JVM that wrote it came to the end: the head of the file is written last."""
    try:
        with archive.open("rb") as file:
            return file.read(4) not in (b"", b"\0\0\0\0")
    except OSError:
        return False


def _has_base(java: Java) -> bool:
    """Whether a trimmed Java has the archive of its own classes that others build on; made once, in a second."""
    base = java.executable.parent.parent / "lib" / "server" / "classes.jsa"
    if not base.exists() and os.access(base.parent, os.W_OK):
        subprocess.run([java.executable, "-Xshare:dump"], capture_output=True, timeout=120, check=False)  # noqa: S603
    return base.exists()
