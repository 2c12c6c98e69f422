"""Writes to a disk that refuses the last bytes of a file: each is refused and changes nothing, or is complete.

`RLIMIT_FSIZE` stands for the disk: a write beyond it fails with EFBIG, and the file keeps the bytes before it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.size_limits import KINDS

_TESTS = Path(__file__).parents[1]


def outcomes(tmp_path: Path, kind: str, *sizes: int) -> list[dict[str, object]]:
    """Write to copies of a graph, each with another limit; without sizes, each new file lacks its last byte once."""
    done = subprocess.run(
        [sys.executable, "-m", "support.size_limits", str(tmp_path), kind, *map(str, sizes)],
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def check(found: list[dict[str, object]]) -> None:
    assert [one for one in found if one["damage"]] == []
    assert any(not one["acknowledged"] for one in found)


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_without_its_last_byte_is_not_acknowledged(kind, tmp_path):
    check(outcomes(tmp_path, kind))


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_files_that_end_anywhere_are_not_acknowledged(kind, tmp_path, record_property):
    found = outcomes(tmp_path, kind, *range(100, 14_000, 60))
    record_property("refused", sum(not one["acknowledged"] for one in found))
    record_property("complete", sum(bool(one["acknowledged"]) for one in found))
    check(found)
