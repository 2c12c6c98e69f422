"""Threads that decode to a class for the first time at the same time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src/omnigraph"

THREADS = """
import sys, threading
import msgspec
from omnigraph.decodable import decodable

sys.setswitchinterval(1e-6)
for number in range(200):
    inner = msgspec.defstruct(f"A{number}", [("x", list[dict[str, int]]), ("y", "str | None", None)])
    outer = msgspec.defstruct(f"B{number}", [(f"f{at}", inner) for at in range(8)])
    value = {f"f{at}": {"x": [{"a": 1}], "y": "t"} for at in range(8)}
    barrier, found = threading.Barrier(6), []

    def run():
        barrier.wait()
        found.append(msgspec.to_builtins(msgspec.convert(value, decodable(outer))) == value)

    threads = [threading.Thread(target=run) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 6
"""


def test_threads_describe_a_class_in_turn() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_classes_are_described_before_they_are_decoded_to() -> None:
    """A decoder of a module is made while the module is imported, by one thread."""
    undescribed = []
    for path in sorted(SOURCE.rglob("*.py")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            used = re.search(
                r"\bdecode\(.*\btype=(?!decodable|dict\[|list\[str)|\b(?:msgspec\.)convert\((?!.*decodable)", line
            )
            if used:
                undescribed.append(f"{path.relative_to(SOURCE)}:{number}: {line.strip()}")
    assert undescribed == []
