"""What took long to compute, kept on disk for the next process.

It lies in a folder of the graph that may be deleted at any time: it is never authority. What is loaded says
which pieces of which tables it was made of, and is used only where they still are what they were. Arrays are
mapped, not read, so opening them costs nothing, and what is not looked at takes no memory.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from omnigraph.storage.tables import Piece

FOLDER = "__cache"
_GENERATION = 3

AnyArray = np.ndarray[Any, Any]
What = tuple[str, ...]
"""What something is of: its kind first, then the tables and columns."""


@dataclass(frozen=True)
class Kept:
    """Some arrays, and what is to be known about them."""

    about: Mapping[str, Any]
    arrays: Mapping[str, AnyArray]


def load(folder: Path | None, what: What) -> Kept | None:
    """What an earlier process kept; None when there is nothing, or nothing that can be read."""
    if folder is None:
        return None
    place = folder / _name(what)
    try:
        about = json.loads((place / "about.json").read_text())
        if about["generation"] != _GENERATION or about["what"] != list(what):
            return None
        return Kept(about, {name: _mapped(place / f"{name}.npy") for name in about["arrays"]})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def is_kept(folder: Path | None, what: What) -> bool:
    """Whether an earlier process kept something; it may be of another version."""
    return folder is not None and (folder / _name(what) / "about.json").exists()


def save(folder: Path | None, what: What, about: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    """Keep some arrays, whole or not at all. A folder that cannot be written keeps nothing."""
    if folder is None:
        return
    try:
        with making(folder, what, about) as maker:
            for name, array in arrays.items():
                maker.put(name, array)
    except OSError:
        # A read-only or full disk: the next process computes it again, and nothing else is lost.
        return


def forget(folder: Path, what: What) -> None:
    """Remove what was kept, if anything was."""
    shutil.rmtree(folder / _name(what), ignore_errors=True)


class Maker:
    """Arrays on their way to the disk."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self.names: list[str] = []

    def put(self, name: str, array: AnyArray) -> None:
        """A whole array."""
        with (self._place / f"{name}.npy").open("wb") as file:
            np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)
        self.names.append(name)

    @contextmanager
    def rows(self, name: str, shape: tuple[int, ...], kind: np.dtype[Any]) -> Iterator[IO[bytes]]:
        """A file to write the rows of an array to, which need not fit memory."""
        header = {"descr": np.lib.format.dtype_to_descr(kind), "fortran_order": False, "shape": shape}
        with (self._place / f"{name}.npy").open("wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            yield file
        self.names.append(name)


@contextmanager
def making(folder: Path, what: What, about: Mapping[str, Any]) -> Iterator[Maker]:
    """Make what is to be kept beside its place; it gets there when all of it is written."""
    folder.mkdir(exist_ok=True)
    temporary = Path(tempfile.mkdtemp(dir=folder, prefix=".making-"))
    try:
        maker = Maker(temporary)
        yield maker
        full = {**about, "generation": _GENERATION, "what": list(what), "arrays": maker.names}
        (temporary / "about.json").write_text(json.dumps(full))
        place = folder / _name(what)
        old = folder / f"{temporary.name}-old"
        if place.exists():
            os.replace(place, old)  # noqa: PTH105
        os.replace(temporary, place)  # noqa: PTH105
        shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def pieces_of(written: Any) -> tuple[Piece, ...]:
    """Pieces of a table as they were before they were written."""
    return tuple((str(files), int(rows), str(gone)) for files, rows, gone in written)


def _mapped(path: Path) -> AnyArray:
    # A plain array over the mapping: what asks for its kind need not know of maps.
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _name(what: What) -> str:
    return hashlib.sha256("|".join(what).encode()).hexdigest()[:32]
