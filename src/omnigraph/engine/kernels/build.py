"""`python -m omnigraph.engine.kernels.build`: compile the kernels into the user's cache, at low priority."""

from __future__ import annotations

import os
from contextlib import suppress

from omnigraph.engine import kernels
from omnigraph.engine.cache.user_folder import make_folder
from omnigraph.engine.kernels import object_cache


def main() -> None:
    """Compile the kernels, unless they are compiled or another process compiles them."""
    folder = object_cache.cache_folder(os.environ)
    name = object_cache.object_name()
    if folder is None or name is None or not make_folder(folder):
        return
    with suppress(OSError, AttributeError):
        os.nice(10)
    with object_cache.building(folder, name):
        if not kernels.KernelLoader().load_cached():
            kernels.compiled()


if __name__ == "__main__":
    main()
