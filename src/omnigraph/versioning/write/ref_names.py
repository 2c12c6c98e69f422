"""Names of branches and tags."""

from __future__ import annotations

import re

from omnigraph.errors import InputError
from omnigraph.versioning.model.manifest_objects import MAIN

_SEGMENT = re.compile(r"[^\W_][\w.-]*|_[\w.-]*")
_ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
_LONGEST = 200


def check_tag_name(name: str) -> str:
    """Validate a tag name like a branch name; refuse `main` and commit ids, which would be ambiguous as points."""
    name = _check_name(name, "tag")
    if name == MAIN or _ULID.fullmatch(name):
        raise InputError(f"'{name}' cannot be a tag name: it is ambiguous")
    return name


def check_branch_name(name: str) -> str:
    """Return the name without surrounding blanks, or raise `InputError` with the reason.

    A name consists of segments of letters, digits, `.`, `-` and `_`, separated by `/`; case is significant. Names that
    begin with two underscores belong to the engine.
    """
    name = _check_name(name, "branch")
    if name == MAIN:
        raise InputError("the branch 'main' exists from the start and cannot be created")
    return name


def check_text(name: object, what: str) -> None:
    """Refuse a name that is not a str."""
    if not isinstance(name, str):
        raise InputError(f"the name of a {what} is a str, not {type(name).__name__}")


def is_internal(name: str) -> bool:
    """Return True for the name of an internal head; such names belong to the engine and are not listed."""
    return name.startswith("__")


def _check_name(name: str, what: str) -> str:
    check_text(name, what)
    name = name.strip()
    if not name:
        raise InputError(f"the name of a {what} must not be empty")
    if is_internal(name):
        raise InputError(f"'{name}': names that begin with two underscores belong to the engine")
    sound = len(name) <= _LONGEST and all(_SEGMENT.fullmatch(part) for part in name.split("/"))
    if not sound or ".." in name or name.endswith(".lock"):
        raise InputError(
            f"'{name[:120]}' cannot be a {what} name",
            hint="use letters, digits, '.', '-' and '_', in parts separated by '/'",
        )
    return name
