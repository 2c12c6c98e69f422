"""The objects that the manifest records: tables, pins, commits, heads, tags and reclaims.

A pin identifies a visible table version. Commits and heads both hold all pins of their snapshot, so any point of
history is read from one row, whatever was compacted or dropped since. `manifest_rows` converts the objects to rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any, Literal

import pyarrow as pa

from omnigraph.display import html_of
from omnigraph.fast_dataclass import dataclass
from omnigraph.storage.lance.version_parts import VersionPart
from omnigraph.table_key import TableKey
from omnigraph.text_table import brief_repr

MAIN = "main"
RECLAIM_PREFIX = "reclaim:"
Kind = Literal["node", "edge"]


def instant(microseconds: int) -> datetime:
    """Convert microseconds since 1970 to a datetime in UTC."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)


def microseconds(time: datetime) -> int:
    """Convert a time to microseconds since 1970; a time without a zone is in UTC."""
    return int((time if time.tzinfo is not None else time.replace(tzinfo=UTC)).timestamp() * 1_000_000)


@dataclass(frozen=True, slots=True)
class TableSpec:
    """A table to create: its identity, its name and its columns."""

    kind: Kind
    name: str
    table_id: int
    incarnation: int
    schema: pa.Schema

    @property
    def key(self) -> TableKey:
        """Key of the table."""
        return TableKey.of(self.kind, self.name)


@dataclass(frozen=True, slots=True)
class GraphSpec:
    """A graph to create: its schema, its tables, and the first identity number that they do not use."""

    schema: SchemaRecord
    tables: tuple[TableSpec, ...] = ()
    next_identity: int = 1


@dataclass(frozen=True, slots=True)
class TableRow:
    """An existing table: identity and folder; the key is the one it was last published under."""

    table_id: int
    incarnation: int
    key: str
    folder: str


@dataclass(frozen=True, slots=True)
class EmbeddingSpace:
    """The origin of the vectors of a column. Vectors of different spaces cannot be compared."""

    provider: str
    model: str
    dimensions: int

    def __str__(self) -> str:
        model = f"model '{self.model}'" if self.model else "no model"
        return f"provider '{self.provider}', {model}, {self.dimensions} dimensions"


@dataclass(frozen=True, slots=True)
class Pin:
    """A visible table version. `table_version` counts publishes on the branch; `lance_version` identifies the state.

    An intermediate commit of a group can pin a part of a version. Then `lance_version` is the negative number of the
    part and `transaction` its text form.
    """

    table_id: int
    incarnation: int
    key: str
    table_version: int
    lance_version: int
    row_count: int
    transaction: str = ""
    """The id of the Lance transaction that made the version. It identifies the version; the number alone does not."""
    embeddings: tuple[tuple[str, EmbeddingSpace], ...] = ()
    """Column → embedding space, for columns that the graph embeds itself."""

    @property
    def part(self) -> VersionPart | None:
        """The part of a version that is visible; None if the whole version is."""
        return VersionPart.of(self.transaction)

    @property
    def versions(self) -> tuple[int, ...]:
        """The Lance versions that are required to read the table: one, or two for a part of a version."""
        part = self.part
        return (self.lance_version,) if part is None else (part.version, part.base)

    def to_list(self) -> list[Any]:
        """Return the compact JSON form."""
        return [self.table_id, self.incarnation, self.key, self.table_version, self.lance_version, self.row_count]


@dataclass(frozen=True, slots=True)
class SchemaRecord:
    """A schema as stored in the manifest; opaque to this package."""

    hash: str
    source: str
    ir: str


@dataclass(frozen=True, slots=True)
class QueriesRecord:
    """The stored queries of a graph as stored in the manifest; opaque to this package."""

    hash: str
    document: str


@dataclass(frozen=True, slots=True)
class Commit:
    """One commit of the history."""

    id: str
    branch: str
    manifest_version: int
    parent_id: str | None
    merged_parent_id: str | None
    actor: str | None
    created_us: int
    message: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    kind: str = "write"
    changed: tuple[str, ...] = ()
    schema_hash: str = ""
    since: int = 0
    """The manifest version in which its branch was created; a branch name can be reused."""
    fork_commit_id: str | None = None
    """The commit from which its branch was forked."""
    queries_hash: str = ""
    """The stored queries at the commit; empty if there are none."""
    aliases_hash: str = ""
    """The aliases of nodes at the commit; empty if there are none."""

    def _repr_html_(self) -> str:
        return html_of(self)

    @property
    def created_at(self) -> datetime:
        """The creation time in UTC."""
        return instant(self.created_us)

    @property
    def parents(self) -> tuple[str, ...]:
        """The parents: none for the first commit, one for a write, two for a merge."""
        return tuple(parent for parent in (self.parent_id, self.merged_parent_id) if parent is not None)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {
            "graph_commit_id": self.id,
            "manifest_branch": None if self.branch == MAIN else self.branch,
            "manifest_version": self.manifest_version,
            "parent_commit_id": self.parent_id,
            "merged_parent_commit_id": self.merged_parent_id,
            "actor_id": self.actor,
            "created_at": self.created_us,
            "message": self.message,
            "metadata": dict(self.metadata),
            "kind": self.kind,
            "changed": list(self.changed),
        }


class Commits(Mapping[str, Commit]):
    """The commits of the history up to a manifest version, by id, oldest first. They never change.

    Later versions share the entries and append to them, so a commit costs the same after any number of others.
    """

    def __init__(self, version: int, by_id: dict[str, Commit], ids: list[str]) -> None:
        self.version = version
        self._by_id = by_id
        self._ids = ids
        self._count = len(ids)

    def extended(self, commits: Iterable[Commit], version: int) -> Commits:
        """Return the commits up to a later version. Only the newest of the versions that share entries is extended."""
        for commit in commits:
            if commit.manifest_version > self.version:
                self._by_id[commit.id] = commit
                self._ids.append(commit.id)
        return Commits(version, self._by_id, self._ids)

    def __getitem__(self, commit_id: str) -> Commit:
        commit = self._by_id[commit_id]
        if commit.manifest_version > self.version:
            raise KeyError(commit_id)
        return commit

    def __iter__(self) -> Iterator[str]:
        return islice(self._ids, self._count)

    def __len__(self) -> int:
        return self._count


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a branch: its commit, its fork point, and an incarnation that distinguishes reuses of the name."""

    branch: str
    incarnation: str
    commit_id: str
    parent_commit_id: str | None
    manifest_version: int
    schema_hash: str
    created_us: int
    fork_commit_id: str | None = None
    fork_branch: str | None = None
    since: int = 0
    """The manifest version in which the branch was created."""
    owner: str | None = None
    pins: tuple[Pin, ...] = ()
    description: str | None = None
    expires_us: int | None = None
    """The time after which a cleanup deletes the branch, in microseconds since 1970; None if it does not expire."""
    queries_hash: str = ""
    """The stored queries; empty if there are none."""
    aliases_hash: str = ""
    """The aliases of nodes; empty if there are none."""

    def __repr__(self) -> str:
        hidden = (
            "incarnation", "parent_commit_id", "manifest_version", "schema_hash", "created_us", "since", "pins",
            "queries_hash", "aliases_hash",
        )  # fmt: skip
        unset = tuple(name for name in ("description", "expires_us") if getattr(self, name) is None)
        return brief_repr(self, (*hidden, *unset))

    @property
    def created_at(self) -> datetime:
        """The creation time in UTC."""
        return instant(self.created_us)

    @property
    def expires_at(self) -> datetime | None:
        """The time in UTC after which a cleanup deletes the branch; None if it does not expire."""
        return instant(self.expires_us) if self.expires_us is not None else None


@dataclass(frozen=True, slots=True)
class Tag:
    """A name for one commit. It protects the table versions that the commit pins from cleanup."""

    name: str
    commit_id: str
    created_us: int
    actor: str | None = None
    message: str | None = None
    pins: tuple[Pin, ...] = ()

    def __repr__(self) -> str:
        return brief_repr(self, ("created_us", "pins"))

    @property
    def created_at(self) -> datetime:
        """The creation time in UTC."""
        return instant(self.created_us)

    def to_json(self) -> dict[str, Any]:
        """Return the JSON form that all interfaces show."""
        return {
            "name": self.name,
            "graph_commit_id": self.commit_id,
            "created_at": self.created_us,
            "actor_id": self.actor,
            "message": self.message,
        }


@dataclass(frozen=True, slots=True)
class Reclaim:
    """A fence around table versions that a cleanup removes: folder → versions, or None for a whole folder."""

    token: str
    tables: Mapping[str, frozenset[int] | None]

    @property
    def object_id(self) -> str:
        """The id of its row."""
        return f"{RECLAIM_PREFIX}{self.token}"
