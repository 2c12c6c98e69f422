"""`omnigraph purge`: remove rows from every branch and all history, and prove that they are gone."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Invocation, Json, takes_graph
from omnigraph.cli.io.files import writing
from omnigraph.cli.io.output import plural, print_json, remark, utc
from omnigraph.cli.io.progress import progress_bar

if TYPE_CHECKING:
    from omnigraph.operations.purge.certificate import PurgeCertificate

app = command_group("Remove rows from every branch and all history, and verify that they are gone.")

TypeName = Annotated[str, typer.Argument(metavar="TYPE", help="The type of the rows.")]
Ids = Annotated[list[str] | None, typer.Option("--id", metavar="ID", help="The id of a row, its key (repeatable).")]
IdsFrom = Annotated[
    Path | None, typer.Option("--ids-from", metavar="FILE", help="A file with one id per line.", dir_okay=False)
]

Values = Annotated[
    list[str] | None, typer.Option("--value", metavar="TEXT", help="A text that must not be stored (repeatable).")
]
ValuesFrom = Annotated[
    Path | None, typer.Option("--values-from", metavar="FILE", help="A file with one text per line.", dir_okay=False)
]


@app.command("run")
@takes_graph
def run_command(
    run: Invocation,
    type_name: TypeName,
    ids: Ids = None,
    ids_from: IdsFrom = None,
    edges: Annotated[bool, typer.Option("--edges", help="Remove the edges of the nodes too.")] = False,
    reason: Annotated[
        str | None,
        typer.Option("--reason", metavar="TEXT", help="Why; it is recorded, so it must not contain purged values."),
    ] = None,
    confirm: Annotated[bool, typer.Option("--confirm", help="Remove the rows; without it, only count them.")] = False,
    certificate: Annotated[
        Path | None,
        typer.Option("--certificate", metavar="FILE", help="Write the certificate to a file.", dir_okay=False),
    ] = None,
    as_json: Json = False,
) -> None:
    """Remove nodes or edges from every branch and all history.

    Commits keep their ids, parents, actors and times. The rows cannot be written again.

    omnigraph purge run Person --id ana --edges --reason "erasure request 17" --confirm ./my.omni
    """
    chosen = _chosen(ids, ids_from)
    address = run.address()
    if not confirm:
        found = run.open(address, read_only=True).purge_preview(type_name, chosen)
        rows = dict(found.rows)
        if as_json:
            print_json({"uri": address.uri, "confirmed": False, "rows": rows, "missing": list(found.missing)})
            return
        print(f"purge preview for {address.uri}: {_counts(rows)} in {plural(found.files, 'data file')}")
        for id_ in found.missing:
            print(f"not found  {id_}")
        remark("note", "nothing was removed; run again with --confirm")
        return
    if reason is None:
        raise UsageFault("a purge requires --reason TEXT")
    run.confirm(address, as_json=as_json)
    run.announce(address)
    graph = run.open(address)
    # The file is created before the purge: a certificate cannot be issued again.
    with writing(str(certificate)) if certificate is not None else nullcontext() as file:
        with progress_bar("purging", wanted=not (as_json or run.options.quiet)):
            done = graph.purge(type_name, chosen, edges=edges, reason=reason)
        if file is not None:
            file.write((json.dumps(done.to_json(), indent=2, ensure_ascii=False) + "\n").encode())
    _report(address.uri, done, as_json=as_json)


@app.command("resume")
@takes_graph
def resume_command(run: Invocation, as_json: Json = False) -> None:
    """Finish purges that were interrupted; a new purge does the same first."""
    address = run.address()
    run.announce(address)
    graph = run.open(address)
    with progress_bar("purging", wanted=not (as_json or run.options.quiet)):
        done = graph.purge_resume()
    if as_json:
        print_json({"uri": address.uri, "purges": [one.to_json() for one in done]})
        return
    for one in done:
        _report(address.uri, one, as_json=False)
    if not done:
        print(f"purge {address.uri}: no unfinished purge")


@app.command("verify")
@takes_graph
def verify_command(
    run: Invocation,
    values: Values = None,
    values_from: ValuesFrom = None,
    hexadecimal: Annotated[
        list[str] | None,
        typer.Option("--hex", metavar="BYTES", help="Bytes that must not be stored, in hexadecimal (repeatable)."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search every byte of the store for purged ids and for values; exits with 1 if one is found.

    Purged ids are recognised by their digests. Other values are unknown to the graph: give those that must be gone.

    omnigraph purge verify --value ana@example.org ./my.omni
    """
    try:
        wanted: list[str | bytes] = [*(values or []), *_lines(values_from), *map(bytes.fromhex, hexadecimal or [])]
    except ValueError as error:
        raise UsageFault(f"--hex takes bytes in hexadecimal: {error}") from error
    address = run.address()
    graph = run.open(address, read_only=True)
    with progress_bar("searching", wanted=not (as_json or run.options.quiet)) as watch:
        found = graph.purge_verify(wanted, watch=watch)
    if as_json:
        findings = [finding.to_json() for finding in found.findings]
        figures = {"objects": found.objects, "bytes": found.bytes, "undecodable": list(found.undecodable)}
        print_json({"uri": address.uri, "findings": findings, **figures})
    else:
        for finding in found.findings:
            print(f"found  {finding.value} in {finding.object} ({finding.place})")
        for name in found.undecodable:
            remark("warning", f"{name} cannot be decoded; only its bytes were searched")
        counted = f"{plural(found.objects, 'object')}, {found.bytes} bytes"
        what = plural(len(found.findings), "finding") if found.findings else "nothing found"
        print(f"purge verify {address.uri}: {what} in {counted}")
    if not found.is_clean:
        raise typer.Exit(FAILED)


@app.command("redact")
@takes_graph
def redact_command(
    run: Invocation,
    values: Values = None,
    values_from: ValuesFrom = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Replace the texts; without it, only count their places.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Replace texts in messages of commits, descriptions of branches and proposals by [redacted], in all history.

    Commits keep their ids, parents, actors and times. Names of branches and tags, and idempotency keys, are left.

    omnigraph purge redact --value ana@example.org --confirm ./my.omni
    """
    texts = [*(values or []), *_lines(values_from)]
    if not texts:
        raise UsageFault("name the texts: --value TEXT, or --values-from FILE")
    address = run.address()
    if confirm:
        run.confirm(address, as_json=as_json)
        run.announce(address)
    done = run.open(address, read_only=not confirm).purge_redact(texts, confirm=confirm)
    if as_json:
        print_json({"uri": address.uri, **done.to_json()})
        return
    places = [plural(done.commits, "commit"), plural(done.refs, "branch or tag record"), plural(done.events, "event")]
    what = "redacted" if confirm else "preview"
    print(f"purge redact {address.uri}: {what}: {', '.join(places)}")
    if not confirm:
        remark("note", "nothing was changed; run again with --confirm")


@app.command("list")
@takes_graph
def list_command(run: Invocation, as_json: Json = False) -> None:
    """List the purges of a graph. It keeps digests of the ids, not the ids."""
    address = run.address()
    records = run.open(address, read_only=True).purges()
    if as_json:
        print_json({"uri": address.uri, "purges": [record.to_json() for record in records]})
        return
    for record in records:
        who = record.actor or "-"
        what = f"{plural(len(record.digests), 'id')} of {record.type_name}"
        print("  ".join([record.id, utc(record.created_us), f"{record.state:<8}", who, what, record.reason]))


@app.command("allow")
@takes_graph
def allow_command(
    run: Invocation, type_name: TypeName, ids: Ids = None, ids_from: IdsFrom = None, as_json: Json = False
) -> None:
    """Permit purged ids to be written again.

    omnigraph purge allow Person --id ana ./my.omni
    """
    chosen = _chosen(ids, ids_from)
    address = run.address()
    run.announce(address)
    count = run.open(address).purge_allow(type_name, chosen)
    if as_json:
        print_json({"uri": address.uri, "type": type_name, "allowed": count})
    else:
        print(f"{plural(count, 'id')} of {type_name} can be written again")


def _chosen(ids: list[str] | None, file: Path | None) -> list[str]:
    chosen = [*(ids or []), *_lines(file)]
    if not chosen:
        raise UsageFault("name the rows: --id ID, or --ids-from FILE")
    return chosen


def _lines(file: Path | None) -> list[str]:
    if file is None:
        return []
    try:
        return [line for line in file.read_text(encoding="utf-8").splitlines() if line]
    except (OSError, ValueError) as error:
        raise UsageFault(f"'{file}' cannot be read: {error}") from error


def _report(uri: str, done: PurgeCertificate, *, as_json: bool) -> None:
    if as_json:
        print_json({"uri": uri, "confirmed": True, **done.to_json()})
        return
    print(f"purge {uri}: {_counts(done.rows)} removed from all history")
    print(f"files: {len(done.rewritten)} rewritten, {len(done.removed)} removed, {done.bytes_removed} bytes freed")
    print(f"certificate {done.purge_id}, digest {done.digest}")
    for key, why in sorted(done.unindexed.items()):
        remark("note", f"{key} lacks indexes: {why}; 'omnigraph optimize' builds them")


def _counts(rows: Any) -> str:
    return ", ".join(f"{count} {key.partition(':')[2]}" for key, count in sorted(rows.items())) or "no rows"
