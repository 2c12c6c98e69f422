"""Shell completion: candidate words from the configuration and the graph.

Errors while candidates are computed are ignored: the user is typing, so the list is empty instead.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

import typer

from omnigraph.config import Config, find_config
from omnigraph.errors import OmniGraphError
from omnigraph.fast_dataclass import dataclass

if TYPE_CHECKING:
    from omnigraph.cli.addresses import GivenAddress
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
    """Return words of the graph that the command line names; a server is not asked, because the answer can be late."""
    from omnigraph.cli.addresses import find_address
    from omnigraph.graph_open import open as open_graph

    settings = _Settings(_config(context))
    try:
        address = find_address(_given(context), settings)
        if address is None or address.is_server or settings.config.get("cli.policy") == "enforce":
            return []
        return _starting(incomplete, words(open_graph(address.uri, read_only=True)))
    except (OmniGraphError, typer.BadParameter):
        return []


@dataclass(frozen=True)
class _Settings:
    """The configuration and the environment."""

    config: Config
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)


def _given(context: typer.Context) -> GivenAddress:
    """Return the arguments and options of the command line that name a graph."""
    from omnigraph.cli.addresses import GivenAddress

    names = ("uri", "uri_option", "target", "server_name", "graph_id", "store", "profile_name")
    return GivenAddress(*(context.params.get(name) for name in names))


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if word.startswith(incomplete))
