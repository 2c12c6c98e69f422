"""The names of branches."""

from __future__ import annotations

import re

from omnigraph.errors import InputError
from omnigraph.versioning.records import MAIN

_SEGMENT = re.compile(r"[^\W_][\w.-]*|_[\w.-]*")
_LONGEST = 200


def check_branch_name(name: str) -> str:
    """Return the name without surrounding blanks, or say why it cannot be one.

    Segments of letters, digits, `.`, `-` and `_`, separated by `/`; case counts. Names that begin with two
    underscores belong to the engine.
    """
    name = name.strip()
    if not name:
        raise InputError("a branch needs a name")
    if name == MAIN:
        raise InputError("the branch 'main' exists from the start and cannot be created")
    if name.startswith("__"):
        raise InputError(f"'{name}': names that begin with two underscores belong to the engine")
    sound = len(name) <= _LONGEST and all(_SEGMENT.fullmatch(part) for part in name.split("/"))
    if not sound or ".." in name or name.endswith(".lock"):
        raise InputError(
            f"'{name[:120]}' cannot be a branch name",
            hint="use letters, digits, '.', '-' and '_', in parts separated by '/'",
        )
    return name
