"""The state of a cluster in its storage.

    __cluster/state/<number>.json                the applied revisions; the newest one counts
    __cluster/policies/<name>/<digest>/<file>    the files of applied policies
    __cluster/approvals/<graph id>.json          consent to delete a graph
    __cluster/lock.json                          the process that applies

A revision is written only if its number is free, so of two processes one wins.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import msgspec

from omnigraph.cluster.declaration import digest_of, is_id
from omnigraph.decodable import decodable
from omnigraph.errors import Conflict, Damaged, Hint, NotFound
from omnigraph.operations.cluster_graph import graph_path, newest_revision, revision_path
from omnigraph.storage.files.location import locate
from omnigraph.storage.files.objects import object_store
from omnigraph.versioning.model.ids import new_ulid, system_clock

_POLICIES = "__cluster/policies"
_APPROVALS = "__cluster/approvals"
_LOCK = "__cluster/lock.json"
_T = TypeVar("_T")
KEPT_REVISIONS = 20
"""Older revisions are removed by `apply`."""


class AppliedGraph(msgspec.Struct, frozen=True, kw_only=True):
    """A graph of a revision, and the stored queries that the cluster put there, by name and digest."""

    schema: str
    queries: dict[str, str] = {}


class AppliedPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """A policy of a revision."""

    digest: str
    files: list[str]
    applies_to: list[str]


class ClusterRevision(msgspec.Struct, frozen=True, kw_only=True):
    """An applied revision. `converged` is false if a step of the plan was not carried out."""

    version: int = 1
    number: int
    name: str
    is_schema_open: bool = False
    graphs: dict[str, AppliedGraph]
    policies: dict[str, AppliedPolicy] = {}
    leaving: dict[str, str] = {}
    """Graph that is no longer served → the time of that; its files are deleted later."""
    converged: bool = True
    problems: dict[str, str] = {}
    actor_id: str | None = None
    applied_at: str


class DeleteApproval(msgspec.Struct, frozen=True, kw_only=True):
    """Consent to delete a graph whose head is this commit."""

    graph_id: str
    commit_id: str
    actor_id: str
    approved_at: str


class ClusterLock(msgspec.Struct, frozen=True, kw_only=True):
    """The process that changes the cluster."""

    id: str
    actor_id: str | None
    host: str
    pid: int
    locked_at: str


class ClusterStore:
    """The documents of one cluster."""

    def __init__(self, uri: str, environ: Mapping[str, str]) -> None:
        location = locate(uri, environ)
        self.uri = location.uri
        self._path = location.path
        self._objects = object_store(location)

    @property
    def is_local(self) -> bool:
        """True if the cluster is on a disk of this machine."""
        return self._path is not None

    def graph_uri(self, graph_id: str) -> str:
        """Return the address of a graph of the cluster."""
        return f"{self.uri.rstrip('/')}/{graph_path(graph_id)}"

    def newest_number(self) -> int:
        """Return the number of the newest revision; 0 if there is none."""
        return newest_revision(self._objects)

    def find_newest(self) -> ClusterRevision | None:
        """Return the newest revision; None if nothing was applied."""
        number = self.newest_number()
        if number == 0:
            return None
        data = self._objects.read(revision_path(number))
        if data is None:
            return None
        revision = self._decode(data, ClusterRevision, f"revision {number}")
        self._check_names(revision)
        return revision

    def _check_names(self, revision: ClusterRevision) -> None:
        """Raise if a name of a revision is not that of a file or folder of the cluster, such as `../x`."""
        files = [file for policy in revision.policies.values() for file in policy.files]
        wrong = [name for name in (*revision.graphs, *revision.policies, *revision.leaving) if not is_id(name)]
        wrong += (file for file in files if file in ("", ".", "..") or "/" in file or "\\" in file)
        if wrong:
            raise Damaged(
                f"revision {revision.number} of the cluster '{self.uri}' contains the name {wrong[0][:80]!r}",
                code="cluster_damaged",
            )

    def get_newest(self) -> ClusterRevision:
        """Return the newest revision; raise if nothing was applied."""
        found = self.find_newest()
        if found is None:
            raise NotFound(
                f"'{self.uri}' has no applied cluster",
                code="cluster_not_found",
                hint=Hint(
                    "apply a declaration, or import it if its graphs exist",
                    cli="run 'omnigraph cluster apply', or 'omnigraph cluster import' if its graphs exist",
                ),
            )
        return found

    def write(self, revision: ClusterRevision) -> None:
        """Write the next revision; another one of the same number is a conflict."""
        name = revision_path(revision.number)
        if not self._objects.write_if_absent(name, msgspec.json.format(msgspec.json.encode(revision))):
            raise Conflict(
                f"revision {revision.number} of the cluster was written by another process",
                code="cluster_conflict",
                hint="plan and apply again",
            )
        for number in range(max(1, revision.number - 2 * KEPT_REVISIONS), revision.number - KEPT_REVISIONS):
            self._objects.delete(revision_path(number))

    def store_policy(self, name: str, digest: str, files: Mapping[str, str]) -> None:
        """Store the files of a policy below their digest; altered files are replaced."""
        for file, text in files.items():
            self._objects.write(f"{_POLICIES}/{name}/{digest}/{file}", text.encode())

    def policy_folder(self, name: str, policy: AppliedPolicy, copies: Path | None) -> Path:
        """Return a local folder with the files of a policy; missing and altered files raise.

        Files of a bucket are copied below `copies`.
        """
        folder = f"{_POLICIES}/{name}/{policy.digest}"
        texts = self._policy_texts(name, policy)
        if self._path is not None:
            return self._path / folder
        assert copies is not None
        local = copies / name / policy.digest
        local.mkdir(parents=True, exist_ok=True)
        for file, text in texts.items():
            (local / file).write_text(text, encoding="utf-8")
        return local

    def has_policy(self, name: str, policy: AppliedPolicy) -> bool:
        """Return False if a file of an applied policy is missing or altered."""
        try:
            self._policy_texts(name, policy)
        except Damaged:
            return False
        return True

    def _policy_texts(self, name: str, policy: AppliedPolicy) -> dict[str, str]:
        folder = f"{_POLICIES}/{name}/{policy.digest}"
        texts: dict[str, str] = {}
        for file in policy.files:
            data = self._objects.read(f"{folder}/{file}")
            if data is None:
                raise Damaged(f"the file '{file}' of the applied policy '{name}' is missing", code="cluster_damaged")
            texts[file] = data.decode(errors="replace")  # a text that is not UTF-8 has another digest
        if digest_of(*(part for file in sorted(texts) for part in (file, texts[file]))) != policy.digest:
            raise Damaged(
                f"the applied policy '{name}' was altered",
                code="cluster_damaged",
                hint=Hint("apply the declaration again", cli="run 'omnigraph cluster apply'"),
            )
        return texts

    def approve(self, approval: DeleteApproval) -> None:
        """Record consent to delete a graph."""
        self._objects.write(f"{_APPROVALS}/{approval.graph_id}.json", msgspec.json.encode(approval))

    def find_approval(self, graph_id: str) -> DeleteApproval | None:
        """Return the consent to delete a graph; None if there is none."""
        data = self._objects.read(f"{_APPROVALS}/{graph_id}.json")
        return None if data is None else self._decode(data, DeleteApproval, f"the approval of '{graph_id}'")

    def delete_graph(self, graph_id: str) -> None:
        """Delete a graph with all its data, and the consent to it."""
        self._objects.delete_folder(graph_path(graph_id))
        self._objects.delete(f"{_APPROVALS}/{graph_id}.json")

    def find_lock(self) -> ClusterLock | None:
        """Return the lock; None if the cluster is not locked."""
        data = self._objects.read(_LOCK)
        return None if data is None else self._decode(data, ClusterLock, "the lock")

    @contextmanager
    def locked(self, actor: str | None) -> Iterator[None]:
        """Hold the lock of the cluster; a held lock is a conflict."""
        mine = ClusterLock(
            id=new_ulid(system_clock()), actor_id=actor, host=socket.gethostname(), pid=os.getpid(), locked_at=utc_now()
        )
        if not self._objects.write_if_absent(_LOCK, msgspec.json.encode(mine)):
            held = self.find_lock()
            shown = f"by {held.actor_id or 'an unknown actor'} on {held.host} since {held.locked_at}" if held else ""
            raise Conflict(
                f"the cluster is locked {shown}".rstrip(),
                code="cluster_locked",
                hint=_unlock_hint(held) if held else None,
            )
        try:
            yield
        finally:
            self.unlock(mine.id)

    def unlock(self, lock_id: str) -> bool:
        """Remove exactly this lock; return False if it is not held."""
        held = self.find_lock()
        if held is None or held.id != lock_id:
            return False
        self._objects.delete(_LOCK)
        return True

    def _decode(self, data: bytes, type_: type[_T], what: str) -> _T:
        try:
            return msgspec.json.decode(data, type=decodable(type_))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Damaged(
                f"{what} of the cluster '{self.uri}' cannot be read: {error}", code="cluster_damaged"
            ) from None


def _unlock_hint(held: ClusterLock) -> Hint:
    command = f"omnigraph cluster force-unlock {held.id}"
    return Hint(f"if that process died, unlock {held.id}", cli=f"if that process died, run '{command}'")


def utc_now() -> str:
    """Return the present time as RFC 3339."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
