"""`omnigraph mcp`: serve a graph to an MCP client on stdin and stdout, and configure clients."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.help import DefaultGroup
from omnigraph.cli.invocation import Branch, Invocation, takes_graph
from omnigraph.cli.io.files import replace_text, writing
from omnigraph.cli.io.output import remark
from omnigraph.errors import InputError
from omnigraph.text_files import read_text_file

if TYPE_CHECKING:
    from omnigraph.engine.exec.cancellation import Cancellation
    from omnigraph.mcp.session import Session

app = typer.Typer(
    cls=DefaultGroup,
    help="Serve a graph to an MCP client, such as a coding agent, or configure a client.",
    rich_markup_mode=None,
)

Write = Annotated[
    bool, typer.Option("--write", help="Offer tools that change the graph, on branches of the actor only.")
]
StoredOnly = Annotated[bool, typer.Option("--stored-only", help="Offer stored queries, but not ad hoc queries.")]
Patterns = Annotated[
    list[str] | None,
    typer.Option(
        "--branches",
        metavar="PATTERN",
        help="Branches that tools may change (repeatable; default: mcp/<actor>/*, where <actor> is the actor).",
    ),
]
Tokens = Annotated[
    int | None,
    typer.Option("--result-tokens", min=1000, metavar="N", help="The largest size of an answer (default: 4000)."),
]


@app.command("serve")
@takes_graph
def serve_command(
    run: Invocation,
    write: Write = False,
    stored_only: StoredOnly = False,
    branches: Patterns = None,
    result_tokens: Tokens = None,
    branch: Branch = None,
) -> None:
    """Serve a graph to the client that started this command; 'serve' can be omitted.

    Tools, resources and prompts are those of docs/guides/mcp.md. Without --write, nothing can be changed. The command
    ends when the client closes stdin.

    omnigraph mcp ./my.omni

    omnigraph mcp --server reading-room --graph kb --write
    """
    from omnigraph.mcp.packages import mcp_packages

    with mcp_packages():
        from omnigraph.mcp.serve import serve_stdio
    from omnigraph.engine.exec.context import Limits
    from omnigraph.mcp.own_branches import OWN_BRANCHES
    from omnigraph.mcp.session import QUERY_S, RESULT_TOKENS, McpSettings, Session, rights_of

    on = run.branch(branch)
    graph = run.open(branch=on) if write else run.open_for_queries(branch=on)
    settings = McpSettings(
        write=write,
        adhoc=not stored_only,
        branches=tuple(branches or OWN_BRANCHES),
        result_tokens=result_tokens or RESULT_TOKENS,
    )
    rights = rights_of(graph)

    def open_session(cancel: Cancellation) -> Session:
        limits = Limits(timeout_s=QUERY_S, cancellation=cancel)
        return Session(graph, settings, limits, rights=rights)

    serve_stdio(open_session)


@app.command("install")
@takes_graph
def install_command(
    run: Invocation,
    client: Annotated[
        str,
        typer.Option(
            "--client",
            metavar="NAME",
            help="claude-code, claude-desktop, cursor, gemini, vscode or windsurf.",
        ),
    ],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="The name of the entry.")] = "omnigraph",
    file: Annotated[
        str | None, typer.Option("--file", metavar="PATH", help="The configuration file (default: that of the client).")
    ] = None,
    write: Write = False,
    stored_only: StoredOnly = False,
    branches: Patterns = None,
    result_tokens: Tokens = None,
) -> None:
    """Add a graph to the configuration of an MCP client.

    The change of the file is shown and confirmed before it is written. Other entries are kept. Tokens are not written:
    the command that the client starts finds them as every command does.

    omnigraph mcp install --client cursor ./my.omni
    """
    from omnigraph.mcp.clients import change_of, find_client, with_entry

    chosen = find_client(client)
    path = Path(file) if file is not None else chosen.path(sys.platform, Path.home(), os.environ)
    before = read_text_file(path) if path.exists() else ""
    flags = [*(["--write"] if write else []), *(["--stored-only"] if stored_only else [])]
    flags += [word for pattern in branches or () for word in ("--branches", pattern)]
    flags += ["--result-tokens", str(result_tokens)] if result_tokens is not None else []
    command, *arguments = _command(run)
    after = with_entry(before, chosen, name, chosen.entry(command, [*arguments, *flags]), path)
    change = change_of(before, after, path)
    if not change:
        print(f"{path} has this entry already")
        return
    print(change)
    if not _confirmed(run, path):
        raise InputError(f"'{path}' was not changed", code="not_confirmed", hint="confirm with --yes")
    if path.exists():
        replace_text(path, after)
    else:
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing(str(path)) as target:
            target.write(after.encode())
    print(f"wrote {path}; restart the client")


def _command(run: Invocation) -> list[str]:
    """Return the command line that serves the graph, with absolute paths."""
    address = run.address()
    script = Path(sys.executable).with_name("omnigraph")
    start = [str(script)] if script.exists() else [sys.executable, "-m", "omnigraph"]
    graph = str(Path(address.uri).absolute()) if "://" not in address.uri else address.uri
    config = ["--config", str(Path(run.options.config).absolute())] if run.options.config else []
    actor = ["--as", run.options.actor] if run.options.actor else []
    return [*start, "mcp", "serve", graph, *config, *actor]


def _confirmed(run: Invocation, path: Path) -> bool:
    """Ask on a terminal; elsewhere only --yes confirms."""
    if run.options.yes:
        return True
    if not sys.stdin.isatty():
        remark("note", "stdin is not a terminal")
        return False
    print(f"Write {path}? [yes/no] ", end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
