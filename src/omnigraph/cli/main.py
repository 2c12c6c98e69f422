"""The program: registration of all commands, and the handling of their errors."""

from __future__ import annotations

import os
import sys
from contextlib import redirect_stdout
from typing import Any, TextIO, cast

import typer

from omnigraph.cli.commands.admin import (
    audit,
    cleanup,
    completion,
    config,
    demo,
    graphs,
    login,
    optimize,
    policy,
    profile,
    recover,
    retired,
    snapshot,
    token,
    verify,
    version,
)
from omnigraph.cli.commands.data import alias, analyze, blob, change, embed, export, ingest, init, load, read, shell
from omnigraph.cli.commands.model import explain, fmt, lint, schema
from omnigraph.cli.commands.review import blame, branch, changes, commit, diff, history, log, revert, status, tag
from omnigraph.cli.commands.serve import serve, top
from omnigraph.cli.completion import prepare_completion
from omnigraph.cli.errors import BROKEN_PIPE, FAILED, INTERRUPTED, report, report_defect, report_usage
from omnigraph.cli.help import Program, use_command_class
from omnigraph.cli.invocation import Actor_, Config_, GlobalOptions, Quiet_, Yes_
from omnigraph.cli.io.progress_log import log_long_operations
from omnigraph.cli.io.terminal_text import visible
from omnigraph.cli.process_settings import apply_process_settings
from omnigraph.errors import OmniGraphError

app = typer.Typer(
    name="omnigraph",
    cls=Program,
    help="A typed property graph database with branches, vector search and reviewable changes.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(version.version_text())
        raise typer.Exit


@app.callback()
def _root(
    context: typer.Context,
    config_file: Config_ = None,
    as_: Actor_ = None,
    yes: Yes_ = False,
    quiet: Quiet_ = False,
    _: bool = typer.Option(
        False, "-v", "--version", callback=_version, is_eager=True, help="Show the version and exit."
    ),
) -> None:
    apply_process_settings(os.environ)
    context.obj = GlobalOptions(config_file, as_, yes, quiet)
    log_long_operations(quiet=quiet)


START, QUERY, REVIEW, MODEL, OPERATE = "Start", "Query and change", "Branch and review", "Model", "Operate"

app.command("demo", rich_help_panel=START)(demo.demo_command)
app.command("init", rich_help_panel=START)(init.init_command)
app.command("load", rich_help_panel=START)(load.load_command)
app.command("ingest", rich_help_panel=START)(ingest.ingest_command)
app.command("export", rich_help_panel=START)(export.export_command)
app.command("embed", rich_help_panel=START)(embed.embed_command)
for name in ("read", "query"):
    app.command(name, rich_help_panel=QUERY, hidden=name == "query")(read.read_command)
for name in ("change", "mutate"):
    app.command(name, rich_help_panel=QUERY, hidden=name == "mutate")(change.change_command)
app.command("alias", rich_help_panel=QUERY)(alias.alias_command)
app.command("shell", rich_help_panel=QUERY)(shell.shell_command)
app.command("analyze", rich_help_panel=QUERY)(analyze.analyze_command)
app.add_typer(blob.app, name="blob", rich_help_panel=QUERY)
app.command("explain", rich_help_panel=QUERY)(explain.explain_command)
app.command("status", rich_help_panel=REVIEW)(status.status_command)
app.command("log", rich_help_panel=REVIEW)(log.log_command)
app.add_typer(branch.app, name="branch", rich_help_panel=REVIEW)
app.command("diff", rich_help_panel=REVIEW)(diff.diff_command)
app.command("revert", rich_help_panel=REVIEW)(revert.revert_command)
app.command("history", rich_help_panel=REVIEW)(history.history_command)
app.command("blame", rich_help_panel=REVIEW)(blame.blame_command)
app.add_typer(commit.app, name="commit", rich_help_panel=REVIEW)
app.add_typer(tag.app, name="tag", rich_help_panel=REVIEW)
app.add_typer(changes.app, name="changes", rich_help_panel=REVIEW)
app.add_typer(schema.app, name="schema", rich_help_panel=MODEL)
for name in ("lint", "check"):
    app.command(name, rich_help_panel=MODEL, hidden=name == "check")(lint.lint_command)
app.command("fmt", rich_help_panel=MODEL)(fmt.fmt_command)
app.command("serve", rich_help_panel=OPERATE)(serve.serve_command)
app.command("top", rich_help_panel=OPERATE)(top.top_command)
app.command("snapshot", rich_help_panel=OPERATE)(snapshot.snapshot_command)
app.command("optimize", rich_help_panel=OPERATE)(optimize.optimize_command)
app.command("cleanup", rich_help_panel=OPERATE)(cleanup.cleanup_command)
app.command("recover", rich_help_panel=OPERATE)(recover.recover_command)
app.command("verify", rich_help_panel=OPERATE)(verify.verify_command)
app.add_typer(policy.app, name="policy", rich_help_panel=OPERATE)
app.add_typer(token.app, name="token", rich_help_panel=OPERATE)
app.add_typer(audit.app, name="audit", rich_help_panel=OPERATE)
app.command("login", rich_help_panel=OPERATE)(login.login_command)
app.command("logout", rich_help_panel=OPERATE)(login.logout_command)
app.add_typer(graphs.app, name="graphs", rich_help_panel=OPERATE)
app.add_typer(profile.app, name="profile", rich_help_panel=OPERATE)
app.command("config", rich_help_panel=OPERATE)(config.config_command)
app.command("completion", rich_help_panel=OPERATE)(completion.completion_command)
app.command("version", rich_help_panel=OPERATE)(version.version_command)
app.command("run", hidden=True, context_settings=retired.ANY_ARGUMENTS)(retired.run_command)
app.command("repair", hidden=True, context_settings=retired.ANY_ARGUMENTS)(retired.repair_command)
use_command_class(app)


def main() -> None:
    """Run the program and end the process with its exit code."""
    try:
        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        # The interrupt arrived while another failure was being reported.
        code = INTERRUPTED
    if code == INTERRUPTED:
        # CPython records an interrupt that leaves an exec (dataclasses use one) as unhandled and would end the process
        # by the signal. The next exec clears the record.
        exec("")  # noqa: S102
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code."""
    prepare_completion()
    with redirect_stdout(cast(TextIO, _Stdout(sys.stdout))):
        code = _run_command(arguments)
        try:
            sys.stdout.flush()
        except SystemExit as exit_:
            code = exit_.code
    if code == BROKEN_PIPE:
        # The interpreter flushes stdout once more at exit, which must not fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(code or 0)


def _run_command(arguments: list[str]) -> Any:
    """Run one command and report its errors; return the exit code as Typer does: None for success."""
    try:
        return app(arguments, prog_name="omnigraph", standalone_mode=False)
    except SystemExit as exit_:
        return exit_.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return BROKEN_PIPE
    except typer.Abort:
        return FAILED
    except typer.TyperException as error:
        return report_usage(error)
    except Exception as error:
        return _report_failure(error, as_json="--json" in arguments)


def _report_failure(error: Exception, *, as_json: bool) -> int:
    if _debugging():
        raise error
    if isinstance(error, OmniGraphError):
        return report(error, as_json=as_json)
    return report_defect(error, as_json=as_json)


def _debugging() -> bool:
    return os.environ.get("OMNIGRAPH_DEBUG") == "1"


class _Stdout:
    """Wrapper of stdout that ends the program silently when the reader closes the pipe.

    On a terminal, control characters in the output have no effect.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.filters = stream.isatty()
        """True if control characters are replaced."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(visible(text) if self.filters else text)
        except BrokenPipeError:
            raise SystemExit(BROKEN_PIPE) from None

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            raise SystemExit(BROKEN_PIPE) from None
