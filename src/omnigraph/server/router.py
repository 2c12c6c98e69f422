"""The router: a tree of path segments.

Paths are matched on their undecoded segments, so that an encoded slash in a branch name is part of its segment. A
literal segment is tried before a parameter; if the literal does not lead to the method, the parameter is tried, so that
`DELETE /branches/merge` deletes the branch `merge` beside `POST /branches/merge`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Generic, TypeVar

from omnigraph.server.errors import RequestFault

_Target = TypeVar("_Target")
_RUNS = re.compile(r"(/graphs/[^/]+)?/runs(/|$)")
_NO_RUNS = "there are no runs: POST /branches creates a branch, POST /branches/merge publishes it"


@dataclass
class _Node(Generic[_Target]):
    literals: dict[str, _Node[_Target]] = field(default_factory=dict)
    parameter: _Node[_Target] | None = None
    targets: dict[str, tuple[_Target, tuple[str, ...]]] = field(default_factory=dict)
    """Method → target and the names of its path parameters."""


class Router(Generic[_Target]):
    """Finds the target of a method and a path."""

    def __init__(self) -> None:
        self._root: _Node[_Target] = _Node()

    def add(self, method: str, path: str, target: _Target) -> None:
        """Add a target; a segment in braces is a parameter."""
        node, names = self._root, []
        for segment in path.split("/")[1:]:
            if segment.startswith("{"):
                names.append(segment[1:-1])
                node.parameter = node.parameter or _Node()
                node = node.parameter
            else:
                node = node.literals.setdefault(segment, _Node())
        assert method not in node.targets, f"{method} {path} is defined twice"
        node.targets[method] = (target, tuple(names))

    def find(self, method: str, raw_path: str) -> tuple[_Target, dict[str, str]]:
        """Return the target and the undecoded path parameters; 404 and 405 are `RequestFault`s."""
        wanted = "GET" if method == "HEAD" else method
        allowed: set[str] = set()
        for node, values in _matches(self._root, raw_path.split("/")[1:], ()):
            found = node.targets.get(wanted)
            if found is not None:
                target, names = found
                return target, dict(zip(names, values, strict=True))
            allowed.update(node.targets)
        raise _method_not_allowed(method, allowed) if allowed else _not_found(raw_path)


def _matches(
    node: _Node[_Target], segments: list[str], values: tuple[str, ...]
) -> Iterator[tuple[_Node[_Target], tuple[str, ...]]]:
    if not segments:
        if node.targets:
            yield node, values
        return
    segment, rest = segments[0], segments[1:]
    literal = node.literals.get(segment)
    if literal is not None:
        yield from _matches(literal, rest, values)
    if node.parameter is not None and segment:
        yield from _matches(node.parameter, rest, (*values, segment))


def _method_not_allowed(method: str, allowed: Iterable[str]) -> RequestFault:
    methods = {*allowed, *({"HEAD"} if "GET" in allowed else set())}
    listed = ", ".join(sorted(methods))
    return RequestFault(
        f"this path does not take the method {method}",
        status=HTTPStatus.METHOD_NOT_ALLOWED,
        code="method_not_allowed",
        hint=f"it takes {listed}",
        headers={"Allow": listed},
    )


def _not_found(raw_path: str) -> RequestFault:
    is_run = _RUNS.match(raw_path) is not None
    return RequestFault(
        "there is no such path",
        status=HTTPStatus.NOT_FOUND,
        code="no_such_path",
        hint=_NO_RUNS if is_run else "GET /docs lists all paths",
    )
