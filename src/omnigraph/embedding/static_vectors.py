"""Static word vectors of installed packages.

A package provides them through an entry point of the group `omnigraph.word_vectors`. The name of the entry point is the
name of the vectors, including their version. Its object is a function without arguments that returns `(words,
vectors)`: the words, by descending frequency, and an array with one row per word. Nothing is downloaded, and listing
the entry points imports nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import EntryPoint, entry_points

import numpy as np
from numpy.typing import NDArray

from omnigraph.errors import EmbeddingError

GROUP = "omnigraph.word_vectors"


def installed_word_vectors() -> dict[str, EntryPoint]:
    """Return the names of the word vectors of installed packages, sorted."""
    return {point.name: point for point in sorted(entry_points(group=GROUP), key=lambda point: point.name)}


def read_word_vectors(point: EntryPoint) -> tuple[Sequence[str], NDArray[np.float32]]:
    """Load the words and vectors of an entry point."""
    try:
        words, vectors = point.load()()
        array = np.asarray(vectors, dtype=np.float32)
    except Exception as error:  # the package may raise anything
        raise EmbeddingError(
            f"the word vectors '{point.name}' cannot be read: {error}",
            hint=f"they come from '{point.value}', an entry point of the group '{GROUP}'",
        ) from error
    if array.ndim != 2 or array.shape[0] != len(words) or 0 in array.shape or not np.isfinite(array).all():
        raise EmbeddingError(
            f"the word vectors '{point.name}' are not one row of finite numbers per word: "
            f"{len(words)} words, an array of shape {array.shape}",
        )
    return words, array
