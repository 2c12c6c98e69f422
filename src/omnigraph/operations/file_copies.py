"""Copies of local files in another folder or in a bucket."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from omnigraph.storage.files.location import locate
from omnigraph.storage.files.objects import object_store


class FileCopies:
    """A place that holds copies of files, in groups. A copy is never replaced."""

    def __init__(self, uri: str, environ: Mapping[str, str]) -> None:
        location = locate(uri, environ)
        self.uri = location.uri
        self._objects = object_store(location)

    def names(self, group: str) -> set[str]:
        """Return the names of the files of a group."""
        return {name.removeprefix(f"{group}/") for name in self._objects.list(group)}

    def add(self, group: str, path: Path) -> bool:
        """Copy a file; return False if there is a copy already."""
        return self._objects.write_if_absent(f"{group}/{path.name}", path.read_bytes())
