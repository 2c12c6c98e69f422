"""Blobs from outside a graph, read from locations that the host application allows.

A reference is followed only below one of the allowed locations; by default none is allowed. The bytes are copied into
the graph, so a graph never depends on anything outside its folder.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path

from omnigraph.errors import InputError, StorageError, ValueFormatError
from omnigraph.storage.files.location import Location, locate
from omnigraph.storage.files.objects import object_store

_LONGEST = 65_536


class BlobSources:
    """Reads references below allowed locations: folders, `file://` and `s3://`."""

    def __init__(self, allowed: Iterable[str | PathLike[str]], environ: Mapping[str, str]) -> None:
        if isinstance(allowed, str | PathLike):
            raise InputError("blob sources must be a list", hint=f"write [{fspath(allowed)!r}]")
        # Locations use no other variables, and this object is sent to the workers of a bulk load.
        self._environ = {name: value for name, value in environ.items() if name.startswith("AWS_")}
        self._allowed = [locate(location, environ) for location in allowed]

    def __call__(self, reference: str) -> bytes:
        """Return the bytes that a reference denotes; raise `ValueFormatError` with the reason if it cannot be read."""
        if len(reference) > _LONGEST or len(reference.encode(errors="replace")) > _LONGEST:
            raise ValueFormatError(f"a reference must not exceed {_LONGEST:,} bytes")
        shown = reference if len(reference) <= 120 else reference[:119] + "…"
        try:
            location, name = self._find(reference)
            if location.path is not None:
                _check_regular(location.path / name)
            data = object_store(location).read(name)
        except InputError as error:
            raise ValueFormatError(f"'{shown}' cannot be followed: {error.message}", hint=error.hint) from None
        except StorageError as error:
            raise ValueFormatError(f"'{shown}' cannot be read: {error.message}", hint=error.hint) from error
        if data is None:
            raise ValueFormatError(f"'{shown}' does not exist")
        return data

    def _find(self, reference: str) -> tuple[Location, str]:
        """Return the allowed location that contains a reference, and its name below that location."""
        if "://" not in reference:
            raise InputError("it is not a URI", hint="write file:///…, s3://… or the bytes themselves: base64:…")
        wanted = locate(reference, self._environ)
        for location in self._allowed:
            if location.path is not None and wanted.path is not None:
                # This is the only place that follows links: a link must not lead out of its allowed location.
                folder, file = location.path.resolve(), wanted.path.resolve()
                if file.is_relative_to(folder) and file != folder:
                    return Location(fspath(folder), folder), fspath(file.relative_to(folder))
            elif location.path is None and wanted.path is None and wanted.uri.startswith(f"{location.uri}/"):
                return location, wanted.uri.removeprefix(f"{location.uri}/")
        raise InputError("it is outside the allowed blob sources", hint="give the bytes: base64:…")


def _check_regular(path: Path) -> None:
    """Refuse anything but a regular file: reading a pipe or a device may never end."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(error.strerror or "the file system refused access") from None
    if not stat.S_ISREG(mode):
        raise InputError("it is not a regular file")
