"""Idempotency keys: a repeated request returns the result of the first one.

The row of a key is added by the publish that makes the change. Change and result are therefore recorded together or not
at all, and of several concurrent requests with one key exactly one makes the change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from omnigraph.errors import Cancelled, Conflict, InputError, KeyReused, OmniGraphError, StorageError
from omnigraph.fast_dataclass import dataclass
from omnigraph.scalar_types.readers import is_unicode
from omnigraph.storage.manifest.manifest_schema import Row
from omnigraph.versioning.model.manifest_objects import Commit
from omnigraph.versioning.model.manifest_rows import (
    idempotency_object_id,
    idempotency_to_row,
    read_metadata,
    unscoped_idempotency_object_id,
)
from omnigraph.versioning.model.state import State

if TYPE_CHECKING:
    from omnigraph.versioning.write.repository import Repository

T = TypeVar("T")
_KEY_LENGTH_MAX = 1_024


class GeneratedKey(str):
    """An idempotency key that the library generated for one call, so the call itself cannot be a repetition."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class RequestKey:
    """The idempotency key of a request. Keys of different actors are independent."""

    key: str
    actor: str | None = None
    request_hash: str | None = None
    """Identifies the arguments of the request; None if requests with one key are not compared."""
    kind: str | None = None
    """The kind of the commit that the request makes."""

    @property
    def is_generated(self) -> bool:
        """True if the library generated the key."""
        return isinstance(self.key, GeneratedKey)

    def to_row(self, result: Mapping[str, Any], commit_id: str | None = None) -> Row:
        """Return the row that records the result of the request and the commit that it made, if any."""
        return idempotency_to_row(self.key, self.actor, commit_id, self.request_hash, result)


@dataclass(frozen=True)
class Earlier:
    """What the first request with a key did."""

    commit: Commit | None
    """The commit that it made; None for a change without a commit, such as the deletion of a branch."""
    result: Mapping[str, Any]
    """The recorded part of its result; empty for changes and loads, whose results are in the commit."""


def hash_request(kind: str, *arguments: Any) -> str:
    """Return a digest of the arguments of a request; the order of mappings does not matter."""
    text = json.dumps([kind, *map(_ordered, arguments)], default=repr)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _ordered(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {"mapping": sorted(([repr(name), _ordered(item)] for name, item in value.items()), key=repr)}
    return list(map(_ordered, value)) if isinstance(value, list | tuple) else value


def find_earlier(repository: Repository, request: RequestKey | None, state: State) -> Earlier | None:
    """Return what an earlier request of the same actor with this key did; None if there is none.

    A request with the key but with other arguments raises `KeyReused`.
    """
    if request is None:
        return None
    key = request.key
    scoped = idempotency_object_id(key, request.actor)
    rows = repository.manifest.find(state.manifest, scoped, unscoped_idempotency_object_id(key))
    for row in sorted(rows, key=lambda row: bool(row["object_id"] != scoped)):
        recorded = read_metadata(row)
        commit = repository.get_commit(recorded["commit_id"]) if recorded["commit_id"] is not None else None
        if commit is not None and commit.actor != request.actor:
            # A row without an actor in its id belongs to the actor of its commit.
            continue
        if not _is_same(request, recorded.get("request_hash"), commit):
            raise KeyReused(
                f"the idempotency key '{key}' was used for another request", hint="use a new key for a new request"
            )
        return Earlier(commit, recorded.get("result") or {})
    return None


def _is_same(request: RequestKey, recorded: str | None, commit: Commit | None) -> bool:
    """Return True if a recorded hash is that of the request.

    Earlier releases recorded none for loads, and a purge removes the hashes of requests that may contain purged values.
    """
    if recorded is None and commit is not None and request.kind is not None:
        return commit.kind == request.kind
    return recorded == request.request_hash


def refuse_repetition(repository: Repository, request: RequestKey | None, state: State) -> None:
    """Raise `Conflict` if a concurrent request with the same key was published first; `once` restores its result."""
    if request is not None and not request.is_generated and find_earlier(repository, request, state) is not None:
        raise Conflict(f"the request with the idempotency key '{request.key}' was already made")


def once(
    repository: Repository,
    request: RequestKey | None,
    run: Callable[[], T],
    restore: Callable[[Earlier], T],
    is_recorded: Callable[[T], bool] = lambda _: True,
) -> T:
    """Run a request, or restore the result of the earlier one with the same key.

    If the request fails or changes nothing, the key is looked up again: a concurrent request with the same key may
    have made the change. `is_recorded` returns False for a result without a change, which has no row.
    """
    if request is None:
        return run()
    check_idempotency_key(request.key)
    if request.is_generated:
        return run()
    earlier = find_earlier(repository, request, repository.state())
    if earlier is not None:
        return restore(earlier)
    try:
        result = run()
    except (Cancelled, KeyReused):
        raise
    except OmniGraphError:
        # If the store cannot be read, the first error is the one to report.
        with suppress(StorageError):
            earlier = find_earlier(repository, request, repository.state())
        if earlier is None:
            raise
        return restore(earlier)
    if not is_recorded(result):
        earlier = find_earlier(repository, request, repository.state())
    return result if earlier is None else restore(earlier)


def check_idempotency_key(key: object) -> str:
    """Validate an idempotency key and return it."""
    if not isinstance(key, str) or not key.strip() or len(key) > _KEY_LENGTH_MAX or not is_unicode(key):
        shown = f"a {type(key).__name__}" if not isinstance(key, str) else "empty" if not key.strip() else "too long"
        raise InputError(
            f"an idempotency key is a str of 1 to {_KEY_LENGTH_MAX} characters; this one is {shown}"
            if not isinstance(key, str) or is_unicode(key)
            else "an idempotency key must not contain an unpaired surrogate",
            code="bad_idempotency_key",
            hint="use a new key for each request, such as str(uuid.uuid4())",
        )
    return key
