"""Class data sharing (CDS) archive of Spark's classes, which halves the start time of the JVM.

The first JVM writes the archive at its exit. The file name identifies the Spark version, the Java version and the
installation, because an archive fits no other.
"""

from __future__ import annotations

import os
import subprocess
from hashlib import sha256
from pathlib import Path

from omnigraph.spark.java import Java

_AUTO_ARCHIVE = 19
"""The first Java version with one option that both uses and updates an archive."""


def archive_options(java: Java, spark_version: str, spark_home: Path, cache: Path) -> list[str]:
    """Return the Java options that use the archive, or write it if there is none."""
    if not os.access(cache, os.W_OK) or (java.trimmed and not _has_base(java)):
        return []
    installed = sha256(f"{java.executable.resolve()}\n{spark_home.resolve()}".encode()).hexdigest()[:12]
    archive = cache / f"spark-{spark_version}-java{java.version}-{installed}.jsa"
    quiet = ["-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    if java.version >= _AUTO_ARCHIVE:
        return ["-XX:+AutoCreateSharedArchive", f"-XX:SharedArchiveFile={archive}", *quiet]
    if _is_complete(archive):
        return [f"-XX:SharedArchiveFile={archive}", *quiet]
    return [f"-XX:ArchiveClassesAtExit={archive}", *quiet]


def _is_complete(archive: Path) -> bool:
    """True if the JVM finished writing the archive: the file header is written last."""
    try:
        with archive.open("rb") as file:
            return file.read(4) not in (b"", b"\0\0\0\0")
    except OSError:
        return False


def _has_base(java: Java) -> bool:
    """True if a reduced Java has the base archive of its own classes; creates it once, in about a second."""
    base = java.executable.parent.parent / "lib" / "server" / "classes.jsa"
    if not base.exists() and os.access(base.parent, os.W_OK):
        subprocess.run([java.executable, "-Xshare:dump"], capture_output=True, timeout=120, check=False)  # noqa: S603
    return base.exists()
