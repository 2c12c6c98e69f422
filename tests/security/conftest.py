"""A server with two tenants, one for each module, and the log of the server as text."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator

import pytest

from omnigraph.server.observability import log
from support.log_text import LogText
from support.tenants import Tenants, tenants


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tenants]:
    """The server; tests of one module share its graphs."""
    with tenants(tmp_path_factory.mktemp("site")) as running:
        yield running


@pytest.fixture
def log_text() -> Iterator[io.StringIO]:
    """The log at its most detailed level."""
    root, own = logging.getLogger(), logging.getLogger("omnigraph")
    before = [*root.handlers], root.level, own.level
    stream = LogText()
    log.configure("debug", "text", stream)
    yield stream
    root.handlers[:], level, own_level = before[0], before[1], before[2]
    root.setLevel(level)
    own.setLevel(own_level)
    logging.captureWarnings(False)
