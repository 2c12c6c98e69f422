"""`ObjectStore`: small objects beside the tables, such as intents, claims and the readable copy of the schema.

There are two implementations, local and S3. Everything else relies on `write_if_absent`: exactly one of any number of
callers gets True. `prove_conditional_writes` tests this once per store, because some object stores accept the condition
and ignore it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from uuid import uuid4

import pyarrow as pa

from omnigraph.errors import StorageError
from omnigraph.storage.files import layout

CHUNK_BYTES = 4 << 20
"""Size of the parts in which an object is read."""
_PROBE_TRIES = 4


class ObjectStore(ABC):
    """Objects by name, relative to the root of the graph."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """Return the content of an object; None if and only if it does not exist."""

    @abstractmethod
    def open(self, name: str) -> pa.NativeFile:
        """Open an existing object as a file that is read on demand."""

    @abstractmethod
    def chunks(self, name: str) -> Iterator[bytes]:
        """Yield the content of an object in parts, by one request; raise `FileNotFoundError` if it does not exist."""

    @abstractmethod
    def read_range(self, name: str, start: int, end: int) -> bytes:
        """Return a range of bytes, fewer if the object is shorter; raise `FileNotFoundError` if it does not exist."""

    @abstractmethod
    def write_file(self, name: str, path: Path) -> None:
        """Create or replace an object with the content of a local file, which may be larger than memory."""

    @abstractmethod
    def write(self, name: str, data: bytes) -> None:
        """Create or replace an object atomically."""

    @abstractmethod
    def write_if_absent(self, name: str, data: bytes) -> bool:
        """Create an object unless it exists; return True if it was created."""

    @abstractmethod
    def delete(self, name: str) -> None:
        """Delete an object if it exists."""

    def delete_all(self, names: Sequence[str]) -> None:
        """Delete objects in the given order; stop at the first failure."""
        for name in names:
            self.delete(name)

    @abstractmethod
    def list(self, folder: str) -> list[str]:
        """Return the full names of the objects directly in a folder, sorted."""

    @abstractmethod
    def list_times(self, folder: str) -> Sequence[tuple[str, datetime]]:
        """Return the objects directly in a folder as `list` does, with the times they were written."""

    @abstractmethod
    def sizes(self, folder: str = "") -> dict[str, int]:
        """Return every object below a folder, by default of the graph, by full name, with its size in bytes."""

    @abstractmethod
    def size(self, name: str) -> int:
        """Return the size of an object in bytes, 0 if it does not exist."""

    @abstractmethod
    def is_empty(self) -> bool:
        """Return True if there is nothing below the root."""

    @abstractmethod
    def folders(self, parent: str) -> dict[str, datetime]:
        """Return the folders directly in a folder, by full name, with the time anything below each was last written."""

    @abstractmethod
    def delete_folder(self, folder: str) -> None:
        """Delete a folder and everything below it, if it exists."""

    @abstractmethod
    def remove_unfinished(self, older_than: datetime) -> None:
        """Delete old temporary files and probes of processes that died."""

    @abstractmethod
    def written_at(self, name: str) -> datetime | None:
        """Return when an object was last written, by the store's clock; None if it does not exist."""

    def now(self) -> datetime:
        """Return the store's current time, taken from a probe object that is written now.

        Ages of objects are differences of such times. The clocks of two hosts are never compared.
        """
        name = f"{layout.PROBE}{uuid4().hex}"
        self.write(name, b"1")
        try:
            found = self.written_at(name)
        finally:
            self.delete(name)
        if found is None:
            raise StorageError("the store does not show an object that was just written")
        return found

    def prove_conditional_writes(self, token: str) -> None:
        """Write probe objects twice; refuse a store that accepts the second write.

        A lost response proves nothing about the store. The object itself shows the outcome; if it does not, the test is
        repeated under a new name.
        """
        failure: StorageError | None = None
        for attempt in range(_PROBE_TRIES):
            name = f"{layout.PROBE}{token}_{attempt}" if attempt else f"{layout.PROBE}{token}"
            try:
                honoured = self._probe(name)
            except StorageError as error:
                if error.code != "unreachable":
                    raise
                failure = error
                continue
            if honoured is None:
                continue
            if honoured:
                return
            raise StorageError(
                "this object store ignores conditional writes (If-None-Match), so two writers could overwrite "
                "each other's commits",
                hint="use a store that honours them, such as AWS S3 or SeaweedFS",
            )
        raise failure or StorageError(
            "the object store did not respond to a test of conditional writes",
            code="unreachable",
            hint="try again",
        )

    def _probe(self, name: str) -> bool | None:
        """Return True if the second of two conditional writes is refused; None if the responses are inconclusive."""
        try:
            if not self.write_if_absent(name, b"1") and self.read(name) != b"1":
                return None
            if not self.write_if_absent(name, b"2"):
                # Refused; or accepted by a store whose response was lost before the client repeated the request.
                return self.read(name) == b"1" or None
            return None if self.read(name) is None else False
        finally:
            self.delete(name)
