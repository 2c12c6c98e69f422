"""`omnigraph revert`: undo one commit by a new commit."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph
from omnigraph.cli.io.conflicts import Preview, Resolve, print_plan, resolutions
from omnigraph.cli.io.output import print_json
from omnigraph.cli.io.query_input import PolicyBreakage
from omnigraph.cli.schema_rules import open_for_schema_change, remark_on_rules
from omnigraph.versioning.model.point_text import parse_point


@takes_graph
def revert_command(
    run: Invocation,
    id_: Annotated[str, typer.Argument(metavar="COMMIT", help="The commit to revert: its id, a tag or another point.")],
    branch: Branch = None,
    resolve: Resolve = None,
    allow_policy_breakage: PolicyBreakage = False,
    preview: Preview = False,
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Undo one commit by a new commit; later changes are kept.

    Rows that later commits changed or reference are conflicts. In --resolve, theirs is the state before the commit.
    """
    on = run.branch(branch)
    how = resolutions(resolve or [])
    address = run.address()
    if preview:
        graph = open_for_schema_change(run, address, branch=on, read_only=True)
        commit_id = graph.snapshot(at=parse_point(id_)).commit_id
        plan = graph.revert_preview(commit_id, resolve=how)
        remark_on_rules(plan.broken_rules)
        if as_json:
            from omnigraph.wire.branches import RevertPreviewDocument

            print_json(RevertPreviewDocument.of({"reverted_commit_id": commit_id, "branch": on, **plan.to_json()}))
        else:
            print_plan(plan, f"revert preview {id_} on {on}", "the commit before", "revert")
        return
    run.announce(address)
    graph = open_for_schema_change(run, address, branch=on)
    result = graph.revert(parse_point(id_), message=message, resolve=how, allow_policy_breakage=allow_policy_breakage)
    if as_json:
        from omnigraph.wire.branches import RevertDocument

        print_json(RevertDocument.of({**result.to_json(), "actor_id": graph.actor}))
    else:
        print(f"revert {id_} on {on}: {result.commit_id or 'nothing to revert'}")
