"""Completion in the user's shell: the script to load, and the words that only a configuration or a graph knows.

Whatever goes wrong while words are looked for, the user is typing: nothing is said, and nothing is proposed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.config import Config, find_config
from omnigraph.cli.errors import UsageFault
from omnigraph.errors import OmniGraphError

if TYPE_CHECKING:
    from omnigraph.graph import Graph

VARIABLE = "_OMNIGRAPH_COMPLETE"
"""Set by the script, with what it wants to know."""

SHELLS = ("bash", "zsh", "fish")
_HOW = {
    "bash": 'eval "$(omnigraph completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(omnigraph completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "omnigraph completion fish | source  # in ~/.config/fish/config.fish",
}


def completion_command(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help=f"{', '.join(SHELLS)}.", autocompletion=lambda: SHELLS)],
) -> None:
    """Print the script that makes Tab complete commands, options, graphs, aliases and branches.

    eval "$(omnigraph completion bash)"
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELLS:
        raise UsageFault(f"there is no script for '{shell}'; there are {', '.join(SHELLS)}")
    print(f"# {_HOW[shell]}")
    for program in ("omnigraph", "og"):
        print(get_completion_script(prog_name=program, complete_var=VARIABLE, shell=shell))


def prepare_completion() -> None:
    """Make ready to answer the script, if it is the script that asks."""
    if os.environ.get(VARIABLE):
        from typer.completion import completion_init  # type: ignore[attr-defined]

        completion_init()


def one_of(*words: str) -> Callable[[str], list[str]]:
    """Proposes fixed words."""

    def propose(incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return propose


def branches(context: typer.Context, incomplete: str) -> list[str]:
    """The branches of the graph that is meant."""
    return _from_graph(context, incomplete, lambda graph: graph.branches())


def points(context: typer.Context, incomplete: str) -> list[str]:
    """Branches and tags of the graph that is meant."""
    return _from_graph(context, incomplete, lambda graph: [*graph.branches(), *(tag.name for tag in graph.tags())])


def targets(context: typer.Context, incomplete: str) -> list[str]:
    """The graphs the configuration names."""
    return _starting(incomplete, _config(context).graphs)


def aliases(context: typer.Context, incomplete: str) -> list[str]:
    """The aliases of the configuration."""
    return _starting(incomplete, _config(context).aliases)


def _config(context: typer.Context) -> Config:
    try:
        return find_config(context.params.get("config"), os.environ)
    except OmniGraphError:
        return Config()


def _from_graph(context: typer.Context, incomplete: str, words: Callable[[Graph], Iterable[str]]) -> list[str]:
    from omnigraph.graph import open as open_graph

    given = context.params
    config = _config(context)
    try:
        name = given.get("target") or config.get("cli.graph")
        uri = given.get("uri") or given.get("uri_option") or (config.get_graph(name) if name else None)
        if uri is None:
            return []
        return _starting(incomplete, words(open_graph(uri, read_only=True)))
    except OmniGraphError:
        return []


def _starting(incomplete: str, words: Iterable[str]) -> list[str]:
    return sorted(word for word in words if word.startswith(incomplete))
