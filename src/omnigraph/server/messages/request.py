"""Request headers: ids, preconditions, deadlines. Each function validates one header."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote

from starlette.types import Scope

from omnigraph.server.errors import RequestFault
from omnigraph.versioning.model.ids import new_ulid, system_clock

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_KEY = re.compile(r"[\x20-\x7e]{1,200}")
_STRONG_TAG = re.compile(r'"([0-9A-Za-z_-]{1,64})"')
_BARE_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")
_PARAMETERS_MAX = 100

Headers = Mapping[str, str]


def headers_of(scope: Scope) -> dict[str, str]:
    """Return the headers by their names in lower case; the values of a repeated header are joined."""
    found: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def request_id_of(headers: Headers) -> str:
    """Return the id of the request: that of the client if it is valid, else a new one."""
    given = headers.get("x-request-id")
    return given if given is not None and _REQUEST_ID.fullmatch(given) else new_ulid(system_clock())


def idempotency_key_of(headers: Headers) -> str | None:
    """Return the idempotency key: 1 to 200 printable characters."""
    key = headers.get("idempotency-key")
    if key is not None and (not _KEY.fullmatch(key) or not key.strip()):
        raise RequestFault(
            "Idempotency-Key must have 1 to 200 printable ASCII characters",
            code="bad_idempotency_key",
            hint="use a new key for each request, such as a UUID",
        )
    return key


def if_match_of(headers: Headers) -> str | None:
    """Return the commit that `If-Match` names; None without the header."""
    value = headers.get("if-match")
    if value is None:
        return None
    matched = _STRONG_TAG.fullmatch(value.strip())
    if matched is None:
        raise RequestFault(
            f'If-Match must name one commit as a strong tag, such as "01J…" (got {value!r})',
            code="bad_precondition",
            hint="send the value of Omnigraph-Commit of an earlier answer in double quotes",
        )
    return matched.group(1)


def if_graph_commit_of(headers: Headers, *, required: bool) -> str | None:
    """Return the commit that `Omnigraph-If-Graph-Commit` names; only conditional routes take the header."""
    value = headers.get("omnigraph-if-graph-commit")
    if not required:
        if value is not None:
            raise RequestFault(
                "this route does not take Omnigraph-If-Graph-Commit",
                code="bad_precondition",
                hint="use the route that ends in /if-graph-commit, or If-Match",
            )
        return None
    if value is None or not _BARE_ID.fullmatch(value):
        raise RequestFault(
            "Omnigraph-If-Graph-Commit must name one commit id, without quotes",
            code="bad_precondition",
            hint="send the value of Omnigraph-Commit of an earlier answer",
        )
    return value


def min_commit_of(headers: Headers) -> str | None:
    """Return the commit that the answer must contain."""
    value = headers.get("omnigraph-min-commit")
    if value is not None and not _BARE_ID.fullmatch(value):
        raise RequestFault(f"Omnigraph-Min-Commit must be a commit id (got {value!r})", code="bad_precondition")
    return value


def timeout_of(headers: Headers, default_s: float, ceiling_s: float) -> float:
    """Return the time limit in seconds: `Omnigraph-Timeout-Ms`, at most the ceiling, else the default."""
    value = headers.get("omnigraph-timeout-ms")
    if value is None:
        return default_s
    if not (value.isascii() and value.isdigit()) or not 0 < len(value) <= 12 or int(value) == 0:
        raise RequestFault(
            f"Omnigraph-Timeout-Ms must be a positive integer of milliseconds (got {value!r})", code="bad_timeout"
        )
    return min(int(value) / 1000, ceiling_s)


def matches_none(headers: Headers, etag: str) -> bool:
    """Return True if `If-None-Match` names the tag, which a weak comparison decides."""
    value = headers.get("if-none-match")
    if value is None:
        return False
    tags = [tag.strip().removeprefix("W/") for tag in value.split(",")]
    return "*" in tags or etag in tags


def waits(headers: Headers) -> bool:
    """Return True if the client waits for the end of work that otherwise continues after the answer: `Prefer: wait`."""
    return _prefers(headers, "wait")


def responds_async(headers: Headers) -> bool:
    """Return True if the client does not wait for the end of long work: `Prefer: respond-async`."""
    return _prefers(headers, "respond-async") and not waits(headers)


def _prefers(headers: Headers, name: str) -> bool:
    given = headers.get("prefer", "").lower().split(",")
    return any(preference.partition(";")[0].partition("=")[0].strip() == name for preference in given)


def query_of(scope: Scope) -> dict[str, list[str]]:
    """Return the parameters of the query string."""
    text = scope["query_string"].decode("latin-1")
    if not text:
        return {}
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX, errors="strict")
    except UnicodeDecodeError:
        raise RequestFault("the query string is not UTF-8", code="bad_query_string") from None
    except ValueError:
        raise RequestFault(
            f"the query string has more than {_PARAMETERS_MAX} parameters", code="bad_query_string"
        ) from None
    found: dict[str, list[str]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def path_parameter(segment: str) -> str:
    """Return a path segment without percent encoding."""
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise RequestFault(f"the path segment {segment!r} is not UTF-8", code="bad_path") from None
