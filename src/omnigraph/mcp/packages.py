"""The packages of the extra `mcp`, which are imported when a client is served."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.errors import MissingPackage

_PACKAGES = frozenset({"anyio", "mcp", "mcp_types"})


@contextmanager
def mcp_packages() -> Iterator[None]:
    """Raise `MissingPackage` if an import fails because the SDK is not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _PACKAGES:
            raise
        raise MissingPackage(
            f"the MCP server needs the package '{error.name}', which is not installed",
            hint="pip install 'omnigraph[mcp]'",
        ) from None
