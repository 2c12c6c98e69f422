"""Shared fixtures and options. Long forms of suites run only with `--long`."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from omnigraph.engine import kernels, tuning

if TYPE_CHECKING:
    from support.s3 import S3

# No test fails because a machine is slow: examples have no deadline, and their generation may take long.
# CI tries the same examples again, so that a change is not refused for an old defect; other runs try new ones.
settings.register_profile(
    "omnigraph",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=os.environ.get("CI") == "true",
)
settings.load_profile("omnigraph")

# Tests share compiled kernels with each other, not with the user who runs them.
os.environ.setdefault("OMNIGRAPH_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "cache"))

# A warm server of the user who runs the tests is not part of them.
os.environ["OMNIGRAPH_WARM"] = "off"

pytest.register_assert_rewrite("support.store", "support.storm")


ROOT = Path(__file__).parents[1]
REST = [line.removeprefix("+ ") for line in (ROOT / "tests" / "rest.txt").read_text().splitlines() if line[:1] != "#"]
RETURNED = {line[2:] for line in (ROOT / "tests" / "rest.txt").read_text().splitlines() if line.startswith("+ ")}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--suite",
        choices=("core", "rest", "all"),
        default="all",
        help="core: what 'make test' runs; rest: the tests of tests/rest.txt, which 'make test-all' runs",
    )
    parser.addoption(
        "--shuffle", metavar="SEED", type=int, help="run the files, and the tests of each file, in a random order"
    )
    parser.addoption("--long", action="store_true", help="also run tests marked 'long'")
    parser.addoption(
        "--resume",
        metavar="FILE",
        type=Path,
        help="leave out the long tests that a file names, and add those that pass to it",
    )
    parser.addoption("--soak-minutes", type=float, default=10, help="the length of the soak test of a server")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        report.sections.append(("repeat", f".venv/bin/python -m pytest '{item.nodeid}'"))
    finished: Path | None = item.config.getoption("--resume")
    if finished is not None and report.when == "call" and report.passed and item.get_closest_marker("long"):
        with finished.open("a") as file:
            file.write(f"{item.nodeid}\n")
    return report


def suite_of(path: str) -> str:
    """Return the suite of a test: that of the longest line of tests/rest.txt with which its path begins."""
    line = max((line for line in REST if path.startswith(line)), key=len, default=None)
    return "core" if line is None or line in RETURNED else "rest"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out folders and files without a test of the suite."""
    suite = config.getoption("--suite")
    if suite == "all" or not collection_path.is_relative_to(ROOT):
        return None
    path = collection_path.relative_to(ROOT).as_posix() + ("/" if collection_path.is_dir() else "")
    suites = {suite_of(path), *(suite_of(line) for line in REST if line.startswith(path))}
    return True if suite not in suites else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.getoption("--suite") == "core":
        terminalreporter.write_line(
            "left out: the tests of tests/rest.txt (make test-all), long forms (make test-long)"
        )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    suite = config.getoption("--suite")
    if suite != "all":
        others = [item for item in items if suite_of(item.nodeid) != suite]
        items[:] = [item for item in items if suite_of(item.nodeid) == suite]
        config.hook.pytest_deselected(items=others)
    if (seed := config.getoption("--shuffle")) is not None:
        # Tests of one file stay together, because they share fixtures.
        chance = random.Random(seed)
        places = {path: chance.random() for path in dict.fromkeys(item.path for item in items)}
        items.sort(key=lambda item: (places[item.path], chance.random()))
    finished: Path | None = config.getoption("--resume")
    if finished is not None and finished.exists():
        names = {*finished.read_text().splitlines()}
        done = [item for item in items if item.nodeid in names]
        items[:] = [item for item in items if item.nodeid not in names]
        config.hook.pytest_deselected(items=done)
    if config.getoption("--long") or "long" in config.getoption("-m"):
        return
    left_out = [item for item in items if item.get_closest_marker("long")]
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3]:
    """A SeaweedFS server on loopback, started by the first test that uses it."""
    from support.s3 import seaweedfs  # noqa: PLC0415

    with seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as store:
        yield store


@pytest.fixture
def tune() -> Iterator[Callable[..., None]]:
    """Replace tuning constants of the engine until the test ends: `tune(batch_rows=4)`."""
    with ExitStack() as stack:

        def change(**changes: float) -> None:
            stack.enter_context(tuning.replaced(**changes))

        yield change


@pytest.fixture
def kernel_loader() -> Iterator[kernels.KernelLoader]:
    """A loader of compiled kernels for one test; it starts without kernels."""
    with kernels.isolated() as loader:
        yield loader


@pytest.fixture
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment without OmniGraph settings and without keys of embedding providers."""
    kept = ("OMNIGRAPH_UPDATE_GOLDEN", "OMNIGRAPH_CACHE_DIR", "OMNIGRAPH_WARM")
    for name in list(os.environ):
        if name.startswith(("OMNIGRAPH_", "OPENAI_", "GEMINI_", "OPENROUTER_")) and name not in kept:
            monkeypatch.delenv(name)
    monkeypatch.setenv("OMNIGRAPH_HOME", "/nowhere")
