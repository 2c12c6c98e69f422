"""Fills vector properties from their source texts.

The engine knows embeddings only as an `Embedder`, which may be absent. An explicit vector takes precedence. A null or
blank text has no vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arrays import concatenate, one_array
from omnigraph.engine.exec.native_calls import interruptible
from omnigraph.errors import InputError
from omnigraph.schema.catalog import NodeType

UNCONFIGURED = (
    "set GEMINI_API_KEY, OPENAI_API_KEY or OPENROUTER_API_KEY; OMNIGRAPH_EMBED_PROVIDER=local makes vectors offline, "
    "OMNIGRAPH_EMBEDDINGS_MOCK=1 makes them for tests"
)


class Unconfigured(Exception):
    """Raised by an embedder on first use if no provider is configured."""


class Embedder(Protocol):
    """Converts stored text to vectors of unit length."""

    def embed_documents(self, texts: Sequence[str], dim: int) -> Sequence[Sequence[float]]:
        """Return one vector per text."""

    def check_model(self, type_name: str, property_name: str, recorded: str | None) -> None:
        """Raise an error if the model differs from the recorded one."""

    def identity(self) -> tuple[str, str]:
        """Return the provider and the model."""

    @property
    def allows_mixed(self) -> bool:
        """True if vectors of different models may be in one column."""


class CachingEmbedder:
    """An embedder that caches vectors, so that a retried write embeds each text once."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self._known: dict[tuple[int, str], Sequence[float]] = {}

    def embed_documents(self, texts: Sequence[str], dim: int) -> Sequence[Sequence[float]]:
        """Return one vector per text."""
        new = [text for text in dict.fromkeys(texts) if (dim, text) not in self._known]
        if new:
            vectors = self._embedder.embed_documents(new, dim)
            self._known.update(zip(((dim, text) for text in new), vectors, strict=True))
        return [self._known[dim, text] for text in texts]

    def check_model(self, type_name: str, property_name: str, recorded: str | None) -> None:
        """Raise an error if the model differs from the recorded one."""
        self._embedder.check_model(type_name, property_name, recorded)

    def identity(self) -> tuple[str, str]:
        """Return the provider and the model."""
        return self._embedder.identity()

    @property
    def allows_mixed(self) -> bool:
        """True if vectors of different models may be in one column."""
        return self._embedder.allows_mixed


def has_text(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return a mask of the texts to embed: not null and not only white space."""
    return pc.fill_null(pc.greater(pc.utf8_length(pc.utf8_trim_whitespace(texts)), 0), False)


def fill_vectors(
    node: NodeType, rows: pa.Table, embedder: Embedder | None, *, targets: Sequence[str] | None = None
) -> tuple[pa.Table, int, int]:
    """Return the rows with missing vectors filled, the number of vectors computed, and the number still missing.

    `targets` limits it to some vector properties. Without an embedder a nullable vector stays null.
    """
    computed = waiting = 0
    for target, embed in node.embeds.items():
        if targets is not None and target not in targets:
            continue
        type_ = node.properties[target].type
        texts = rows[embed.source]
        needed = pc.and_(pc.is_null(rows[target]), has_text(texts))
        count = pc.sum(needed).as_py() or 0
        if not count:
            continue
        distinct = pc.unique(texts.filter(needed))
        assert type_.dim is not None
        try:
            if embedder is None:
                raise Unconfigured
            embedder.check_model(node.name, target, embed.model)
            texts_of, dim = distinct.to_pylist(), type_.dim
            made = np.asarray(interruptible(partial(embedder.embed_documents, texts_of, dim)), np.float32)
        except Unconfigured:
            if not type_.nullable:
                raise InputError(
                    f"'{node.name}.{target}' must be embedded from '{embed.source}', and no provider is configured",
                    code="embedding_unconfigured",
                    hint=UNCONFIGURED,
                ) from None
            waiting += count
            continue
        column = _filled(rows[target], needed, made, pc.index_in(texts, value_set=distinct))
        rows = rows.set_column(rows.schema.get_field_index(target), rows.schema.field(target), column)
        computed += count
    return rows, computed, waiting


def _filled(
    column: pa.ChunkedArray, needed: pa.ChunkedArray, made: np.ndarray[Any, Any], which: pa.ChunkedArray
) -> pa.Array:
    """Fill the rows `needed` of a column with new vectors; `which` is the index of each row's vector in `made`."""
    old = concatenate(column.chunks)
    new = pa.FixedSizeListArray.from_arrays(pa.array(made.ravel()), made.shape[1]).cast(column.type)
    places = pc.if_else(needed, pc.add(which.cast(pa.int64()), len(old)), pa.array(np.arange(len(old))))
    return concatenate([old, new]).take(one_array(places))
