"""Options that select the engine and the Spark session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.errors import UsageFault

if TYPE_CHECKING:
    from omnigraph.spark.session import SessionOptions

ENGINES = ("auto", "spark", "memory")

Engine = Annotated[
    str,
    typer.Option("--engine", metavar="ENGINE", help="auto (by input size), spark or memory; the result is the same."),
]
Master = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="The Spark cluster (default: Spark in this process).")
]
Remote = Annotated[str | None, typer.Option("--remote", metavar="URL", help="A Spark Connect server, sc://host:port.")]
Conf = Annotated[
    list[str] | None, typer.Option("--conf", metavar="KEY=VALUE", help="A Spark setting; may be repeated.")
]


def check_engine(engine: str) -> None:
    """Reject an unknown engine."""
    if engine not in ENGINES:
        raise UsageFault(f"there is no engine '{engine}'; the engines are {', '.join(ENGINES)}")


def spark_options(
    engine: str, master: str | None, remote: str | None, conf: Sequence[str] | None = None
) -> SessionOptions | None:
    """Return the session options, or None if no option was given."""
    settings: dict[str, str] = {}
    for setting in conf or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise UsageFault(f"'{setting}' is not a setting; write --conf spark.name=value")
        settings[name] = value
    if master is None and remote is None and not settings:
        return None
    if engine == "memory":
        raise UsageFault("--engine memory excludes --master, --remote and --conf")
    from omnigraph.spark.session import SessionOptions

    return SessionOptions(master, remote, settings)
