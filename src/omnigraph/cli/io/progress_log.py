"""Log long operations to stderr when it is a terminal."""

from __future__ import annotations

import sys

_LOGGER = "omnigraph.engine.adjacency.adjacency"
"""The logger whose messages are shown: it reports the construction of adjacencies."""


def log_long_operations(*, quiet: bool) -> None:
    """Show messages about long operations on stderr from now on, if it is a terminal."""
    if quiet or not sys.stderr.isatty():
        return
    import logging

    log = logging.getLogger(_LOGGER)
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
