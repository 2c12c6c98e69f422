"""No test asserts a duration, so tests pass on slow machines."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent.parent
CLOCKS = {"perf_counter", "monotonic", "process_time", "perf_counter_ns", "monotonic_ns"}


def reads_a_clock(node: ast.AST) -> bool:
    names = (getattr(part, "attr", getattr(part, "id", None)) for part in ast.walk(node))
    return any(name in CLOCKS for name in names)


def times_in(function: ast.AST) -> set[str]:
    """Return the variables of a function that hold clock differences."""
    return {
        target.id
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.BinOp) and reads_a_clock(node.value)
        for target in node.targets
        if isinstance(target, ast.Name) and isinstance(node.value.op, ast.Sub)
    }


def asserted_times(source: str) -> list[int]:
    """Return the lines of assertions that compare a duration."""
    lines: list[int] = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        times = times_in(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                names = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
                if reads_a_clock(node.test) or names & times:
                    lines.append(node.lineno)
    return lines


def test_hypothesis_has_no_deadline():
    assert settings.default is not None
    assert settings.default.deadline is None


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f():\n    a = perf_counter()\n    assert time.perf_counter() - a < 1", [3]),
        ("def f():\n    took = time.monotonic() - a\n    assert took < 1", [3]),
        ("def f():\n    end = time.monotonic() + 60\n    assert found", []),
    ],
)
def test_checker_finds_assertions_about_times(source, lines):
    assert asserted_times(source) == lines


def test_no_test_asserts_a_time():
    found = {str(path.relative_to(TESTS)): asserted_times(path.read_text()) for path in sorted(TESTS.rglob("*.py"))}
    assert {path: lines for path, lines in found.items() if lines} == {}
