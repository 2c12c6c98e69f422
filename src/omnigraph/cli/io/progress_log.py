"""What takes long says so, to who sits at a terminal."""

from __future__ import annotations

import sys

_TOLD = "omnigraph.engine.adjacency.adjacency"
"""Whose messages are worth a line: building what the first walk over many edges needs."""


def tell_what_takes_long(*, quiet: bool) -> None:
    """From now on, messages about long work appear on standard error, if that is a terminal."""
    if quiet or not sys.stderr.isatty():
        return
    import logging

    log = logging.getLogger(_TOLD)
    if not log.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(message)s"))
        log.addHandler(handler)
        log.setLevel(logging.INFO)
