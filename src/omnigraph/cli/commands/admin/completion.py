"""`omnigraph completion`: print the completion script of a shell."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.completion import VARIABLE
from omnigraph.cli.errors import UsageFault

SHELLS = ("bash", "zsh", "fish")
_USAGE = {
    "bash": 'eval "$(omnigraph completion bash)"  # in ~/.bashrc',
    "zsh": 'eval "$(omnigraph completion zsh)"  # in ~/.zshrc, after compinit',
    "fish": "omnigraph completion fish | source  # in ~/.config/fish/config.fish",
}


def completion_command(
    shell: Annotated[str, typer.Argument(metavar="SHELL", help=f"{', '.join(SHELLS)}.", autocompletion=lambda: SHELLS)],
) -> None:
    """Print the completion script of a shell: Tab completes commands, options, graphs, aliases and branches.

    eval "$(omnigraph completion bash)"
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]

    if shell not in SHELLS:
        raise UsageFault(f"there is no completion script for '{shell}'; the shells are {', '.join(SHELLS)}")
    print(f"# {_USAGE[shell]}")
    for program in ("omnigraph", "og"):
        print(get_completion_script(prog_name=program, complete_var=VARIABLE, shell=shell))
