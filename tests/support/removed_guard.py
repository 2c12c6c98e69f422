"""A plugin of pytest that removes a guard for rows: `pytest -p support.removed_guard`, the place in `REMOVED_GUARD`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from support.guard_sites import sites, without

REMOVED_GUARD = "REMOVED_GUARD"
"""The environment variable with the place of the guard."""


@pytest.fixture(autouse=True)
def removed_guard() -> Iterator[None]:
    """Run a test without the guard."""
    place = os.environ[REMOVED_GUARD]
    with ExitStack() as stack:
        stack.enter_context(without(next(site for site in sites() if str(site) == place)))
        yield
