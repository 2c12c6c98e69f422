"""A real IPython shell with the magics of the package."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from IPython.core.interactiveshell import InteractiveShell


@contextmanager
def ipython_shell() -> Iterator[InteractiveShell]:
    """Start a shell. It replaces ``__main__``, which child processes of later tests read, until the end."""
    main = sys.modules["__main__"]
    try:
        yield InteractiveShell.instance()
    finally:
        InteractiveShell.clear_instance()
        sys.modules["__main__"] = main
