"""Adjacency kept on disk for the next process.

It lies in a folder of the graph that may be deleted at any time: it is never authority. What is loaded
says which pieces of which tables it was made of, and is used only where they still are what they were.
Arrays are mapped, not read, so opening them costs nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from omnigraph.engine.adjacency import Base

FOLDER = "__cache"
_EDGES_MIN = 50_000
"""Smaller ones are built faster than they are found."""
_GENERATION = 1


def load(folder: Path | None, what: tuple[str, ...]) -> Base | None:
    """What an earlier process kept; None when there is nothing, or nothing that can be read."""
    from omnigraph.engine.adjacency import Base, Neighbours  # noqa: PLC0415 (each knows the other)

    if folder is None:
        return None
    place = folder / _name(what)
    try:
        about = json.loads((place / "about.json").read_text())
        if about["generation"] != _GENERATION or about["what"] != list(what):
            return None
        arrays = {name: np.load(place / f"{name}.npy", mmap_mode="r") for name in ("offsets", "targets", "loops")}
        pieces = [tuple((str(files), int(rows), str(gone)) for files, rows, gone in about[key]) for key in _PIECES]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Base(pieces[0], pieces[1], pieces[2], Neighbours(arrays["offsets"], arrays["targets"]), arrays["loops"])


def save(folder: Path | None, what: tuple[str, ...], base: Base) -> None:
    """Keep a large adjacency, whole or not at all. A folder that cannot be written keeps nothing."""
    if folder is None or len(base.neighbours.targets) < _EDGES_MIN:
        return
    about: dict[str, Any] = {"generation": _GENERATION, "what": list(what)}
    about |= dict(zip(_PIECES, (base.edges, base.sources, base.targets), strict=True))
    try:
        folder.mkdir(exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=folder, prefix=".making-"))
        try:
            for name, array in (
                ("offsets", base.neighbours.offsets),
                ("targets", base.neighbours.targets),
                ("loops", base.loops),
            ):
                np.save(temporary / f"{name}.npy", array)
            (temporary / "about.json").write_text(json.dumps(about))
            place = folder / _name(what)
            old = folder / f"{temporary.name}-old"
            if place.exists():
                os.replace(place, old)  # noqa: PTH105
            os.replace(temporary, place)  # noqa: PTH105
            shutil.rmtree(old, ignore_errors=True)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
    except OSError:
        # A read-only or full disk: the next process builds it again, and nothing else is lost.
        return


_PIECES = ("edges", "sources", "targets")


def _name(what: tuple[str, ...]) -> str:
    return hashlib.sha256("|".join(what).encode()).hexdigest()[:32]
