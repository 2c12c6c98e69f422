"""The program `omnigraph-server`: `omnigraph serve`, and without arguments the entry point of a container."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping

URI, CONFIG, TARGET, BIND = "OMNIGRAPH_TARGET_URI", "OMNIGRAPH_CONFIG", "OMNIGRAPH_TARGET", "OMNIGRAPH_BIND"
DEFAULT_BIND = "0.0.0.0:8080"
USAGE = 64
"""The exit code of a container without a graph, EX_USAGE."""


def container_arguments(environ: Mapping[str, str]) -> list[str] | None:
    """Return the arguments that the variables of a container stand for; None if they name no graph."""
    given = {name: environ.get(name, "").strip() for name in (URI, CONFIG, TARGET, BIND)}
    bind = ["--bind", given[BIND] or DEFAULT_BIND]
    if given[URI]:
        return [given[URI], *bind]
    if given[CONFIG]:
        return ["--config", given[CONFIG], *(["--target", given[TARGET]] if given[TARGET] else []), *bind]
    return None


def main() -> None:
    """Run the server and end the process with its exit code."""
    arguments: list[str] | None = sys.argv[1:]
    if not arguments:
        arguments = container_arguments(os.environ)
    if arguments is None:
        print(
            f"omnigraph-server: set {URI} to the address of a graph, or {CONFIG} to a configuration file "
            f"(with {TARGET}: the name of the graph); {BIND} is the address to listen on (default {DEFAULT_BIND})",
            file=sys.stderr,
        )
        sys.exit(USAGE)
    from omnigraph.cli.main import main as run_program

    sys.argv[1:] = ["serve", *arguments]
    run_program()


if __name__ == "__main__":
    main()
