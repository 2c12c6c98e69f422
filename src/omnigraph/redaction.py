"""Removal of secrets from output: messages, logs, `repr`, the output of `omnigraph config`.

A URI can contain a password in its user part and a signature in its query. Neither is shown.
"""

from __future__ import annotations

import re

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*://)([^\s'\"<>|]+)")
_PORT = re.compile(r"[0-9]*")


def redact_uri(uri: str) -> str:
    """Return a URI without its user part, parameters, query and fragment."""
    scheme, separator, rest = uri.partition("://")
    if not separator:
        return uri
    if scheme.lower() in ("file", "s3"):
        # The path of a file or an object may contain any of these characters; only an authority can hold a password.
        host, slash, path = rest.partition("/")
        return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"
    rest = re.split(r"[?#;]", _without_user(rest), maxsplit=1)[0]
    return f"{scheme}://{rest}"


def redact(text: str) -> str:
    """Return a text in which every URI is redacted."""
    return _URI.sub(lambda found: redact_uri(found[0]), text) if "://" in text else text


def _without_user(rest: str) -> str:
    """Return the part of a URI after `user:password@`, even if the password contains an unescaped `/` or `?`."""
    authority, slash, path = rest.partition("/")
    if "@" in authority:
        return f"{authority.rpartition('@')[2]}{slash}{path}"
    if "@" in rest and not _PORT.fullmatch(authority.partition(":")[2]):
        return rest.rpartition("@")[2]
    return rest
