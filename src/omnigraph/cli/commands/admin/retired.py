"""`omnigraph run` and `omnigraph repair`: commands of earlier releases, each answered with its replacement."""

from __future__ import annotations

from typing import NoReturn

from omnigraph.errors import InputError

ANY_ARGUMENTS = {"ignore_unknown_options": True, "allow_extra_args": True}
"""Context settings of a retired command, which accepts every command line of its former syntax."""


def run_command() -> NoReturn:
    """Not available: a write publishes one commit, and work in several steps uses a branch."""
    raise InputError(
        "there are no runs: every load and change publishes one commit",
        code="retired_command",
        hint="for work in several steps: 'omnigraph branch create NAME', write with --branch NAME, then "
        "'omnigraph branch merge NAME' publishes it and 'omnigraph branch delete NAME' discards it",
    )


def repair_command() -> NoReturn:
    """Not available: a table version that the manifest does not pin is never read."""
    raise InputError(
        "there is no repair: a table version that the manifest does not pin is never read",
        code="retired_command",
        hint="'omnigraph verify' checks the graph, 'omnigraph recover' completes or undoes interrupted writes",
    )
