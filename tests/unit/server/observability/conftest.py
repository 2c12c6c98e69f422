"""Fixtures of the tests of the log."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator

import pytest

from omnigraph.server.observability import log
from support.log_text import LogText

LOGGERS = ("", "omnigraph", "uvicorn", "uvicorn.error", "uvicorn.asgi", "uvicorn.access")


@pytest.fixture
def configured() -> Iterator[Callable[..., io.StringIO]]:
    """Configure the log to write to a text; afterwards the loggers are as before."""
    before = {name: dict(vars(logging.getLogger(name))) for name in LOGGERS}
    handlers = {name: list(logging.getLogger(name).handlers) for name in LOGGERS}

    def configure(level: str = "info", format: str = "json") -> io.StringIO:
        logging.getLogger().handlers.clear()  # those of pytest fail on a message that cannot be formatted
        stream = LogText()
        log.configure(level, format, stream)
        return stream

    yield configure
    logging.captureWarnings(False)
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers[:] = handlers[name]
        logger.propagate, logger.disabled = before[name]["propagate"], before[name]["disabled"]
        logger.setLevel(before[name]["level"])
