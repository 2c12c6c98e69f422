"""Where the time of the tests goes: seconds by file, folder, fixture and phase.

Run as a plugin of pytest: `pytest -p scripts.test_times …`. It writes one line of JSON per test to
`build/test-times.jsonl` and prints the totals. CPU seconds include finished child processes, so that they are
comparable between a busy machine and an idle one.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable

PATH = Path("build/test-times.jsonl")
LISTED = 30

_fixtures: list[tuple[str, float]] = []
_cpu: dict[str, float] = {}
_lines: dict[str, dict[str, Any]] = {}


def cpu_seconds() -> float:
    """CPU seconds of this process and of its finished children."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, object, object]:
    """Measure the set-up of a fixture."""
    start = time.perf_counter()
    value = yield
    _fixtures.append((f"{fixturedef.argname} ({fixturedef.scope})", time.perf_counter() - start))
    return value


def _measured(phase: str) -> Generator[None, object, object]:
    start = cpu_seconds()
    try:
        return (yield)
    finally:
        _cpu[phase] = cpu_seconds() - start


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Generator[None, object, object]:
    """Measure the CPU time of a set-up."""
    return (yield from _measured("setup"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, object, object]:
    """Measure the CPU time of a test."""
    return (yield from _measured("call"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown() -> Generator[None, object, object]:
    """Measure the CPU time of a tear-down."""
    return (yield from _measured("teardown"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the measurements to the report, which a worker of pytest-xdist sends."""
    report = yield
    report.cpu = _cpu.pop(call.when, 0.0)  # type: ignore[attr-defined]
    report.fixtures = [*_fixtures]  # type: ignore[attr-defined]
    _fixtures.clear()
    return report


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep the measurements of a phase."""
    line = _lines.setdefault(report.nodeid, {"test": report.nodeid, "fixtures": []})
    line[report.when] = round(report.duration, 4)
    line[f"{report.when}_cpu"] = round(getattr(report, "cpu", 0.0), 4)
    line["fixtures"] += getattr(report, "fixtures", [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write the file and print the totals."""
    if not _lines:
        return
    PATH.parent.mkdir(exist_ok=True)
    PATH.write_text("".join(json.dumps(line) + "\n" for line in _lines.values()))
    terminalreporter.section("times of tests")
    for line in report_lines(_lines.values()):
        terminalreporter.write_line(line)


def report_lines(tests: Iterable[dict[str, Any]]) -> list[str]:
    """The totals of measured tests as text."""
    phases = ("setup", "call", "teardown")
    seconds: Counter[str] = Counter()
    by_file: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0, 0.0])
    by_fixture: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0])
    for test in tests:
        cpu = sum(test.get(f"{phase}_cpu", 0.0) for phase in phases)
        wall = sum(test.get(phase, 0.0) for phase in phases)
        seconds.update({phase: test.get(phase, 0.0) for phase in phases} | {"cpu": cpu})
        path = test["test"].partition("::")[0]
        folders = [str(folder) + "/" for folder in Path(path).parents if str(folder) != "."]
        for name in (path, *folders):
            row = by_file[name]
            row[:] = row[0] + 1, row[1] + wall, row[2] + cpu
        for name, duration in test["fixtures"]:
            by_fixture[name][:] = by_fixture[name][0] + 1, by_fixture[name][1] + duration
    totals = ", ".join(f"{name} {value:.0f} s" for name, value in seconds.items())
    return [
        totals,
        *_table("by file and folder: tests, seconds, CPU seconds", by_file, column=2),
        *_table("by fixture: uses, seconds", by_fixture, column=1),
    ]


def _table(title: str, rows: dict[str, list[float]], *, column: int) -> list[str]:
    largest = sorted(rows.items(), key=lambda row: -row[1][column])[:LISTED]
    return [
        title,
        *(f"{row[0]:7.0f}" + "".join(f"{value:9.1f}" for value in row[1:]) + f"  {name}" for name, row in largest),
    ]
