"""Import of packages that the base install does not have."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from omnigraph.errors import MissingPackage


def get_package(package: str) -> Any:
    """Import an optional package; raises `MissingPackage` if it is not installed."""
    try:
        return import_module(package)
    except ImportError as error:
        name = package.partition(".")[0]
        raise MissingPackage(f"'{name}' is not installed", hint=f"install it: pip install {name}") from error
