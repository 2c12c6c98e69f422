"""Classification of exceptions that Lance raises.

Lance raises `OSError`, `ValueError` and `RuntimeError`. Only the message distinguishes a lost race from a full disk.
This is the only module that parses these messages.

Native code has two more failure modes. A Rust panic is not an `Exception`, and its class does not exist before the
first panic. An interrupt (Ctrl-C) inside a native call can surface as an ordinary error. The storage layer catches
`lance_errors` and `store_errors`: a panic is caught as an error, an interrupt is raised as an interrupt.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from omnigraph.errors import Damaged, Hint, OmniGraphError, StorageError
from omnigraph.storage.files.location import Location
from omnigraph.storage.files.object_errors import SOURCE_LINE, is_bucket_missing, is_denied, object_store_error

_LANCE_ERRORS = (OSError, ValueError, RuntimeError)
_PANIC = "PanicException"
_INTERRUPT = re.compile(r"^KeyboardInterrupt\s*$|\bKeyboardInterrupt:", re.MULTILINE)
"""The interrupt as native code quotes it: with the Python traceback, or by name alone."""

_UPLOAD = re.compile(r" failed after .*? error:")
"""The parameters of an upload, which precede its error."""
_CONFLICT = ("commit conflict", "too many concurrent writers", "incompatible transaction", "preempted by")
_READING = ("cannot be opened", "cannot be read", "cannot be listed")
_MISSING = ("not found", "no such file", "was not found", "does not exist")


def lance_errors(*others: type[Exception]) -> tuple[type[BaseException], ...]:
    """Exceptions to catch around calls of Lance: `except lance_errors() as error`."""
    return _with_panic((*_LANCE_ERRORS, *others))


def store_errors() -> tuple[type[BaseException], ...]:
    """Exceptions to catch around calls of an object store: `except store_errors() as error`."""
    return _with_panic((Exception,))


def _with_panic(kinds: tuple[type[BaseException], ...]) -> tuple[type[BaseException], ...]:
    """Return the given types, and the class of the current exception if it is a panic; raise an interrupt as such."""
    error = sys.exc_info()[1]
    if error is None:
        return kinds
    if is_interrupt(error):
        raise KeyboardInterrupt from error
    return (*kinds, type(error)) if is_panic(error) else kinds


def is_panic(error: BaseException) -> bool:
    """Return True if native code panicked."""
    return type(error).__name__ == _PANIC


def is_interrupt(error: BaseException) -> bool:
    """Return True if native code converted an interrupt into an ordinary error."""
    if isinstance(error, KeyboardInterrupt | SystemExit):
        return False
    return any(isinstance(one, KeyboardInterrupt) or _INTERRUPT.search(str(one)) for one in _chain(error))


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes."""
    seen: set[int] = set()
    one: BaseException | None = error
    while one is not None and id(one) not in seen:
        seen.add(id(one))
        yield one
        one = one.__cause__


def is_conflict(error: BaseException) -> bool:
    """Return True if another writer won a race; a retry resolves it."""
    text = str(error).lower()
    return any(words in text for words in _CONFLICT)


def is_offset_overflow(error: BaseException) -> bool:
    """Return True if the values of one batch exceed what the 32-bit offsets of Arrow count."""
    return "offset overflow" in str(error).lower()


def is_missing(error: BaseException) -> bool:
    """Return True if the store was reached and a version or file does not exist."""
    text = str(error).lower()
    return any(words in text for words in _MISSING) and not is_denied(error) and not is_bucket_missing(error)


def storage_failure(error: BaseException, location: Location, what: str) -> OmniGraphError:
    """Return the typed error for a failed read or write of a table."""
    first = (str(error).strip() or type(error).__name__).splitlines()[0]
    whole = _UPLOAD.sub(":", SOURCE_LINE.sub("", first))
    text, lowered = whole[:300], whole.lower()
    if not location.is_local and not is_missing(error):
        return object_store_error(error, location.uri)
    if "no space left" in lowered or "os error 28" in lowered or "disk quota" in lowered:
        return StorageError(
            f"{what}: the disk is full",
            code="disk_full",
            hint="free some space; nothing was published, and a cleanup removes what was written",
        )
    if "read-only file system" in lowered:
        return StorageError(
            f"{what}: '{location.uri}' is on a read-only file system",
            code="no_access",
            hint=Hint("open the graph with read_only=True", cli="only read the graph, or copy it to another disk"),
        )
    if "permission denied" in lowered:
        reading = what.endswith(_READING)
        return StorageError(
            f"{what}: no permission to {'read' if reading else 'change'} files of '{location.uri}'",
            code="no_access",
            hint="grant read permission on every file and folder of the graph"
            if reading
            else Hint(
                "check the permissions of the graph's folder; to only read it, open it with read_only=True",
                cli="check the permissions of the graph's folder",
            ),
        )
    if is_missing(error):
        return Damaged(
            f"{what}: a file of the table is missing",
            code="missing_file",
            hint=Hint(
                "restore it from a copy of the graph; verify() lists what is affected",
                cli="restore it from a copy of the graph; 'omnigraph verify' lists what is affected",
            ),
        )
    if is_panic(error):
        return StorageError(
            f"{what}: the storage library failed ({text})",
            code="storage_panic",
            hint="nothing was published; free memory and disk space, and try again",
        )
    return StorageError(f"{what}: {text}")
