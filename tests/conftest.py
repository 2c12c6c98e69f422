"""Shared fixtures and options. Long forms of suites run only with `--long`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from omnigraph.engine import kernels, tuning

if TYPE_CHECKING:
    from support.s3 import S3

# No test fails because a machine is slow: examples have no deadline.
settings.register_profile("omnigraph", deadline=None)
settings.load_profile("omnigraph")

# Tests share compiled kernels with each other, not with the user who runs them.
os.environ.setdefault("OMNIGRAPH_CACHE_DIR", str(Path(__file__).parents[1] / "build" / "cache"))

# A warm server of the user who runs the tests is not part of them.
os.environ["OMNIGRAPH_WARM"] = "off"

pytest.register_assert_rewrite("support.store", "support.storm")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="also run tests marked 'long'")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
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
