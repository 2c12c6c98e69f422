"""The division of the tests into those of `make test` and the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import REST, suite_of

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("path", "suite"),
    [
        ("tests/unit/test_values.py::test_x", "core"),
        ("tests/s3/test_races.py", "rest"),
        ("tests/s3/test_cli.py::test_x", "core"),
        ("tests/spark/", "rest"),
        ("tests/unit/test_bench_read.py", "rest"),
    ],
)
def test_the_longest_line_decides(path: str, suite: str) -> None:
    assert suite_of(path) == suite


@pytest.mark.parametrize("line", REST)
def test_each_line_names_tests(line: str) -> None:
    file, _, test = line.partition("::")
    (path, *_) = ROOT.glob(f"{file.rstrip('/')}*")
    assert not test or f"def {test}(" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("part", ["s3", "spark", "ui"])
def test_each_real_part_is_in_the_core(part: str) -> None:
    assert any(suite_of(f"tests/{part}/{path.name}") == "core" for path in (ROOT / "tests" / part).glob("test_*.py"))
