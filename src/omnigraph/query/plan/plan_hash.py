"""Hash of a plan without its constants: queries that differ only in constants have equal hashes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

from omnigraph.query.plan import ir

_LENGTH = 24
_CONSTANT_MEMBERS = frozenset({"limit", "skip"})
"""Members of a read that hold constants; only their presence counts."""


def plan_hash(plan: ir.AnyIR) -> str:
    """Return 96 bits of the SHA-256 of a lowered plan, in hexadecimal digits."""
    return hashlib.sha256("\0".join(_words(plan)).encode()).hexdigest()[:_LENGTH]


def _words(node: Any) -> Iterator[str]:
    """Yield the structure of a plan as words. A constant is represented by its type."""
    if isinstance(node, ir.Const):
        yield f"Const {node.type}"
    elif isinstance(node, tuple):
        yield f"({len(node)}"
        for item in node:
            yield from _words(item)
    elif is_dataclass(node):
        yield type(node).__name__
        for member in fields(node):
            value = getattr(node, member.name)
            if isinstance(node, ir.QueryIR) and member.name in _CONSTANT_MEMBERS:
                yield str(bool(value))
            else:
                yield from _words(value)
    else:
        yield repr(node)
