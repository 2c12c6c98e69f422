"""The embedding client of a graph handle, shared by loads, mutations and queries.

The configuration is read and the client is created on first use, so a graph that never embeds needs no key. The graph
records the provider, model and dimensions of each column when its first vector is made. From then on, other models are
refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from omnigraph.engine.write.fill_vectors import UNCONFIGURED, Embedder, Unconfigured
from omnigraph.errors import EmbeddingMismatch, InputError
from omnigraph.versioning.model.manifest_objects import EmbeddingSpace

if TYPE_CHECKING:
    from omnigraph.embedding.client import EmbeddingClient
    from omnigraph.schema.catalog import Catalog
    from omnigraph.versioning.write.transaction import Transaction

ALLOW_MIXED = "OMNIGRAPH_EMBED_ALLOW_MIXED"
"""The setting that permits vectors of different models in one column."""

FindSpace = Callable[[str, str], EmbeddingSpace | None]
"""(table key, column) → the space of its vectors."""


def check_space(subject: str, recorded: EmbeddingSpace, resolved: EmbeddingSpace) -> None:
    """Raise an error if two vector spaces differ."""
    if recorded != resolved:
        raise EmbeddingMismatch(subject, recorded=str(recorded), resolved=str(resolved))


class ColumnEmbedder:
    """The embedder of one write. It checks each column against its recorded space and records the space of the first
    vectors.

    With `renew` all vectors of a column are new, so its record is replaced.
    """

    def __init__(self, embedder: Embedder, find: FindSpace, catalog: Catalog, *, renew: bool = False) -> None:
        self._embedder = embedder
        self._find = find
        self._catalog = catalog
        self._renew = renew
        self._made: dict[tuple[str, str], EmbeddingSpace] = {}

    def embed_documents(self, texts: Sequence[str], dim: int) -> Sequence[Sequence[float]]:
        """Embed stored texts."""
        return self._embedder.embed_documents(texts, dim)

    def check_model(self, type_name: str, property_name: str, recorded: str | None) -> None:
        """Raise an error if the model differs from the one in the schema or from the one that made the column's
        vectors.
        """
        self._embedder.check_model(type_name, property_name, recorded)
        node = self._catalog.nodes[type_name]
        space = EmbeddingSpace(*self.identity(), node.properties[property_name].type.dim or 0)
        known = self._find(node.table_key, property_name)
        if known is None or self._renew:
            self._made[node.table_key, property_name] = space
        elif not self.allows_mixed:
            check_space(f"'{type_name}.{property_name}'", known, space)

    def identity(self) -> tuple[str, str]:
        """The provider and model."""
        return self._embedder.identity()

    @property
    def allows_mixed(self) -> bool:
        """True if a column may contain vectors of different models."""
        return self._embedder.allows_mixed

    def record(self, transaction: Transaction) -> None:
        """Record the spaces of the columns that got their first vectors in a transaction."""
        for (key, column), space in self._made.items():
            transaction.record_embedding(key, column, space)


class GraphEmbedder:
    """Embeds texts with the provider that the environment configures."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._client: EmbeddingClient | None = None
        self._looked = False
        self._lock = Lock()

    def embed_documents(self, texts: Sequence[str], dim: int) -> Sequence[Sequence[float]]:
        """Embed stored texts."""
        return self._required().embed(list(texts), dim, "document")  # type: ignore[return-value]

    def check_model(self, type_name: str, property_name: str, recorded: str | None) -> None:
        """Raise an error if the configured model differs from the recorded one."""
        self._required().check_model(type_name, property_name, recorded)

    def identity(self) -> tuple[str, str]:
        """The provider and model."""
        config = self._required().config
        return config.provider, config.model

    @property
    def allows_mixed(self) -> bool:
        """True if the settings permit vectors of different models in one column."""
        return self._environ.get(ALLOW_MIXED, "").strip().lower() in ("1", "true", "yes", "on")

    def embed_query(
        self,
        text: str,
        dim: int,
        type_name: str,
        property_name: str,
        recorded: str | None,
        spaces: Sequence[EmbeddingSpace] = (),
    ) -> np.ndarray[Any, Any]:
        """Embed the text of a query. `spaces` are those of the vectors that it is compared with."""
        subject = f"'nearest' on '{type_name}.{property_name}'"
        client = self._get()
        if client is None:
            raise InputError(
                f"{subject} was given a text, and no embedding provider is configured",
                code="embedding_unconfigured",
                hint=f"pass a vector, or {UNCONFIGURED}",
            )
        client.check_model(type_name, property_name, recorded)
        own = EmbeddingSpace(client.config.provider, client.config.model, dim)
        for space in spaces if not self.allows_mixed else ():
            check_space(f"'{type_name}.{property_name}'", space, own)
        return client.embed_query(text, dim, subject=subject)

    def _required(self) -> EmbeddingClient:
        client = self._get()
        if client is None:
            raise Unconfigured
        return client

    def _get(self) -> EmbeddingClient | None:
        from omnigraph.embedding.client import EmbeddingClient  # noqa: PLC0415 (only when a text is embedded)
        from omnigraph.embedding.config import find_config  # noqa: PLC0415 (only when a text is embedded)

        with self._lock:
            if not self._looked:
                config = find_config(self._environ)
                self._client = EmbeddingClient(config) if config is not None else None
                self._looked = True
            return self._client
