"""No test asserts a duration, sleeps for a fixed time or uses a fixed port: tests pass on slow and busy machines."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent.parent
SLEEPS = {"time.sleep", "asyncio.sleep"}
LISTENERS = {"create_server", "bind", "HTTPServer", "ThreadingHTTPServer"}
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


def fixed_sleeps(source: str) -> list[int]:
    """Return the lines of sleeps outside of loops, which do not end when a state is reached."""
    lines: list[int] = []

    def visit(node: ast.AST, *, in_loop: bool) -> None:
        in_loop = in_loop or isinstance(node, ast.For | ast.AsyncFor | ast.While)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            in_loop = False
        if isinstance(node, ast.Call) and ast.unparse(node.func) in SLEEPS and ast.unparse(node.args[0]) != "0":
            lines.extend([node.lineno] * (not in_loop))
        for child in ast.iter_child_nodes(node):
            visit(child, in_loop=in_loop)

    visit(ast.parse(source), in_loop=False)
    return lines


def fixed_ports(source: str) -> list[int]:
    """Return the lines of calls that listen on a port other than 0."""
    return [
        node.lineno
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).rpartition(".")[2] in LISTENERS
        and any(
            isinstance(part, ast.Tuple)
            and len(part.elts) == 2
            and isinstance(port := part.elts[1], ast.Constant)
            and isinstance(port.value, int)
            and port.value != 0
            for part in node.args
        )
    ]


def violations(check: Callable[[str], list[int]]) -> dict[str, list[int]]:
    lines = {str(path.relative_to(TESTS)): check(path.read_text()) for path in sorted(TESTS.rglob("*.py"))}
    return {path: lines[path] for path in lines if lines[path]}


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


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ("def f():\n    time.sleep(0.1)", [2]),
        ("async def f():\n    await asyncio.sleep(x)", [2]),
        ("async def f():\n    await asyncio.sleep(0)", []),
        ("while not condition():\n    time.sleep(0.1)", []),
        ("for _ in x:\n    def f():\n        time.sleep(1)", [3]),
    ],
)
def test_checker_finds_fixed_sleeps(source, lines):
    assert fixed_sleeps(source) == lines


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('socket.create_server(("127.0.0.1", 8080))', [1]),
        ('socket.create_server(("127.0.0.1", 0))', []),
        ('listener.bind(("127.0.0.1", port))', []),
    ],
)
def test_checker_finds_fixed_ports(source, lines):
    assert fixed_ports(source) == lines


def test_no_test_asserts_a_time():
    assert violations(asserted_times) == {}


def test_no_test_sleeps_for_a_fixed_time():
    delays = {"support/provider.py": "the scripted delay of a server"}
    assert violations(fixed_sleeps).keys() == delays.keys()


def test_no_test_listens_on_a_fixed_port():
    assert violations(fixed_ports) == {}
