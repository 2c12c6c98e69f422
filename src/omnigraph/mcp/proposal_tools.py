"""Tools for proposals: propose a branch of the actor, follow the proposal, comment on it. Offered with `write`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from omnigraph.mcp.answers import item_answer, list_answer
from omnigraph.mcp.budget import Page
from omnigraph.mcp.own_branches import check_writable, default_branch
from omnigraph.mcp.read_tools import After, Limit
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import DATA_NOTE, Answer, Tool, make_tool
from omnigraph.mcp.write_tools import OwnBranch
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.requests.request import MESSAGE_MAX, NAME_MAX, Request

if TYPE_CHECKING:
    from omnigraph.operations.proposals.proposal_info import ProposalInfo

TITLE_MAX = 200
ProposalId = Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="The id of a proposal.")]


class ProposeInput(Request):
    """Arguments of `propose`."""

    title: Annotated[str, Meta(min_length=1, max_length=TITLE_MAX, description="The change in one line.")]
    body: (
        Annotated[str, Meta(max_length=MESSAGE_MAX, description="What changes, why, and how it was checked.")] | None
    ) = None
    branch: OwnBranch | None = None
    draft: Annotated[bool, Meta(description="A draft is not tried and not checked yet.")] = False


class ProposalStatusInput(Request):
    """Arguments of `proposal_status`."""

    id: Annotated[str, Meta(max_length=NAME_MAX, description="A proposal; without it, your open ones.")] | None = None
    limit: Limit | None = None
    after: After | None = None


class CommentInput(Request):
    """Arguments of `comment`."""

    id: ProposalId
    text: Annotated[str, Meta(min_length=1, max_length=MESSAGE_MAX, description="The comment.")]
    on: (
        Annotated[
            dict[str, str],
            Meta(description='A row: {"table_key": "node:Person", "row_id": "ana", "property": "age"}.'),
        ]
        | None
    ) = None
    reply_to: Annotated[str, Meta(max_length=NAME_MAX, description="The id of a comment.")] | None = None


def propose_branch(session: Session, given: ProposeInput) -> Answer:
    """Propose to bring a branch of the actor into main."""
    branch = given.branch or default_branch(session.graph.actor)
    check_writable(session, branch)
    found = session.graph.propose(
        branch,
        MAIN,
        title=given.title,
        body=given.body,
        draft=given.draft,
        idempotency_key=session.idempotency_key,
        cancel=session.limits.cancellation,
        timeout=session.write_timeout_s,
    )
    return _proposal_answer(session, found.info)


def proposal_status(session: Session, given: ProposalStatusInput) -> Answer:
    """Return one proposal, or the open proposals of the actor."""
    if given.id is not None:
        return _proposal_answer(session, session.graph.proposal(given.id).info)

    def fetch(count: int) -> Page[dict[str, Any]]:
        found = session.graph.proposals(author=session.graph.actor, limit=count + 1, after=given.after)
        shown = found[:count]
        return Page([_item(info) for info in shown], shown[-1].id if len(found) > count else None, {})

    return list_answer(session, "proposals", given.limit, fetch)


def add_comment(session: Session, given: CommentInput) -> Answer:
    """Add a comment to a proposal."""
    proposal = session.graph.proposal(given.id)
    made = proposal.comment(given.text, on=given.on, reply_to=given.reply_to, idempotency_key=session.idempotency_key)
    return item_answer(session, {"proposal": given.id, "comment": made.id}, f"added the comment {made.id}")


def _proposal_answer(session: Session, info: ProposalInfo) -> Answer:
    item = _item(info)
    checks = [{"name": each.name, "state": each.state, "required": each.required} for each in info.checks]
    reviews = [{"by": each.actor, "verdict": each.verdict} for each in info.reviews]
    more = {"body": info.body, "checks": checks, "reviews": reviews, "comments": info.comments}
    shown = {**item, **{name: value for name, value in more.items() if value}}
    return item_answer(session, shown, f"proposal {info.id} is {info.state}")


def _item(info: ProposalInfo) -> dict[str, Any]:
    members = {
        "id": info.id,
        "title": info.title,
        "state": info.state,
        "source": info.source,
        "target": info.target,
        "blocked_by": [blocker.to_json() for blocker in info.blocked_by],
        "landed": info.landed,
    }
    return {name: value for name, value in members.items() if value}


PROPOSAL_TOOLS: tuple[Tool, ...] = (
    make_tool(
        "propose",
        "Propose",
        "Propose to bring a branch of your own into main. The merge is tried and checked; people review and land it.",
        ProposeInput,
        propose_branch,
        action="proposal_create",
        writes=True,
        idempotent=False,
    ),
    make_tool(
        "proposal_status",
        "Status of a proposal",
        f"Return the state of a proposal: what blocks it, checks and reviews; or your open proposals. {DATA_NOTE}",
        ProposalStatusInput,
        proposal_status,
        needs_write=True,
    ),
    make_tool(
        "comment",
        "Comment",
        "Add a comment to a proposal, or to a row of it.",
        CommentInput,
        add_comment,
        action="proposal_comment",
        writes=True,
        idempotent=False,
    ),
)
