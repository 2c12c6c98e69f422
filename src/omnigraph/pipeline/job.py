"""The constants that all tasks of a job share, and the objects that a process caches between tasks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from uuid import uuid4

from omnigraph import older_names
from omnigraph.engine.write.constraints import rules_of
from omnigraph.engine.write.delta import IntegrityRule
from omnigraph.errors import Conflict
from omnigraph.operations.embed.embedder import ColumnEmbedder, GraphEmbedder
from omnigraph.operations.load.load_request import Mode
from omnigraph.query.visibility import Visibility
from omnigraph.schema.catalog import Catalog
from omnigraph.schema.identity import SchemaIR, catalog_of
from omnigraph.storage.files import layout
from omnigraph.storage.files.location import Location
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.storage.lance.store_pool import pooled_store
from omnigraph.storage.lance.table_store import TableStore
from omnigraph.storage.lance.tables import Table
from omnigraph.values import Fetch
from omnigraph.versioning.model.manifest_objects import EmbeddingSpace

_EMBED_SETTINGS = (
    "OMNIGRAPH_EMBED",
    "OMNIGRAPH_GEMINI",
    older_names.SETTINGS_PREFIX,
    "GEMINI_API_KEY",
    "OPENAI_",
    "OPENROUTER_API_KEY",
)
"""Prefixes of the environment variables that configure embeddings. Tasks receive no other variables."""


_LEAST_BYTES = 4 << 20
"""A buffer is not made smaller: every fragment and file has a fixed cost."""
LEASE_FILE = "job.json"
"""Name of the lease in the folder of a job. It exists while the job is open."""


def embed_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Select the environment variables that tasks receive."""
    return {name: value for name, value in environ.items() if name.startswith(_EMBED_SETTINGS)}


@dataclass(frozen=True)
class Job:
    """The constants of a job, sent to every task.

    `pins` has, for each table, its folder, its version and the transaction that made the version. `environ` has the
    settings of embeddings and no other variable of the driver.
    """

    id: str
    location: Location
    schema: str
    pins: Mapping[str, tuple[str, int, str]]
    mode: Mode = "merge"
    keep: bool = True
    """True if a property that is absent from a record keeps its value in a merge."""
    collect: bool = False
    buckets: int = 1
    aliases: str | None = None
    """The file with other spellings of ids in the input."""
    node_aliases: str | None = None
    """The file with the former ids of unified nodes."""
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    embed: bool = True
    at_once: int | None = None
    """Maximum number of concurrent workers, where they share a limit of the provider."""
    spaces: Mapping[tuple[str, str], EmbeddingSpace] = field(default_factory=dict)
    """(table key, column) → the model that made the existing vectors."""
    fetch: Fetch | None = None
    """Resolves references to blobs."""
    memory: int | None = None
    """Bytes that the buffers of a task may use; None does not limit them."""
    visibility: Visibility | None = None
    """The rows and values that scans of tables show; only scans of Spark apply it."""

    def within_memory(self, size: int, share: int) -> int:
        """Return a size, or one of so many shares of the memory of a task if that is less."""
        return size if self.memory is None else min(size, max(self.memory // share, _LEAST_BYTES))

    @property
    def catalog(self) -> Catalog:
        """The catalog of the schema."""
        return _catalog(self.schema)

    @property
    def rules(self) -> list[IntegrityRule]:
        """The rules of the schema."""
        return _rules(self.schema)

    @property
    def folder(self) -> str:
        """The folder of the job, relative to the graph's root."""
        return layout.staging_folder(self.id)

    @property
    def files(self) -> ObjectStore:
        """The object store of the graph."""
        return self.store.objects

    def check_open(self) -> None:
        """Raise `Conflict` if the job has ended, and remove its folder, which a late task may have created again.

        Removing a job deletes its lease first. A task that still finds the lease after listing its files leaves them to
        that removal.
        """
        if self.files.read(f"{self.folder}/{LEASE_FILE}") is None:
            self.files.delete_folder(self.folder)
            raise Conflict("the load of this task has ended; its files are removed", hint="load the rows again")

    @property
    def store(self) -> TableStore:
        """The tables of the graph."""
        return pooled_store(self.location)

    def table(self, key: str) -> Table:
        """Open a table at its pin."""
        return self.store.open(*self.pins[key])

    def new_name(self, kind: str) -> str:
        """A unique file name: no other task and no other attempt of this task uses it."""
        return f"{self.folder}/{kind}-{uuid4().hex}"

    def embedder(self) -> GraphEmbedder | None:
        """The embedder of this process; None if vectors are not filled."""
        if not self.embed:
            return None
        return _embedder(tuple(sorted(self.environ.items())))

    def column_embedder(self) -> ColumnEmbedder | None:
        """The embedder of the graph's columns. It refuses a model that differs from the recorded one."""
        embedder = self.embedder()
        if embedder is None:
            return None
        return ColumnEmbedder(
            embedder, lambda *column: self.spaces.get(column), self.catalog, renew=self.mode == "overwrite"
        )


@lru_cache(maxsize=8)
def _catalog(schema: str) -> Catalog:
    return catalog_of(SchemaIR.from_json(json.loads(schema)))


@lru_cache(maxsize=8)
def _rules(schema: str) -> list[IntegrityRule]:
    return rules_of(_catalog(schema))


@lru_cache(maxsize=2)
def _embedder(environ: tuple[tuple[str, str], ...]) -> GraphEmbedder:
    return GraphEmbedder(dict(environ))
