"""Tools that change the graph: on branches of the actor only. They are offered with `write`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import Meta, field

from omnigraph.mcp.answers import written_answer
from omnigraph.mcp.own_branches import check_writable, ensure_branch, topic_branch, writable_branch
from omnigraph.mcp.read_tools import QUERY_MAX, Params, QueryName, branch_item
from omnigraph.mcp.session import Session
from omnigraph.mcp.stored_query_tools import change_answer
from omnigraph.mcp.tool import DATA_NOTE, Answer, Tool, make_tool
from omnigraph.operations.requests import source_text
from omnigraph.wire.requests.request import MESSAGE_MAX, NAME_MAX, Request

RECORDS_MAX = 10_000
TOPIC_MAX = 100

OwnBranch = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=NAME_MAX,
        description="The branch to change: one of your own, 'mcp/ACTOR/…'; by default your draft branch. It is created "
        "on first use.",
    ),
]
Message = Annotated[str, Meta(max_length=MESSAGE_MAX, description="The message of the commit.")]


class BranchInput(Request):
    """Arguments of `branch`."""

    topic: Annotated[
        str, Meta(min_length=1, max_length=TOPIC_MAX, description="What the branch is for, such as 'fix-dates'.")
    ]
    from_: (
        Annotated[str, Meta(max_length=NAME_MAX, description="The branch to start from; by default main.")] | None
    ) = field(default=None, name="from")


class ChangeInput(Request):
    """Arguments of `change`."""

    query: Annotated[
        str,
        Meta(
            min_length=1,
            max_length=QUERY_MAX,
            description="Statements such as 'insert T { … }', 'upsert T { … }', 'update T set { … } where …', 'delete "
            "T where …', or a text with a named query. The resource omnigraph://guide has examples.",
        ),
    ]
    params: Params | None = None
    name: QueryName | None = None
    branch: OwnBranch | None = None
    message: Message | None = None


class LoadInput(Request):
    """Arguments of `load`."""

    records: Annotated[
        list[dict[str, Any]],
        Meta(
            min_length=1,
            max_length=RECORDS_MAX,
            description='Nodes {"type": T, "data": {…}} and edges {"edge": T, "from": id, "to": id, "data": {…}}.',
        ),
    ]
    mode: Annotated[
        Literal["merge", "append"],
        Meta(description="merge inserts or updates by key; append only inserts. By default merge."),
    ] = "merge"
    branch: OwnBranch | None = None
    message: Message | None = None


class BranchDeleteInput(Request):
    """Arguments of `branches_delete`."""

    branch: OwnBranch


def create_branch(session: Session, given: BranchInput) -> Answer:
    """Create a branch of the actor for a topic."""
    name = topic_branch(session.graph.actor, given.topic)
    check_writable(session, name)
    created = ensure_branch(session, name, given.from_)
    item = branch_item(session.graph.head(name))
    head = f"created the branch '{name}'" if created else f"the branch '{name}' exists"
    return written_answer(session, head, {"created": created, **item})


def run_change(session: Session, given: ChangeInput) -> Answer:
    """Run a mutation as one commit."""
    session.on_source(given.query)
    branch = writable_branch(session, given.branch)
    result = session.graph.mutate(
        source_text(given.query), given.name, given.params, branch=branch, message=given.message,
        idempotency_key=session.idempotency_key, **session.write_bounds,
    )  # fmt: skip
    return change_answer(session, branch, result)


def load_records(session: Session, given: LoadInput) -> Answer:
    """Load records as one commit."""
    branch = writable_branch(session, given.branch)
    result = session.graph.load(
        given.records, mode=given.mode, branch=branch, message=given.message, engine="memory",
        job_id=session.idempotency_key, **session.write_bounds,
    )  # fmt: skip
    tables = {key: rows for key, rows in result.tables if rows}
    members = {"branch": branch, "commit": result.commit_id, "rows_loaded": tables, "notes": list(result.notes)}
    return written_answer(session, f"loaded {sum(tables.values())} records on '{branch}'", members)


def delete_branch(session: Session, given: BranchDeleteInput) -> Answer:
    """Delete a branch of the actor."""
    check_writable(session, given.branch)
    session.graph.branch_delete(given.branch, force=True, idempotency_key=session.idempotency_key)
    return written_answer(session, f"deleted the branch '{given.branch}'", {"deleted": given.branch})


WRITE_TOOLS: tuple[Tool, ...] = (
    make_tool(
        "branch",
        "Create a branch",
        "Create a branch of your own for a topic: 'mcp/ACTOR/TOPIC'. It expires after 14 days. Use one per task.",
        BranchInput,
        create_branch,
        action="branch_create",
        writes=True,
    ),
    make_tool(
        "change",
        "Change",
        f"Run insert, update, upsert or delete statements as one commit on your own branch, never on main. {DATA_NOTE}",
        ChangeInput,
        run_change,
        action="change",
        writes=True,
        destructive=True,
        idempotent=False,
    ),
    make_tool(
        "load",
        "Load records",
        "Load nodes and edges as one commit on your own branch, never on main.",
        LoadInput,
        load_records,
        action="change",
        writes=True,
        destructive=True,
        idempotent=False,
    ),
)
DELETE_BRANCH = make_tool(
    "branches_delete",
    "Delete a branch",
    "Delete a branch of your own with its commits.",
    BranchDeleteInput,
    delete_branch,
    action="branch_delete",
    writes=True,
    destructive=True,
)
"""Not listed: an older name that is still answered."""
