"""The program `omnigraph-server`: `omnigraph serve`, and without arguments the entry point of a container."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping

URI, CONFIG, TARGET, BIND = "OMNIGRAPH_TARGET_URI", "OMNIGRAPH_CONFIG", "OMNIGRAPH_TARGET", "OMNIGRAPH_BIND"
DEFAULT_BIND = "0.0.0.0:8080"
HEALTH = "--health"
USAGE = 64
"""The exit code of a container without a graph, EX_USAGE."""


def container_arguments(environ: Mapping[str, str]) -> list[str] | None:
    """Return the arguments that the variables of a container stand for; None if they name no graph."""
    uri, config, target = (_given(environ, name) for name in (URI, CONFIG, TARGET))
    bind = ["--bind", container_bind(environ)]
    if uri:
        return [uri, *bind]
    if config:
        return ["--config", config, *(["--target", target] if target else []), *bind]
    return None


def container_bind(environ: Mapping[str, str]) -> str:
    """Return the address on which the server of a container listens."""
    return _given(environ, BIND) or DEFAULT_BIND


def _given(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name, "").strip()


def main() -> None:
    """Run the server, or its health check, and end the process with the exit code."""
    arguments: list[str] | None = sys.argv[1:]
    if arguments == [HEALTH]:
        _check_health()
    if not arguments:
        arguments = container_arguments(os.environ)
    if arguments is None:
        print(
            f"omnigraph-server: set {URI} to the address of a graph, or {CONFIG} to a configuration file "
            f"(with {TARGET}: the name of the graph); {BIND} is the address to listen on (default {DEFAULT_BIND})",
            file=sys.stderr,
        )
        sys.exit(USAGE)
    if os.getpid() == 1:
        # The kernel discards a signal to the first process of a container if there is no handler.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    from omnigraph.cli.main import main as run_program

    sys.argv[1:] = ["serve", *arguments]
    run_program()


def _check_health() -> None:
    """End the process with 0 if the server of this container answers, else with 1 and the reason."""
    from omnigraph.cli.commands.serve.health_check import find_problem

    problem = find_problem(os.environ, container_bind(os.environ))
    if problem is not None:
        print(f"omnigraph-server: {problem}", file=sys.stderr)
    sys.exit(0 if problem is None else 1)


if __name__ == "__main__":
    main()
