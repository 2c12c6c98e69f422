"""Every use of a guard for rows in the source, and mutants without one of them.

A site is a call, or the digest of a visibility, that keeps hidden rows or values from a caller. A mutant is the
function of a site, compiled without it: the call is replaced by the answer that hides nothing.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

SOURCE = Path(__file__).parents[2] / "src" / "omnigraph"
LEFT_OUT = ("query/", "policy/", "storage/", "versioning/write/", "cluster/", "cli/", "engine/cache/disk_cache.py",
            "engine/write/overlay.py", "operations/inference/", "spark/")  # fmt: skip
"""Modules in which these names have other meanings. The tests of Spark compare its reads with those of the process."""


def _none(_: ast.Call) -> ast.expr:
    return ast.Constant(None)


def _true(_: ast.Call) -> ast.expr:
    return ast.Constant(True)


def _false(_: ast.Call) -> ast.expr:
    return ast.Constant(False)


def _argument(number: int) -> Callable[[ast.Call], ast.expr]:
    return lambda call: call.args[number]


def _all_true(call: ast.Call) -> ast.expr:
    """A mask of all rows; True for a single object."""
    rows = ast.unparse(call.args[min(1, len(call.args) - 1)])
    every = f"__import__('numpy').ones(len({rows}), bool) if hasattr({rows}, '__len__') else True"
    return ast.parse(every, mode="eval").body


def _last(call: ast.Call) -> ast.expr:
    return call.args[min(1, len(call.args) - 1)]


KNOCKOUTS: dict[str, Callable[[ast.Call], ast.expr]] = {
    "visibility_of": _none,
    "view": _none,
    "guard_of": _none,
    "guard_on": _none,
    "check_whole": _none,
    "sight_of": _none,
    "sees_alike": _true,
    "sees_row": _true,
    "sees_value": _true,
    "is_visible": _true,
    "_is_visible": _true,
    "hides_rows": _false,
    "_hides_rows": _false,
    "sees": _all_true,
    "_sees": _all_true,
    "_visible": _argument(1),
    "shown": _last,
    "masked": _argument(1),
    "masked_in": _argument(0),
    "visible_commit": _argument(0),
    "visible_commits": _argument(0),
    "visible_head": _argument(0),
    "visible_tag": _argument(0),
    "visible_snapshot": _argument(0),
}
"""Name of a guard → its call without effect."""


@dataclass(frozen=True)
class Site:
    """One use of a guard: the module, the function, the name, and its number among the equal ones of the function."""

    module: str
    function: str
    guard: str
    number: int

    def __str__(self) -> str:
        return f"{self.module} {self.function} {self.guard} {self.number}"


class _Finder(ast.NodeTransformer):
    """Collects the sites of a module; replaces the wanted one."""

    def __init__(self, module: str, wanted: Site | None = None) -> None:
        self.module, self.wanted = module, wanted
        self.names: list[str] = []
        self.found: list[Site] = []

    def _inside(self, node: Any) -> ast.AST:
        self.names.append(node.name)
        self.generic_visit(node)
        self.names.pop()
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = _inside  # noqa: N815

    def _site(self, guard: str) -> bool:
        function = ".".join(self.names)
        number = 1 + sum((one.function, one.guard) == (function, guard) for one in self.found)
        self.found.append(Site(self.module, function, guard, number))
        return self.found[-1] == self.wanted

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self.generic_visit(node)
        knockout = KNOCKOUTS.get(name)
        if knockout is None or not self.names or not self._is_guard(name, node) or not self._site(name):
            return node
        return knockout(node)

    def _is_guard(self, name: str, call: ast.Call) -> bool:
        if name == "view":
            return "context" in ast.unparse(call.func)
        return bool(call.args)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        self.generic_visit(node)
        reads = node.attr == "digest" and isinstance(node.ctx, ast.Load)
        if reads and ast.unparse(node.value) == "visibility" and self.names and self._site("digest"):
            return ast.Constant("one")
        return node


def _modules() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(LEFT_OUT):
            yield name, path.read_text(encoding="utf-8")


def sites() -> list[Site]:
    """Return every use of a guard, in the order of the source."""
    found: list[Site] = []
    for name, text in _modules():
        finder = _Finder(name)
        finder.visit(ast.parse(text))
        found += finder.found
    return found


@contextmanager
def without(site: Site) -> Iterator[None]:
    """Remove a guard while the block runs."""
    text = (SOURCE / site.module).read_text(encoding="utf-8")
    finder = _Finder(site.module, site)
    tree = finder.visit(deepcopy(ast.parse(text)))
    assert site in finder.found, f"{site} does not exist"
    module = importlib.import_module("omnigraph." + site.module.removesuffix(".py").replace("/", "."))
    code = compile(ast.fix_missing_locations(tree), str(SOURCE / site.module), "exec", dont_inherit=True)
    function = _function(module, site.function.split("."))
    kept = function.__code__
    function.__code__ = _code_of(code, kept)
    try:
        yield
    finally:
        function.__code__ = kept


def _function(module: Any, names: list[str]) -> FunctionType:
    """Return the function of a site; one that is defined in another function is part of that."""
    found = module
    for name in names:
        found = found.__dict__[name]
        for wrapped in ("fget", "func", "__func__", "__wrapped__"):
            found = getattr(found, wrapped, found) if not isinstance(found, FunctionType | type) else found
        while hasattr(found, "__wrapped__"):
            found = found.__wrapped__
        if isinstance(found, FunctionType):
            return found
    raise AssertionError(f"{names} is not a function")


def _code_of(code: CodeType, kept: CodeType) -> CodeType:
    for const in code.co_consts:
        if isinstance(const, CodeType):
            if (const.co_qualname, const.co_firstlineno) == (kept.co_qualname, kept.co_firstlineno):
                return const
            try:
                return _code_of(const, kept)
            except LookupError:
                continue
    raise LookupError(kept.co_qualname)
