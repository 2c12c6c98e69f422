"""`OwnedDocument`: a JSON document of a graph that one process at a time may change.

The document is stored in numbered objects; the highest number is its current state. Every change creates the next
number on condition that it does not exist, so of several processes exactly one succeeds. This is a compare-and-swap on
stores whose only condition is *create if absent*. A process that lost notices it at its next change, and stops.

The document names its owner. An owner rewrites it at least every `RENEW_S`; another process takes it over if the owner
is not alive (`leases`). Earlier numbers are removed. A process that was suspended may create a number that was removed
before, so each change also looks for higher numbers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from uuid import uuid4

from omnigraph.errors import Damaged, StorageError
from omnigraph.storage.files.layout import webhook_folder
from omnigraph.storage.files.object_store import ObjectStore
from omnigraph.versioning.write.leases import LEASE_S, is_alive, writer_identity
from omnigraph.versioning.write.repository import Repository

_SUFFIX = ".json"
_DIGITS = 20
_READ_TRIES = 100


class OwnershipLost(Exception):
    """Another process owns the document."""


class OwnedDocument:
    """A document under a folder of the graph, as one process sees it."""

    def __init__(self, repository: Repository, folder: str) -> None:
        self._objects: ObjectStore = repository.objects
        self._folder = folder
        self._token = uuid4().hex
        self._number: int | None = None
        """The number that this process wrote last; None if it does not own the document."""

    @property
    def is_owned(self) -> bool:
        """True if this process owned the document when it last wrote it."""
        return self._number is not None

    def read(self) -> dict[str, Any] | None:
        """Return the current content; None if there is none."""
        found = self._newest()
        return None if found is None else found[1]["content"]

    def take(self, first: Callable[[], Mapping[str, Any]]) -> dict[str, Any] | None:
        """Become the owner and return the content, or that of `first` if there is none.

        Returns None if the owner is alive.
        """
        found = self._newest()
        if found is not None and self._has_owner(*found):
            return None
        number, content = (0, dict(first())) if found is None else (found[0], found[1]["content"])
        self._number = number
        try:
            self.write(content)
        except OwnershipLost:
            return None
        return content

    def write(self, content: Mapping[str, Any]) -> None:
        """Replace the content and renew the ownership; raises `OwnershipLost` if another process took it."""
        self._write(content, {"token": self._token, "lease_s": LEASE_S, "writer": writer_identity()})

    def release(self, content: Mapping[str, Any]) -> None:
        """Replace the content, and leave the document to any process."""
        self._write(content, None)
        self._number = None

    def _write(self, content: Mapping[str, Any], owner: Mapping[str, Any] | None) -> None:
        if self._number is None:
            raise OwnershipLost
        number, self._number = self._number + 1, None
        data = json.dumps({"owner": owner, "content": content}, separators=(",", ":")).encode()
        if not self._objects.write_if_absent(self._name(number), data):
            raise OwnershipLost
        names = self._names()
        if names[-1] != self._name(number):
            self._objects.delete(self._name(number))
            raise OwnershipLost
        self._objects.delete_all(names[:-1])
        self._number = number

    def _newest(self) -> tuple[int, dict[str, Any]] | None:
        """Return the highest number and its document; None if there is none."""
        for _ in range(_READ_TRIES):
            names = self._names()
            if not names:
                return None
            data = self._objects.read(names[-1])
            if data is not None:
                return _number_of(names[-1]) or 0, _document(names[-1], data)
            # It was replaced after the listing.
        raise StorageError(f"'{self._folder}' changes faster than it can be read", code="unreachable", hint="try again")

    def _names(self) -> list[str]:
        return [name for name in self._objects.list(self._folder) if _number_of(name) is not None]

    def _has_owner(self, number: int, document: Mapping[str, Any]) -> bool:
        owner = document["owner"]
        written_at = self._objects.written_at(self._name(number))
        if owner is None or owner.get("token") == self._token or written_at is None:
            return False
        return is_alive(owner, written_at, self._objects.now())

    def _name(self, number: int) -> str:
        return f"{self._folder}/{number:0{_DIGITS}}{_SUFFIX}"


def webhook_progress(repository: Repository, name: str) -> OwnedDocument:
    """Return the document of the progress of a webhook."""
    return OwnedDocument(repository, webhook_folder(name))


def _number_of(name: str) -> int | None:
    text = name.rpartition("/")[2].removesuffix(_SUFFIX)
    return int(text) if name.endswith(_SUFFIX) and len(text) == _DIGITS and text.isdecimal() else None


def _document(name: str, data: bytes) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(data)
        if not isinstance(document["content"], dict) or not isinstance(document["owner"], dict | None):
            raise TypeError("it does not have the expected members")
    except (KeyError, TypeError, ValueError) as error:
        raise Damaged(f"'{name}' is damaged: {error}", code="damaged_document", hint="remove it") from error
    return document
