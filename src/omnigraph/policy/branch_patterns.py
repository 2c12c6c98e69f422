"""Patterns of branch names: `*` matches within a segment of a name, `**` across segments."""

from __future__ import annotations

import re
from functools import lru_cache

_PARTS = re.compile(r"\*\*|\*|[^*]+")


def matches_branch(pattern: str, name: str) -> bool:
    """Return True if a pattern matches the whole name of a branch."""
    return _compiled(pattern).fullmatch(name) is not None


def example_branches(pattern: str) -> tuple[str, ...]:
    """Return names that a pattern matches: the pattern itself, or two names for a pattern with wildcards."""
    if "*" not in pattern:
        return (pattern,)
    short = pattern.replace("**", "x").replace("*", "x")
    return (short, pattern.replace("**", "x/y").replace("*", "z")) if "**" in pattern else (short,)


def pattern_problem(pattern: str) -> str | None:
    """Return why a text is not a pattern; None if it is one."""
    if not pattern.strip():
        return "must not be blank"
    if "***" in pattern:
        return f"'{pattern}' has more than two asterisks in a row"
    return None


@lru_cache(4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    wildcards = {"*": "[^/]*", "**": ".*"}
    parts = (wildcards.get(part) or re.escape(part) for part in _PARTS.findall(pattern))
    return re.compile("".join(parts), re.DOTALL)
