"""`omnigraph audit`: read and verify the audit log of a server."""

from __future__ import annotations

import sys
from collections import deque
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.help import Group
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.durations import read_duration
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.cli.io.pager import print_paged
from omnigraph.cli.io.progress import progress_bar
from omnigraph.cli.io.result_output import table_style
from omnigraph.errors import InputError
from omnigraph.text_table import table_lines

if TYPE_CHECKING:
    from omnigraph.server.audit import AuditProblem, AuditRecord
    from omnigraph.wire.audit import AuditDecision, AuditProblemDocument

_DECISIONS = ("allow", "deny")
_COLUMNS = ("at", "actor", "action", "graph", "branch", "decision", "status", "route", "request_id")


class AuditGroup(Group):
    """The group of the audit commands; `list` is the command if none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `list` before an argument or option that is not a command."""
        if args and args[0] not in {*self.list_commands(ctx), *ctx.help_option_names}:
            args = ["list", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=AuditGroup, no_args_is_help=True, help="Read and verify the audit log of a server.", rich_markup_mode=None
)

Folder = Annotated[str, typer.Argument(metavar="DIR", help="The folder of the audit log: 'server.audit.dir'.")]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="TIME", help="From this time on: 2027-01-31, 2027-01-31T12:00:00Z, or an age: 12h, 7d."
    ),
]


@app.command("list")
@takes_config
def list_command(
    run: Invocation,
    folder: Folder,
    since: Since = None,
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="Before this time, in the same forms.")
    ] = None,
    actor: Annotated[str | None, typer.Option("--actor", metavar="ACTOR", help="Only this actor.")] = None,
    action: Annotated[str | None, typer.Option("--action", metavar="ACTION", help="Only this action.")] = None,
    decision: Annotated[
        str | None,
        typer.Option(
            "--decision",
            metavar="DECISION",
            help="Only allow or only deny.",
            autocompletion=completion.one_of(*_DECISIONS),
        ),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=0, metavar="N", help="Only the newest N records.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List the records of an audit log, oldest first.

    Times without a zone are UTC. The word list can be left out.

    omnigraph audit ./audit --since 24h --decision deny
    """
    from omnigraph.server.audit import AuditFilter, read

    first, end = _time("--since", since), _time("--until", until)
    reader = read(Path(folder), AuditFilter(first, end, actor, action, _decision(decision)))
    records = list(reader) if limit is None else list(deque(reader, limit))
    if reader.unreadable:
        lines = plural(reader.unreadable, "line")
        remark("warning", f"{lines} cannot be read; 'omnigraph audit verify {folder}' lists them")
    if as_json:
        from omnigraph.wire.audit import AuditListDocument

        print_json(AuditListDocument(records, reader.cursor))
        return
    _print_table(run, records)


@app.command("verify")
@takes_config
def verify_command(run: Invocation, folder: Folder, since: Since = None, as_json: Json = False) -> None:
    """Check the hash chains of an audit log; exits with 1 if records are missing, altered or reordered.

    With --since, the files of earlier days are not checked and may be absent.

    omnigraph audit verify ./audit
    """
    from omnigraph.server.audit import verify

    first = _time("--since", since)
    with progress_bar("verifying", wanted=not (as_json or run.options.quiet)):
        report = verify(Path(folder), since=first)
    problems = [problem for problem in report.problems if problem.damage]
    notes = [problem for problem in report.problems if not problem.damage]
    counts = [plural(report.chains, "chain"), plural(report.files, "file"), plural(report.records, "record")]
    if as_json:
        from omnigraph.wire.audit import AuditVerifyDocument

        found = (report.chains, report.files, report.records, [*map(_document, problems)], [*map(_document, notes)])
        print_json(AuditVerifyDocument(folder, report.sound, *found))
    else:
        for problem in problems:
            print(f"problem  {_place(problem)}: {problem.kind}: {problem.what}")
        for note in notes:
            remark("note", f"{_place(note)}: {note.what}")
        outcome = "sound" if report.sound else plural(len(problems), "problem")
        print(f"audit {folder}: {outcome} ({', '.join(counts)})")
    if not report.sound:
        raise typer.Exit(FAILED)


def _print_table(run: Invocation, records: list[AuditRecord]) -> None:
    columns = [[getattr(record, name) for record in records] for name in _COLUMNS]
    on_terminal = sys.stdout.isatty()
    lines = table_lines(_COLUMNS, columns, table_style(run, on_terminal=on_terminal))
    if on_terminal:
        print_paged(lines)
        return
    for line in lines:
        print(line.rstrip())


def _decision(text: str | None) -> AuditDecision | None:
    match text:
        case "allow" | "deny" | None:
            return text
        case _:
            raise UsageFault(f"--decision is '{text}'; it must be allow or deny")


def _time(option: str, text: str | None) -> datetime | None:
    """Parse a time, or an age before now."""
    from omnigraph.server.audit import read_time
    from omnigraph.wire.durations import has_unit

    if text is None:
        return None
    try:
        return datetime.now(UTC) - read_duration(text) if has_unit(text) else read_time(text)
    except OverflowError:
        raise UsageFault(f"{option}: '{text}' is before the year 1") from None
    except InputError as error:
        raise UsageFault(f"{option}: {error.message}", hint=error.hint) from None


def _place(problem: AuditProblem) -> str:
    return f"{problem.file}:{problem.line}" if problem.line is not None else problem.file


def _document(problem: AuditProblem) -> AuditProblemDocument:
    from omnigraph.wire.audit import AuditProblemDocument

    return AuditProblemDocument(problem.kind, problem.file, problem.line, problem.what)
