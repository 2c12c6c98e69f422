"""Every public method of `Graph` is compared in this suite, or is local-only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.aio import AsyncGraph
from omnigraph.client.async_remote_graph import AsyncRemoteGraph
from omnigraph.client.local_only import LOCAL_METHODS
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.errors import InputError
from support.graph_variants import ACTOR, Variants

HANDLES = frozenset({"graph", "one", "two", "target"})
"""Variables of bodies that are handles of the graph."""
MODULES = sorted(path for path in Path(__file__).parent.glob("test_*.py") if path.name != Path(__file__).name)
LOCAL = sorted(name for name in LOCAL_METHODS if "." not in name)


def public_names(cls: type) -> set[str]:
    return {name for name in dir(cls) if not name.startswith("_")} | {"branch", "actor"}


def bodies(module: Path) -> Iterator[ast.FunctionDef]:
    for node in ast.parse(module.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef) and node.args.args and node.args.args[0].arg == "graph":
            yield node


def used_names(module: Path) -> Iterator[str]:
    for body in bodies(module):
        for node in ast.walk(body):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in HANDLES:
                yield node.attr
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
                # graph.on("draft").head()
                called = node.value.func
                if isinstance(called, ast.Attribute) and called.attr == "on":
                    yield node.attr


def test_every_method_is_compared_or_local_only() -> None:
    used = {name for module in MODULES for name in used_names(module)}
    assert public_names(og.Graph) - used - set(LOCAL) == {"uri"}, "compare the method, or list it in local_only.py"
    assert not used & set(LOCAL)


@pytest.mark.parametrize("module", MODULES, ids=lambda path: path.stem)
def test_every_body_runs(module: Path) -> None:
    listed = next(
        node.value
        for node in ast.parse(module.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "BODIES"
    )
    assert isinstance(listed, ast.List)
    assert [name.id for name in listed.elts if isinstance(name, ast.Name)] == [body.name for body in bodies(module)]


@pytest.mark.parametrize(("remote", "local"), [(RemoteGraph, og.Graph), (AsyncRemoteGraph, AsyncGraph)])
def test_a_remote_graph_has_every_public_name(remote: type, local: type) -> None:
    assert public_names(local) - public_names(remote) - {"graph"} == set()


@pytest.mark.parametrize("form", ["remote", "async_remote"])
@pytest.mark.parametrize("name", LOCAL)
def test_local_methods_are_refused(variants: Variants, form: str, name: str) -> None:
    graph = variants.graphs[form, ACTOR]
    arguments = {
        "show": ("Person",),
        "resolve": ("Person", ["name"]),
        "sql": ("select 1",),
        "duckdb": (),
        "to_spark": ("Person",),
        "with_access": (None,),
        "with_metadata": ({"a": 1},),
    }[name]
    with pytest.raises(InputError, match=f"'{name}' is not available over HTTP") as caught:
        getattr(graph, name)(*arguments)
    assert caught.value.code == "not_remote"
    assert caught.value.hint == LOCAL_METHODS[name]
