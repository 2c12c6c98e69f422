"""`omnigraph propose` and `omnigraph proposal`: review a branch before it becomes part of another one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli import completion
from omnigraph.cli.errors import FAILED, UsageFault
from omnigraph.cli.help import command_group
from omnigraph.cli.invocation import Invocation, Json, Message, takes_graph
from omnigraph.cli.io.change_output import Limit, Ops, Types, check_filters
from omnigraph.cli.io.conflicts import resolutions
from omnigraph.cli.io.output import commit_document, plural, print_json, utc
from omnigraph.text_table import compact, record_table
from omnigraph.wire.json_values import json_value

if TYPE_CHECKING:
    from omnigraph.graph_proposals import Proposal
    from omnigraph.operations.proposals.proposal_info import ProposalInfo

app = command_group("List, show, discuss, check, review, land and close proposals.")

Id = Annotated[str, typer.Argument(metavar="ID", help="The id of the proposal, or the name of its source branch.")]
Labels = Annotated[list[str] | None, typer.Option("--label", metavar="NAME", help="A label. May be repeated.")]
Reviewers = Annotated[
    list[str] | None, typer.Option("--reviewer", metavar="ACTOR", help="An actor to review it. May be repeated.")
]
Text = Annotated[str | None, typer.Option("-m", "--message", metavar="TEXT", help="A text for the record.")]
Commit = Annotated[str | None, typer.Option("--commit", metavar="ID", help="The head of the source that was reviewed.")]


@takes_graph
def propose_command(
    run: Invocation,
    source: Annotated[
        str, typer.Argument(metavar="BRANCH", help="The branch to propose.", autocompletion=completion.branches)
    ],
    title: Annotated[str, typer.Option("-m", "--title", metavar="TITLE", help="The title.")],
    into: Annotated[
        str | None, typer.Option("--into", metavar="BRANCH", help="The branch to bring it into (default: main).")
    ] = None,
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT", help="A description.")] = None,
    labels: Labels = None,
    reviewers: Reviewers = None,
    draft: Annotated[bool, typer.Option("--draft", help="Neither try nor check it yet.")] = False,
    as_json: Json = False,
) -> None:
    """Propose to bring a branch into another one; the merge is tried and checked.

    omnigraph propose review/may -m "May survey" ./my.omni
    """
    address = run.address()
    target = run.branch(into)
    run.announce(address)
    proposal = run.open(address).propose(
        source, target, title=title, body=body, labels=labels or (), reviewers=reviewers or (), draft=draft
    )
    _print(proposal, as_json=as_json)


@app.command("list")
@takes_graph
def list_command(
    run: Invocation,
    state: Annotated[
        str,
        typer.Option(
            "--state",
            metavar="STATE",
            help="open, all, draft, checking, blocked, ready, landing, landed or closed (default: open).",
        ),
    ] = "open",
    into: Annotated[str | None, typer.Option("--into", metavar="BRANCH", help="Only those into a branch.")] = None,
    author: Annotated[str | None, typer.Option("--author", metavar="ACTOR", help="Only those of an author.")] = None,
    reviewer: Annotated[
        str | None, typer.Option("--reviewer", metavar="ACTOR", help="Only those that an actor reviews.")
    ] = None,
    label: Annotated[str | None, typer.Option("--label", metavar="NAME", help="Only those with a label.")] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", metavar="N", help="At most this many.")] = 100,
    after: Annotated[
        str | None, typer.Option("--after", metavar="ID", help="Continue after the last proposal of an earlier list.")
    ] = None,
    as_json: Json = False,
) -> None:
    """List proposals, newest first."""
    found = run.open(read_only=True).proposals(
        state, target=into, author=author, reviewer=reviewer, label=label, limit=limit, after=after
    )
    if as_json:
        from omnigraph.wire.proposals import ProposalListDocument

        more = found[-1].id if len(found) == limit else None
        print_json(ProposalListDocument.of({"proposals": [info.to_json() for info in found], "next": more}))
        return
    for info in found:
        print(f"{info.id}  {info.state:<8}  {info.source} -> {info.target}  {info.title}")


@app.command("show")
@takes_graph
def show_command(run: Invocation, id: Id, as_json: Json = False) -> None:
    """Show the state of a proposal, its checks, reviews and comments, and what prevents its landing."""
    proposal = _open(run, id)
    found = proposal.comments()
    if as_json:
        from omnigraph.wire.proposals import ShownProposalDocument

        shown = found.to_json()
        members = {"comment_list": shown["comments"], "hidden_comments": shown["hidden_comments"]}
        print_json(ShownProposalDocument.of({**proposal.info.to_json(), **members}))
        return
    _print(proposal, as_json=False)
    for comment in found.comments:
        place = "" if comment.on is None else f" on {comment.on.table_key}:{comment.on.row_id}"
        place += f".{comment.on.property}" if comment.on is not None and comment.on.property else ""
        state = " (resolved)" if comment.resolved else ""
        print(f"comment {comment.id} by {comment.actor or '-'}{place}{state}: {comment.text}")
    if found.hidden:
        print(f"{plural(found.hidden, 'comment')} hidden from you")


@app.command("diff")
@takes_graph
def diff_command(
    run: Invocation, id: Id, types: Types = None, ops: Ops = None, limit: Limit = None, as_json: Json = False
) -> None:
    """Show what would land: the changes from the head of the target to the trial."""
    from omnigraph.cli.commands.review.diff import print_diff

    check_filters(None, ops)
    proposal = _open(run, id)
    print_diff(
        proposal.diff(types=types, ops=ops), {"from": proposal.target, "to": proposal.source}, limit, as_json=as_json
    )


@app.command("conflicts")
@takes_graph
def conflicts_command(run: Invocation, id: Id, as_json: Json = False) -> None:
    """Show the plan of the merge and its conflicts."""
    from omnigraph.cli.io.conflicts import print_plan

    proposal = _open(run, id)
    plan = proposal.conflicts()
    if as_json:
        from omnigraph.wire.branches import MergePreviewDocument

        members = {"source": proposal.source, "target": proposal.target, **plan.to_json(json_value)}
        print_json(MergePreviewDocument.of(members))
        return
    print_plan(plan, f"merge {proposal.source} -> {proposal.target}", proposal.source, "merge")


@app.command("comment")
@takes_graph
def comment_command(
    run: Invocation,
    id: Id,
    text: Annotated[str, typer.Option("-m", "--message", metavar="TEXT", help="The comment.")],
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="PLACE", help="A row: node:Type:id or edge:Type:id."),
    ] = None,
    property: Annotated[
        str | None, typer.Option("--property", metavar="NAME", help="The property of the row that --on names.")
    ] = None,
    reply_to: Annotated[str | None, typer.Option("--reply-to", metavar="COMMENT", help="A comment.")] = None,
    as_json: Json = False,
) -> None:
    """Comment on a proposal, or on a row or property of it."""
    found = _open(run, id, write=True).comment(text, on=_place(on, property), reply_to=reply_to)
    if as_json:
        from omnigraph.wire.proposals import CommentDocument

        print_json(CommentDocument.of(found.to_json()))
        return
    print(f"comment {found.id}")


@app.command("edit-comment")
@takes_graph
def edit_comment_command(
    run: Invocation,
    id: Id,
    comment: Annotated[str, typer.Argument(metavar="COMMENT", help="The id of the comment.")],
    text: Annotated[str | None, typer.Option("-m", "--message", metavar="TEXT", help="The new text.")] = None,
    resolved: Annotated[
        bool | None, typer.Option("--resolved/--unresolved", help="Whether the comment is resolved.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Replace the text of an own comment, or mark a comment as resolved or not."""
    if text is None and resolved is None:
        raise UsageFault("nothing is to be changed; give -m TEXT, --resolved or --unresolved")
    found = _open(run, id, write=True).edit_comment(comment, text, resolved=resolved)
    if as_json:
        from omnigraph.wire.proposals import CommentDocument

        print_json(CommentDocument.of(found.to_json()))
        return
    print(f"comment {found.id}{' (resolved)' if found.resolved else ''}: {found.text}")


@app.command("events")
@takes_graph
def events_command(
    run: Invocation,
    id: Id,
    after: Annotated[int, typer.Option("--after", metavar="NUMBER", help="Only events with greater numbers.")] = 0,
    as_json: Json = False,
) -> None:
    """List the events of a proposal, which are its record."""
    found = list(_open(run, id).events(after))
    if as_json:
        from omnigraph.wire.proposals import ProposalEventListDocument

        print_json(ProposalEventListDocument.of({"events": [event.to_json() for event in found]}))
        return
    for event in found:
        print(f"{event.number:>4}  {utc(event.at_us)}  {event.kind:<8}  {event.actor or '-'}  {compact(event.data)}")


@app.command("rows")
@takes_graph
def rows_command(
    run: Invocation,
    id: Id,
    check: Annotated[str, typer.Option("--check", metavar="NAME", help="The stored query that is a check.")],
    as_json: Json = False,
) -> None:
    """Show the rows of a check on the trial, at most a hundred: those that make it fail.

    omnigraph proposal rows review/may --check no_orphans ./my.omni
    """
    found = _open(run, id).check_rows(check)
    rows = [{name: json_value(value) for name, value in row.items()} for row in found.rows]
    if as_json:
        from omnigraph.wire.proposals import CheckRowsDocument

        print_json(CheckRowsDocument(found.name, rows, found.total, dict(found.node_types)))
        return
    print(record_table(rows))
    print(f"{plural(found.total, 'row')}, {len(rows)} shown" if found.total > len(rows) else plural(found.total, "row"))


@app.command("approve")
@takes_graph
def approve_command(run: Invocation, id: Id, text: Text = None, commit: Commit = None, as_json: Json = False) -> None:
    """Approve the head of the source; the approval is void when the source moves."""
    _print(_open(run, id, write=True).approve(text, commit=commit), as_json=as_json)


@app.command("request-changes")
@takes_graph
def request_changes_command(
    run: Invocation, id: Id, text: Text = None, commit: Commit = None, as_json: Json = False
) -> None:
    """Object to the landing until a later verdict of the same actor."""
    _print(_open(run, id, write=True).request_changes(text, commit=commit), as_json=as_json)


@app.command("retract")
@takes_graph
def retract_command(run: Invocation, id: Id, text: Text = None, as_json: Json = False) -> None:
    """Withdraw an earlier verdict."""
    _print(_open(run, id, write=True).retract(text), as_json=as_json)


@app.command("resolve")
@takes_graph
def resolve_command(
    run: Invocation,
    id: Id,
    how: Annotated[
        list[str],
        typer.Option("--resolve", metavar="HOW", help="How to resolve conflicts, as in branch merge. May be repeated."),
    ],
    as_json: Json = False,
) -> None:
    """Choose how conflicts are resolved, and try the merge again."""
    _print(_open(run, id, write=True).resolve(resolutions(how)), as_json=as_json)


@app.command("check")
@takes_graph
def check_command(
    run: Invocation,
    id: Id,
    again: Annotated[bool, typer.Option("--again", help="Run the checks that have a result, too.")] = False,
    as_json: Json = False,
) -> None:
    """Try the merge of the current heads and run the checks; exit with 1 if the proposal cannot land."""
    proposal = _open(run, id, write=True).check(again=again)
    _print(proposal, as_json=as_json)
    if proposal.state != "ready":
        raise typer.Exit(FAILED)


@app.command("report")
@takes_graph
def report_command(
    run: Invocation,
    id: Id,
    name: Annotated[str, typer.Option("--check", metavar="NAME", help="The name of the check.")],
    state: Annotated[str, typer.Option("--state", metavar="STATE", help="pass, fail, error or pending.")],
    commit: Annotated[str, typer.Option("--commit", metavar="ID", help="The commit of the trial that was checked.")],
    text: Text = None,
    as_json: Json = False,
) -> None:
    """Record the result of an external check of the trial."""
    found = _open(run, id, write=True).report_check(name, state, commit=commit, details=text)
    _print(found, as_json=as_json)


@app.command("land")
@takes_graph
def land_command(run: Invocation, id: Id, message: Message = None, as_json: Json = False) -> None:
    """Land a proposal: its checked trial becomes one commit of the target."""
    proposal = _open(run, id, write=True)
    commit = proposal.land(message)
    if as_json:
        from omnigraph.wire.proposals import LandedDocument

        document = commit_document(run.open(read_only=True), commit.id)
        assert document is not None
        print_json(LandedDocument.of({"proposal": proposal.to_json(), "commit": document.to_json()}))
        return
    print(f"proposal {proposal.id} landed on {proposal.target} as {commit.id}")


@app.command("edit")
@takes_graph
def edit_command(
    run: Invocation,
    id: Id,
    title: Annotated[str | None, typer.Option("--title", metavar="TITLE", help="The title.")] = None,
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT", help="The description.")] = None,
    labels: Labels = None,
    reviewers: Reviewers = None,
    draft: Annotated[bool | None, typer.Option("--draft/--ready", help="Whether it is a draft.")] = None,
    as_json: Json = False,
) -> None:
    """Change the title, description, labels, reviewers or the draft state."""
    found = _open(run, id, write=True).edit(title=title, body=body, labels=labels, reviewers=reviewers, draft=draft)
    _print(found, as_json=as_json)


@app.command("close")
@takes_graph
def close_command(run: Invocation, id: Id, text: Text = None, as_json: Json = False) -> None:
    """Close a proposal without landing it."""
    _print(_open(run, id, write=True).close(text), as_json=as_json)


@app.command("reopen")
@takes_graph
def reopen_command(run: Invocation, id: Id, as_json: Json = False) -> None:
    """Open a closed proposal again."""
    _print(_open(run, id, write=True).reopen(), as_json=as_json)


def _open(run: Invocation, id: str, *, write: bool = False) -> Proposal:
    """Return a proposal by its id, or the newest open one of a source branch."""
    address = run.address()
    if write:
        run.announce(address)
    graph = run.open(address, read_only=not write)
    if len(id) != 26 or not id.isalnum():
        mine = [info for info in graph.proposals(limit=1000) if info.source == id]
        if not mine:
            raise UsageFault(f"there is no open proposal of branch '{id}'; 'omnigraph proposal list' lists them")
        id = mine[0].id
    return graph.proposal(id)


def _place(on: str | None, property: str | None) -> dict[str, str] | None:
    if on is None:
        return None
    kind, _, rest = on.partition(":")
    type_, _, row = rest.partition(":")
    if kind not in ("node", "edge") or not type_ or not row:
        raise UsageFault(f"--on must be node:Type:id or edge:Type:id, not '{on}'")
    place = {"table_key": f"{kind}:{type_}", "row_id": row}
    return place if property is None else {**place, "property": property}


def _print(proposal: Proposal, *, as_json: bool) -> None:
    info = proposal.info
    if as_json:
        from omnigraph.wire.proposals import ProposalDocument

        print_json(ProposalDocument.of(info.to_json()))
        return
    print(f"proposal {info.id} ({info.state}): {info.source} -> {info.target}: {info.title}")
    for line in _details(info):
        print(line)


def _details(info: ProposalInfo) -> list[str]:
    lines = [f"by {info.author or '-'} at {utc(info.created_us)}"]
    lines += [info.body] if info.body else []
    lines += [
        f"{name}: {', '.join(found)}"
        for name, found in (("labels", info.labels), ("reviewers", info.reviewers))
        if found
    ]
    if info.trial is not None:
        for key, counts in info.trial.tables.items():
            lines.append(f"{key}  +{counts['inserted']} ~{counts['updated']} -{counts['deleted']}")
        lines += [f"schema: {step}" for step in info.trial.schema_steps]
    for check in info.checks:
        required = ", required" if check.required else ""
        lines.append(f"check {check.name}: {check.state}{required}" + (f": {check.details}" if check.details else ""))
    for review in info.reviews:
        void = "" if review.counts or review.verdict != "approve" else " (does not count)"
        lines.append(f"review by {review.actor}: {review.verdict}{void}" + (f": {review.text}" if review.text else ""))
    lines += [f"blocked: {blocker.message}" for blocker in info.blocked_by]
    if info.landed is not None:
        lines.append(f"landed as {info.landed}")
    if info.state == "closed":
        lines.append(f"closed by {info.closed_by or '-'}" + (f": {info.closed_why}" if info.closed_why else ""))
    return lines
