"""The table of commands, and the program that is built from it.

A command is imported and declared when it is named: a command line that starts with the name of a command builds that
command only. Help, completion and an unknown command build all of them.
"""

from __future__ import annotations

import os
from collections.abc import Container, Mapping
from importlib import import_module
from typing import Any, NamedTuple

import typer

from omnigraph.cli.commands.admin.retired import ANY_ARGUMENTS
from omnigraph.cli.help import Program, use_command_class
from omnigraph.cli.invocation import Actor_, Config_, GlobalOptions, Quiet_, Yes_
from omnigraph.cli.io.progress_log import log_long_operations
from omnigraph.cli.process_settings import apply_process_settings

START, QUERY, REVIEW, MODEL, OPERATE = "Start", "Query and change", "Branch and review", "Model", "Operate"


class Command(NamedTuple):
    """A command, or a group of commands, and the place of its declaration."""

    name: str
    section: str | None
    module: str
    """The module below `cli.commands`."""
    function: str | None = None
    """The function of the command; None for a group, whose module declares an `app`."""
    hidden: bool = False
    settings: Mapping[str, Any] | None = None


COMMANDS = (
    Command("demo", START, "admin.demo", "demo_command"),
    Command("init", START, "data.init", "init_command"),
    Command("load", START, "data.load", "load_command"),
    Command("ingest", START, "data.ingest", "ingest_command"),
    Command("export", START, "data.export", "export_command"),
    Command("embed", START, "data.embed", "embed_command"),
    Command("read", QUERY, "data.read", "read_command"),
    Command("query", QUERY, "data.read", "read_command", hidden=True),
    Command("change", QUERY, "data.change", "change_command"),
    Command("mutate", QUERY, "data.change", "change_command", hidden=True),
    Command("alias", QUERY, "data.alias", "alias_command"),
    Command("shell", QUERY, "data.shell", "shell_command"),
    Command("sql", QUERY, "data.sql", "sql_command"),
    Command("analyze", QUERY, "data.analyze", "analyze_command"),
    Command("unify", QUERY, "data.unify", "unify_command"),
    Command("resolve", QUERY, "data.resolve", "resolve_command"),
    Command("search", QUERY, "data.search", "search_command"),
    Command("neighbors", QUERY, "data.neighbors", "neighbors_command"),
    Command("explain", QUERY, "model.explain", "explain_command"),
    Command("status", REVIEW, "review.status", "status_command"),
    Command("log", REVIEW, "review.log", "log_command"),
    Command("diff", REVIEW, "review.diff", "diff_command"),
    Command("revert", REVIEW, "review.revert", "revert_command"),
    Command("propose", REVIEW, "review.proposal", "propose_command"),
    Command("history", REVIEW, "review.history", "history_command"),
    Command("blame", REVIEW, "review.blame", "blame_command"),
    Command("lint", MODEL, "model.lint", "lint_command"),
    Command("check", MODEL, "model.lint", "lint_command", hidden=True),
    Command("fmt", MODEL, "model.fmt", "fmt_command"),
    Command("lsp", MODEL, "model.lsp", "lsp_command"),
    Command("codegen", MODEL, "model.codegen", "codegen_command"),
    Command("serve", OPERATE, "serve.serve", "serve_command"),
    Command("ui", OPERATE, "serve.ui", "ui_command"),
    Command("top", OPERATE, "serve.top", "top_command"),
    Command("snapshot", OPERATE, "admin.snapshot", "snapshot_command"),
    Command("optimize", OPERATE, "admin.optimize", "optimize_command"),
    Command("cleanup", OPERATE, "admin.cleanup", "cleanup_command"),
    Command("recover", OPERATE, "admin.recover", "recover_command"),
    Command("verify", OPERATE, "admin.verify", "verify_command"),
    Command("login", OPERATE, "admin.login", "login_command"),
    Command("logout", OPERATE, "admin.login", "logout_command"),
    Command("config", OPERATE, "admin.config", "config_command"),
    Command("completion", OPERATE, "admin.completion", "completion_command"),
    Command("version", OPERATE, "admin.version", "version_command"),
    Command("run", None, "admin.retired", "run_command", hidden=True, settings=ANY_ARGUMENTS),
    Command("repair", None, "admin.retired", "repair_command", hidden=True, settings=ANY_ARGUMENTS),
    Command("blob", QUERY, "data.blob"),
    Command("branch", REVIEW, "review.branch"),
    Command("commit", REVIEW, "review.commit"),
    Command("proposal", REVIEW, "review.proposal"),
    Command("tag", REVIEW, "review.tag"),
    Command("changes", REVIEW, "review.changes"),
    Command("schema", MODEL, "model.schema"),
    Command("queries", MODEL, "model.queries"),
    Command("purge", OPERATE, "admin.purge"),
    Command("policy", OPERATE, "admin.policy"),
    Command("token", OPERATE, "admin.token"),
    Command("audit", OPERATE, "admin.audit"),
    Command("webhook", OPERATE, "admin.webhook"),
    Command("mcp", OPERATE, "serve.mcp"),
    Command("graphs", OPERATE, "admin.graphs"),
    Command("cluster", OPERATE, "admin.cluster"),
    Command("profile", OPERATE, "admin.profile"),
)
"""Every command, in the order of the help of its section; groups come after the other commands."""

_SYNONYMS = {"query": ("query", "lint", "check")}
"""Command → the commands that its name can stand for (`Program.resolve_command`)."""


def build_program(arguments: list[str] | None = None) -> typer.Typer:
    """Return the program with the command that the first of the arguments names, else with all commands."""
    named = arguments[0] if arguments else None
    if any(command.name == named for command in COMMANDS):
        assert named is not None, "a command has a name"
        return _build(_SYNONYMS.get(named, (named,)))
    return _build({command.name for command in COMMANDS})


def _build(names: Container[str]) -> typer.Typer:
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
    app.callback()(_root)
    for command in COMMANDS:
        if command.name not in names:
            continue
        module = import_module(f"omnigraph.cli.commands.{command.module}")
        if command.function is None:
            app.add_typer(module.app, name=command.name, rich_help_panel=command.section or "")
        else:
            settings = dict(command.settings) if command.settings is not None else None
            declare = app.command(
                command.name,
                rich_help_panel=command.section or "",
                hidden=command.hidden,
                context_settings=settings,
            )
            declare(getattr(module, command.function))
    use_command_class(app)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from omnigraph.cli.commands.admin.version import version_text

        print(version_text())
        raise typer.Exit


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
