"""The one embedding client of a graph handle: for loads, mutations and query text alike.

The configuration is read, and the client made, on first need: a graph that never embeds needs no key.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any

import numpy as np

from omnigraph.embedding.client import EmbeddingClient
from omnigraph.embedding.config import find_config
from omnigraph.engine.embed import UNCONFIGURED, Unconfigured
from omnigraph.errors import InputError


class GraphEmbedder:
    """Turns texts into vectors by the provider the environment names."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._client: EmbeddingClient | None = None
        self._looked = False
        self._lock = Lock()

    def embed_documents(self, texts: Sequence[str], dim: int) -> Sequence[Sequence[float]]:
        """Vectors of stored texts."""
        return self._required().embed(list(texts), dim, "document")  # type: ignore[return-value]

    def check_model(self, type_name: str, property_name: str, recorded: str | None) -> None:
        """Refuse a model other than the recorded one."""
        self._required().check_model(type_name, property_name, recorded)

    def embed_query(
        self, text: str, dim: int, type_name: str, property_name: str, recorded: str | None
    ) -> np.ndarray[Any, Any]:
        """The vector of a query's text."""
        subject = f"'nearest' on '{type_name}.{property_name}'"
        client = self._get()
        if client is None:
            raise InputError(
                f"{subject} was given a text, and no embedding provider is configured",
                code="embedding_unconfigured",
                hint=f"pass a vector, or {UNCONFIGURED}",
            )
        client.check_model(type_name, property_name, recorded)
        return client.embed_query(text, dim, subject=subject)

    def _required(self) -> EmbeddingClient:
        client = self._get()
        if client is None:
            raise Unconfigured
        return client

    def _get(self) -> EmbeddingClient | None:
        with self._lock:
            if not self._looked:
                config = find_config(self._environ)
                self._client = EmbeddingClient(config) if config is not None else None
                self._looked = True
            return self._client
