"""Changes of a file of tokens: create, list and revoke. The file has the second form of `token_document`.

A new file has mode 0600. A change replaces the file atomically and keeps its owner, group and mode; one that
others can read becomes private. It reads, checks and writes the file under a lock of the folder, so that concurrent
changes do not undo each other.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from omnigraph.errors import InputError, NotFound
from omnigraph.file_replacement import replacement
from omnigraph.server.auth.sources import file_origin, read_file
from omnigraph.server.auth.token_document import TokenDocument, parse_tokens
from omnigraph.server.auth.tokens import Principal, TokenEntry, TokenSet, new_token, only_members, token_digest

_OTHERS = stat.S_IRWXO


@dataclass(frozen=True)
class ListedToken:
    """One token of a file."""

    entry: TokenEntry
    is_plain: bool
    """True if the file contains the token itself."""


def create_token(path: Path, principal: Principal, not_after: datetime | None = None) -> str:
    """Add a token to a file, which is created if it is missing; return the token. The file contains its hash."""
    token = new_token()
    with _locked(path):
        members = list(_read(path).members) if path.exists() else []
        members.append(_member(token, principal, not_after))
        _write(path, members)
    return token


def list_tokens(path: Path) -> list[ListedToken]:
    """Return the tokens of a file in its order."""
    document = _read(path)
    return [
        ListedToken(entry, "token" in member) for entry, member in zip(document.entries, document.members, strict=True)
    ]


def revoke_tokens(path: Path, *, actor: str | None = None, name: str | None = None) -> list[TokenEntry]:
    """Remove the tokens of an actor, of a name, or of both from a file; return them."""
    with _locked(path):
        document = _read(path)
        revoked = [entry for entry in document.entries if _is(entry, actor, name)]
        if not revoked:
            wanted = " and ".join(
                f"the {key} '{value}'" for key, value in (("actor", actor), ("name", name)) if value is not None
            )
            raise NotFound(
                f"{file_origin(path)} has no token with {wanted}",
                code="token_not_found",
                hint=f"'omnigraph token list {path}' lists the tokens",
            )
        pairs = zip(document.entries, document.members, strict=True)
        _write(path, [member for entry, member in pairs if not _is(entry, actor, name)])
    return revoked


def rfc3339(time: datetime) -> str:
    """Return a time in UTC with whole seconds."""
    return time.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _is(entry: TokenEntry, actor: str | None, name: str | None) -> bool:
    return (actor is None or entry.principal.actor == actor) and (name is None or entry.principal.token_name == name)


def _member(token: str, principal: Principal, not_after: datetime | None) -> dict[str, Any]:
    members = {
        "actor": principal.actor,
        "sha256": token_digest(token).hex(),
        "name": principal.token_name,
        "not_after": rfc3339(not_after) if not_after is not None else None,
        "groups": list(principal.groups),
        "attributes": dict(principal.attributes),
        "only": only_members(principal.only),
    }
    return {key: value for key, value in members.items() if value not in (None, [], {})}


def _read(path: Path) -> TokenDocument:
    document = parse_tokens(read_file(path), file_origin(path))
    TokenSet.of(document.entries)
    return document


def _write(path: Path, members: Sequence[dict[str, Any]]) -> None:
    """Replace the file; a document that a server would refuse is not written."""
    text = json.dumps({"tokens": members}, indent=2, ensure_ascii=False) + "\n"
    TokenSet.of(parse_tokens(text, file_origin(path)).entries)
    target = path.resolve()
    with replacement(target, mode=0o600) as file:
        _keep_readers(target, file.fileno())
        file.write(text.encode())


def _keep_readers(target: Path, handle: int) -> None:
    """Give the new file the owner, group and mode of the present one, so that a service account can still read it."""
    if not target.exists() or not hasattr(os, "fchown"):
        return
    found = target.stat()
    mode = stat.S_IMODE(found.st_mode)
    if mode & _OTHERS:  # not chosen for a service account: the new file has mode 0600
        return
    # Without the right to change the owner the file stays private to the caller.
    with suppress(PermissionError):
        os.fchown(handle, found.st_uid, found.st_gid)
        os.fchmod(handle, mode)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock on the folder of a file. Reports failures of writing as `InputError`."""
    try:
        handle = os.open(path.resolve().parent, os.O_RDONLY)
        try:
            try:
                import fcntl  # noqa: PLC0415 (absent on Windows, where changes race)
            except ModuleNotFoundError:
                pass
            else:
                fcntl.flock(handle, fcntl.LOCK_EX)
            yield
        finally:
            os.close(handle)
    except OSError as error:
        raise InputError(f"{file_origin(path)} cannot be written: {error.strerror}", code="unwritable_file") from None
