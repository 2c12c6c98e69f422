"""Bytes that live outside a graph, read from places the host application allows.

A reference is followed only below one of the allowed places; nothing is allowed unless it is said so. What is read is
copied into the graph, so a graph never depends on anything outside its folder.
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
    """Reads references below some places: folders, `file://` and `s3://`."""

    def __init__(self, places: Iterable[str | PathLike[str]], environ: Mapping[str, str]) -> None:
        if isinstance(places, str | PathLike):
            raise InputError("the places blobs may come from are a list", hint=f"write [{fspath(places)!r}]")
        # Nothing else matters to a location, and this travels to the workers of a bulk load.
        self._environ = {name: value for name, value in environ.items() if name.startswith("AWS_")}
        self._places = [locate(place, environ) for place in places]

    def __call__(self, reference: str) -> bytes:
        """The bytes a reference stands for; a `ValueFormatError` says why there are none."""
        if len(reference) > _LONGEST or len(reference.encode(errors="replace")) > _LONGEST:
            raise ValueFormatError(f"a reference has at most {_LONGEST:,} bytes")
        shown = reference if len(reference) <= 120 else reference[:119] + "…"
        try:
            place, name = self._find(reference)
            if place.path is not None:
                _check_regular(place.path / name)
            data = object_store(place).read(name)
        except InputError as error:
            raise ValueFormatError(f"'{shown}' cannot be followed: {error.message}", hint=error.hint) from None
        except StorageError as error:
            raise ValueFormatError(f"'{shown}' cannot be read: {error.message}", hint=error.hint) from error
        if data is None:
            raise ValueFormatError(f"there is nothing at '{shown}'")
        return data

    def _find(self, reference: str) -> tuple[Location, str]:
        """The allowed place a reference is below, and its name there."""
        if "://" not in reference:
            raise InputError("it is no URI", hint="write file:///…, s3://… or the bytes themselves: base64:…")
        wanted = locate(reference, self._environ)
        for place in self._places:
            if place.path is not None and wanted.path is not None:
                # Links are followed here and nowhere else: a link must not lead out of its place.
                folder, file = place.path.resolve(), wanted.path.resolve()
                if file.is_relative_to(folder) and file != folder:
                    return Location(fspath(folder), folder), fspath(file.relative_to(folder))
            elif place.path is None and wanted.path is None and wanted.uri.startswith(f"{place.uri}/"):
                return place, wanted.uri.removeprefix(f"{place.uri}/")
        raise InputError("it is outside the places blobs may come from", hint="give the bytes themselves: base64:…")


def _check_regular(path: Path) -> None:
    """Refuse what is not a regular file: a pipe or a device may never end."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise InputError(error.strerror or "the file system refuses it") from None
    if not stat.S_ISREG(mode):
        raise InputError("it is not a regular file")
