"""Shell completion: candidate words from the configuration and the graph.

Errors while candidates are computed are ignored: the user is typing, so the list is empty instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import typer

from omnigraph.config import Config, find_config
from omnigraph.errors import OmniGraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph


VARIABLE = "_OMNIGRAPH_COMPLETE"
"""The variable by which the completion script of a shell requests candidates."""


def prepare_completion() -> None:
    """Enable completion if the completion script started this process."""
    if os.environ.get(VARIABLE):
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Return a completer of fixed words."""

    def propose(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return propose


def branches(context: typer.Context, incomplete: str) -> list[str]:
    """Return the branches of the graph that the command line names."""
    return _from_graph(context, incomplete, lambda graph: graph.branches())


def points(context: typer.Context, incomplete: str) -> list[str]:
    """Return the branches and tags of the graph that the command line names."""
    return _from_graph(context, incomplete, lambda graph: [*graph.branches(), *(tag.name for tag in graph.tags())])


def targets(context: typer.Context, incomplete: str) -> list[str]:
    """Return the named graphs of the configuration."""
    return _starting(incomplete, _config(context).graphs)


def aliases(context: typer.Context, incomplete: str) -> list[str]:
    """Return the aliases of the configuration."""
    return _starting(incomplete, _config(context).aliases)


def servers(context: typer.Context, incomplete: str) -> list[str]:
    """Return the servers of the operator file."""
    return _starting(incomplete, _config(context).operator.server_names)


def profiles(context: typer.Context, incomplete: str) -> list[str]:
    """Return the profiles of the operator file."""
    return _starting(incomplete, _config(context).operator.profiles)


def operator_aliases(context: typer.Context, incomplete: str) -> list[str]:
    """Return the aliases of the operator file."""
    return _starting(incomplete, _config(context).operator.aliases)


def _config(context: typer.Context) -> Config:
    try:
        return find_config(context.params.get("config"), os.environ)
    except OmniGraphError:
        return Config()


def _from_graph(context: typer.Context, incomplete: str, words: Callable[[Graph], Iterable[str]]) -> list[str]:
    from omnigraph.graph_open import open as open_graph

    given = context.params
    config = _config(context)
    try:
        name = given.get("target") or config.get("cli.graph")
        uri = given.get("uri") or given.get("uri_option") or (config.get_graph(name) if name else None)
        if uri is None or config.get("cli.policy") == "enforce":
            return []
        return _starting(incomplete, words(open_graph(uri, read_only=True)))
    except OmniGraphError:
        return []


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if word.startswith(incomplete))
