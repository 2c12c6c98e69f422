"""The module `lance`, imported on first use.

Lance imports pandas and `pyarrow.dataset`, which takes as long as all other imports together. A client of a server does
not use it, nor do commands that open no graph. The other modules of `storage` import `lance` from here.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from omnigraph.large_modules import importing_large_modules

STORAGE_VERSION: Literal["2.2"] = "2.2"
"""The version of the file format of all tables."""

if TYPE_CHECKING:
    import lance as lance  # noqa: PLC0414 (exported)
    import lance.file
    import lance.fragment
    import lance.optimize
else:

    class _LazyModule:
        """A module that is imported when an attribute is first read."""

        def __init__(self, name: str, *submodules: str) -> None:
            self._name = name
            self._submodules = submodules

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            with importing_large_modules():
                module = import_module(self._name)
                for submodule in self._submodules:
                    import_module(f"{self._name}.{submodule}")
            value = getattr(module, name)
            setattr(self, name, value)
            return value

    lance = _LazyModule("lance", "file", "fragment", "optimize")


def load_lance() -> None:
    """Import Lance now, if it is not imported yet."""
    _ = lance.LanceDataset
