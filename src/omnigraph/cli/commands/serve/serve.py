"""`omnigraph serve`: serve graphs over HTTP. Its options are those of the table of server settings."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from omnigraph.cli.addresses import GivenAddress
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation, takes_config
from omnigraph.cli.io.output import remark
from omnigraph.cli.process_end import end_process
from omnigraph.config_keys import SERVER_SETTINGS, Setting
from omnigraph.large_modules import importing_large_modules
from omnigraph.redaction import redact_uri

_METAVARS = {
    "bind": "IP:PORT",
    "graph": "NAME",
    "default_graph": "ID",
    "cluster": "DIR|URI|NAME",
    "proxies": "ADDRESS",
    "cors.origins": "ORIGIN",
    "log.level": "LEVEL",
    "metrics.bind": "IP:PORT",
}
_OF_KIND = {"path": "PATH", "count": "N", "seconds": "SECONDS"}
_TYPES: dict[str, Any] = {
    "switch": bool | None,
    "texts": list[str] | None,
    "count": int | None,
    "seconds": float | None,
}
_FLAGS = {setting.key.replace(".", "_"): setting for setting in SERVER_SETTINGS if setting.flag is not None}
"""Parameter of the command → setting."""


def _serve(run: Invocation, uris: list[str] | None = None, warm: bool = False, **values: Any) -> None:
    """Serve graphs over HTTP.

    The graph is the URI, the name of --target, or 'server.graph'; without these, every graph under 'graphs:' is served.
    The address is printed on stdout as OMNIGRAPH_LISTEN_ADDR=IP:PORT when the server accepts connections.
    SIGHUP reloads tokens, policies and settings; SIGTERM and SIGINT stop the server after the requests in flight.
    The server has more settings than options: see docs/server-config.md.

    omnigraph serve ./my.omni --local

    omnigraph serve --warm ./my.omni
    """
    if warm:
        _serve_warm(run, uris or [], [_FLAGS[name].flag for name, value in values.items() if _given(value) is not None])
        return
    if uris and values["graph"] is not None:
        raise UsageFault(
            f"more than one graph was given: the URI {redact_uri(uris[0])!r}, --target {values['graph']!r}"
        )
    with importing_large_modules(freeze=True):
        from omnigraph.server.deployment.state_builder import StartOptions
        from omnigraph.server.main import serve
        from omnigraph.storage.lance.lance_module import load_lance

        load_lance()

    flags = {_FLAGS[name].key: _given(value) for name, value in values.items()}
    cluster = flags["cluster"]
    if isinstance(cluster, str):
        flags["cluster"] = run.config.operator.find_cluster(cluster) or cluster
    code = serve(StartOptions(tuple(uris or ()), run.options.config, flags))
    raise typer.Exit(code)


def _serve_warm(run: Invocation, uris: list[str], others: list[str | None]) -> None:
    """Run the commands of this user in processes that are forked from this one."""
    if others:
        raise UsageFault(f"--warm serves the command line and excludes {', '.join(filter(None, others))}")
    if len(uris) > 1:
        raise UsageFault("--warm takes one graph")
    from omnigraph.cli.warm.server import IDLE_S, open_server

    address = run.storage(given=GivenAddress(uris[0] if uris else None))
    server = open_server(address.uri)
    remark("note", f"commands of this user run warm; the server ends after {int(IDLE_S / 60)} minutes without one")
    job = server.serve()
    if job is None:
        remark("note", f"the warm server ended after {server.served} commands")
        return
    from omnigraph.cli.main import run as run_command

    job.enter()
    end_process(run_command(job.arguments))


def _given(value: Any) -> Any:
    """Return the value of an option, or None if the option was not given."""
    return tuple(value) if isinstance(value, list) else value


def _parameter(name: str, setting: Setting) -> inspect.Parameter:
    option = typer.Option(
        _spelling(setting),
        metavar=None if setting.kind == "switch" else _METAVARS.get(setting.key) or _OF_KIND[setting.kind],
        help=setting.description.replace("`", "'"),
        show_default=False,
    )
    annotation: Any = Annotated[_TYPES.get(setting.kind, str | None), option]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=None)


def _spelling(setting: Setting) -> str:
    """Return the spelling of an option; a switch that is on by default also has one that turns it off."""
    assert setting.flag is not None
    return f"{setting.flag}/--no-{setting.flag.removeprefix('--')}" if setting.default is True else setting.flag


_URIS = Annotated[
    list[str] | None,
    typer.Argument(metavar="URI", help="The graphs: folders or s3://bucket/prefix.", show_default=False),
]
_WARM = Annotated[
    bool, typer.Option("--warm", help="Run commands of this user at a Unix socket, in forked processes; no HTTP.")
]
_serve.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        inspect.Parameter("run", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Invocation),
        inspect.Parameter("uris", inspect.Parameter.KEYWORD_ONLY, annotation=_URIS, default=None),
        inspect.Parameter("warm", inspect.Parameter.KEYWORD_ONLY, annotation=_WARM, default=False),
        *(_parameter(name, setting) for name, setting in _FLAGS.items()),
    ]
)
serve_command = takes_config(_serve)
