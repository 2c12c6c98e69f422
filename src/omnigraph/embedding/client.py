"""The embeddings client.

One instance serves a graph handle for loads, mutations and queries, from any number of threads. Creating it is cheap:
connections are opened and word vectors are read with the first text.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

import numpy as np

from omnigraph.embedding.config import EmbeddingConfig
from omnigraph.embedding.local import LocalVectors
from omnigraph.embedding.mock import mock_vectors
from omnigraph.embedding.provider import HttpProvider
from omnigraph.embedding.vectors import Vectors
from omnigraph.embedding.wire import Role
from omnigraph.errors import EmbeddingError, InputError
from omnigraph.observer import timed
from omnigraph.scalar_types.readers import is_unicode


class EmbeddingClient:
    """Embeds texts with one model.

    `clock` returns seconds since any fixed time and `sleep` waits; tests replace both.
    """

    def __init__(
        self,
        config: EmbeddingConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self.config = config
        self._clock = clock
        self._sleep = sleep
        self._lock = threading.Lock()
        self._http: HttpProvider | None = None
        self._local: LocalVectors | None = None

    @property
    def model(self) -> str:
        """The resolved model; may be empty for the mock provider."""
        return self.config.model

    def embed(self, texts: Sequence[str], dim: int, role: Role = "document") -> Vectors:
        """Return one row of length 1 per text, `(len(texts), dim)`; identical texts are embedded once.

        Raises `EmbeddingError` as soon as one text fails: there are no partial results. Its `text_index` is the index
        in `texts` of a text that failed.
        """
        if dim < 1:
            raise EmbeddingError(f"a vector cannot have {dim} dimensions")
        for index, text in enumerate(texts):
            if not is_unicode(text):
                raise InputError(f"text {index} contains an unpaired surrogate and is not valid Unicode")
        firsts: dict[str, int] = {}
        for index, text in enumerate(texts):
            firsts.setdefault(text, index)
        if not firsts:
            return np.empty((0, dim), np.float32)
        try:
            vectors = self._embed(list(firsts), dim, role)
        except EmbeddingError as error:
            if error.text_index is not None:
                error.text_index = list(firsts.values())[error.text_index]
            raise
        if len(firsts) == len(texts):
            return vectors
        rows = {text: row for row, text in enumerate(firsts)}
        return vectors[[rows[text] for text in texts]]

    def embed_query(self, text: str, dim: int, *, subject: str) -> Vectors:
        """Return the vector of a query text; `subject` names the text in errors, such as "parameter '$q'"."""
        if not text.strip():
            raise InputError(f"{subject} is blank: searching needs a text, or a vector of {dim} numbers")
        vector: Vectors = self.embed([text], dim, "query")[0]
        return vector

    def check_model(self, type_name: str, property_name: str, recorded: str | None) -> None:
        """Refuse a property with vectors of another model; a property without a recorded model is not checked."""
        self.config.check_model(type_name, property_name, recorded)

    def close(self) -> None:
        """Close idle connections; the client remains usable."""
        with self._lock:
            if self._http is not None:
                self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @timed("embedding", "embed")
    def _embed(self, texts: Sequence[str], dim: int, role: Role) -> Vectors:
        match self.config.provider:
            case "mock":
                return mock_vectors(texts, dim)
            case "local":
                with self._lock:
                    self._local = self._local or LocalVectors(self.config.model)
                return self._local.embed(texts, dim)
            case _:
                with self._lock:
                    self._http = self._http or HttpProvider(self.config, clock=self._clock, sleep=self._sleep)
                return self._http.embed(texts, dim, role)
