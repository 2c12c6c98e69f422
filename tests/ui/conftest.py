"""A browser and a server on the demo graph, shared by all browser tests of one process."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.demo.build import QUERIES, build_demo
from support.explorer import Explorer, open_browser, require_browser
from support.explorer import exploring as serve_explorer
from support.server import ServerUnderTest

NOTES = 120


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all browser tests in one process: they share one browser and one server."""
    for item in items:
        if Path(__file__).parent in item.path.parents and "browser" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """A browser, closed after the last test of a module: its event loop runs in the thread of the tests."""
    with open_browser() as running:
        yield running


@pytest.fixture(scope="session")
def demo_graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_browser()
    folder = tmp_path_factory.mktemp("demo")
    demo = build_demo(folder, notes=NOTES)
    demo.graph.store_query((folder / QUERIES).read_text(encoding="utf-8"), message="the queries of the station")
    return Path(str(demo.graph.uri))


@pytest.fixture(scope="session")
def demo_server(demo_graph: Path) -> Iterator[ServerUnderTest]:
    """A server on the demo graph. A test that writes uses a branch of its own."""
    with serve_explorer(demo_graph, environ={"OMNIGRAPH_EMBED_PROVIDER": "local"}) as server:
        yield server


@pytest.fixture
def explorer(browser: Any, demo_server: ServerUnderTest) -> Explorer:
    return Explorer(browser, demo_server)
