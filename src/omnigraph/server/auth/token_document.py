"""The JSON form of a set of tokens.

    {"ana": "TOKEN", …}
    {"tokens": [{"actor": "ana", "sha256": "9f86…", "name": "laptop", "not_after": "2027-01-01T00:00:00Z",
                 "groups": ["staff"], "attributes": {"tenant": "acme"},
                 "only": {"actions": ["read"], "graphs": ["kb"], "branches": ["main", "mcp/*"]}}]}

An entry of the second form has `sha256` or `token`; everything but the actor is optional. An error names the actor and
the member, never a token.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from omnigraph.errors import InputError
from omnigraph.operations.authorization.access import Only
from omnigraph.policy.rules import KNOWN_ACTIONS
from omnigraph.server.auth.tokens import Principal, TokenEntry, token_digest
from omnigraph.suggestions import did_you_mean

MEMBERS = ("actor", "sha256", "token", "name", "not_after", "groups", "attributes", "only")
ONLY_MEMBERS = ("actions", "graphs", "branches")
_SHA256 = re.compile(r"[0-9a-f]{64}", re.IGNORECASE)


@dataclass(frozen=True)
class TokenDocument:
    """The entries of a document, and how many of them are tokens in plain text."""

    entries: tuple[TokenEntry, ...]
    plain_count: int
    members: tuple[dict[str, Any], ...]
    """The entries as objects of the second form."""


class _Twice(ValueError):
    """A member that occurs twice in a JSON object."""


def parse_tokens(text: str, origin: str) -> TokenDocument:
    """Return the tokens of a JSON text; `origin` names the text in errors."""
    members = _members(_decoded(text, origin), origin)
    entries = tuple(_entry(member, _place(member, position, origin)) for position, member in enumerate(members))
    return TokenDocument(entries, sum("token" in member for member in members), tuple(members))


def checked_token(value: Any, place: str) -> str:
    """Return a token without surrounding blanks; `place` names it in errors."""
    if not isinstance(value, str):
        raise _invalid(f"{place} must be a text, not {_kind(value)}")
    trimmed = value.strip()
    if not trimmed:
        raise _invalid(f"{place} must not be blank")
    if not trimmed.isprintable():
        raise _invalid(f"{place} contains a character that no HTTP header can hold")
    return trimmed


def _decoded(text: str, origin: str) -> dict[str, Any]:
    try:
        document = json.loads(text, object_pairs_hook=_distinct)
    except json.JSONDecodeError as error:
        raise _invalid(f"{origin} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except _Twice as error:
        raise _invalid(f"{origin} has the member '{error}' twice in one object") from None
    except RecursionError:
        raise _invalid(f"{origin} is nested too deeply") from None
    if not isinstance(document, dict):
        raise _invalid(f"{origin} must be a JSON object, not {_kind(document)}")
    return document


def _members(document: dict[str, Any], origin: str) -> list[dict[str, Any]]:
    """Return the entries of either form as objects of the second form."""
    listed = document.get("tokens")
    if not isinstance(listed, list):
        return [{"actor": actor, "token": token} for actor, token in document.items()]
    for name in document:
        if name != "tokens":
            raise _invalid(f"{origin} has the unknown member '{name}' beside 'tokens'")
    for position, member in enumerate(listed):
        if not isinstance(member, dict):
            raise _invalid(f"{origin}: tokens[{position}] must be an object, not {_kind(member)}")
    return listed


def _entry(member: Mapping[str, Any], place: str) -> TokenEntry:
    _refuse_unknown(member, MEMBERS, place)
    actor = _name(member.get("actor"), "actor", place)
    given = [key for key in ("sha256", "token") if member.get(key) is not None]
    if len(given) != 1:
        raise _invalid(f"{place}: exactly one of 'sha256' and 'token' is required")
    sha256 = (
        _hash(member["sha256"], place) if given == ["sha256"] else token_digest(checked_token(member["token"], place))
    )
    name = member.get("name")
    not_after = _time(member.get("not_after"), place)
    principal = Principal(
        actor,
        _name(name, "name", place) if name is not None else None,
        _names(member.get("groups"), "groups", place) or (),
        _attributes(member.get("attributes"), place),
        _only(member.get("only"), place),
        not_after.timestamp() if not_after is not None else None,
    )
    return TokenEntry(sha256, principal, not_after)


def _place(member: Mapping[str, Any], position: int, origin: str) -> str:
    actor = member.get("actor")
    if isinstance(actor, str) and actor.strip() and actor.strip().isprintable():
        return f"{origin}: the token of '{actor.strip()}'"
    return f"{origin}: tokens[{position}]"


def _refuse_unknown(member: Mapping[str, Any], known: tuple[str, ...], place: str) -> None:
    for name in member:
        if name not in known:
            raise _invalid(
                f"{place}: unknown member '{name}'", did_you_mean(name, known) or f"the members are {', '.join(known)}"
            )


def _name(value: Any, key: str, place: str) -> str:
    if not isinstance(value, str):
        raise _invalid(f"{place}: '{key}' must be a text, not {_kind(value)}")
    trimmed = value.strip()
    if not trimmed:
        raise _invalid(f"{place}: '{key}' must not be blank")
    if not trimmed.isprintable():
        raise _invalid(f"{place}: '{key}' contains a character that is not printable")
    return trimmed


def _names(value: Any, key: str, place: str) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, list):
        raise _invalid(f"{place}: '{key}' must be a list of texts, not {_kind(value)}")
    return tuple(_name(item, f"{key}[{position}]", place) for position, item in enumerate(value))


def _hash(value: Any, place: str) -> bytes:
    if not isinstance(value, str) or not _SHA256.fullmatch(value.strip()):
        raise _invalid(f"{place}: 'sha256' must be 64 hexadecimal digits")
    return bytes.fromhex(value.strip())


def _attributes(value: Any, place: str) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _invalid(f"{place}: 'attributes' must be an object, not {_kind(value)}")
    for name, item in value.items():
        if not all(isinstance(part, str | bool | int) for part in (item if isinstance(item, list) else [item])):
            raise _invalid(f"{place}: 'attributes.{name}' must be a text, an integer, a Boolean or a list of these")
    return dict(value)


def _only(value: Any, place: str) -> Only | None:
    if value is None:
        return None
    if not isinstance(value, dict):
        raise _invalid(f"{place}: 'only' must be an object, not {_kind(value)}")
    _refuse_unknown(value, ONLY_MEMBERS, f"{place}: only")
    only = Only(*(_names(value.get(key), f"only.{key}", place) for key in ONLY_MEMBERS))
    for action in only.actions or ():
        if action not in KNOWN_ACTIONS:
            raise _invalid(
                f"{place}: 'only.actions' has the unknown action '{action}'",
                did_you_mean(action, KNOWN_ACTIONS) or f"the actions are {', '.join(KNOWN_ACTIONS)}",
            )
    return only


def _time(value: Any, place: str) -> datetime | None:
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        time = None
    if time is None or time.tzinfo is None:
        raise _invalid(f"{place}: 'not_after' must be a time with its zone, such as 2027-01-01T00:00:00Z")
    return time


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for name, value in pairs:
        if name in members:
            raise _Twice(name)
        members[name] = value
    return members


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a Boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "an object"


def _invalid(message: str, hint: str | None = None) -> InputError:
    return InputError(message, code="bad_tokens", hint=hint)
