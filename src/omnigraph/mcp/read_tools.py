"""Tools that read: the schema, rows, queries, history, differences, branches and commits."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, field

from omnigraph.error_page import explain_code
from omnigraph.errors import CompileError, InputError, NotFound
from omnigraph.mcp.answers import ROWS_MAX, first_items, item_answer, list_answer, rows_answer
from omnigraph.mcp.budget import Page, clip_text
from omnigraph.mcp.corrections import compile_text, corrected_text
from omnigraph.mcp.schema_text import SCHEMA_TOKENS, schema_text, type_text
from omnigraph.mcp.session import Session, point_of
from omnigraph.mcp.tool import DATA_NOTE, Answer, Tool, make_tool
from omnigraph.operations.requests import source_text
from omnigraph.versioning.model.manifest_objects import MAIN
from omnigraph.wire.json_values import row_value
from omnigraph.wire.requests.request import NAME_MAX, TOKEN_MAX, Request

if TYPE_CHECKING:
    from omnigraph.engine.result.result import Result
    from omnigraph.versioning.model.manifest_objects import Head

QUERY_MAX = 100_000
"""Longest text of a query."""

Text = Annotated[str, Meta(min_length=1, max_length=NAME_MAX)]
Branch = Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="A branch; by default main.")]
Point = Annotated[
    str,
    Meta(min_length=1, max_length=NAME_MAX, description="A commit id, branch, tag, version number or time to read at."),
]
Limit = Annotated[int, Meta(ge=1, le=ROWS_MAX, description="The largest number of entries.")]
After = Annotated[str, Meta(min_length=1, max_length=TOKEN_MAX, description="'next' of the previous answer.")]
QueryText = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=QUERY_MAX,
        description="'match { … } return { … }', or a text with a named query. The resource omnigraph://guide explains "
        "the language.",
    ),
]
Params = Annotated[dict[str, Any], Meta(description="Values of the parameters, by name without '$'.")]
QueryName = Annotated[str, Meta(max_length=NAME_MAX, description="The query, if the text holds several.")]
TypeName = Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="A node or edge type.")]
RowId = Annotated[str | int, Meta(description="The id of the node or edge; the id of a node with a key is its key.")]


class SchemaInput(Request):
    """Arguments of `schema`."""

    type: Annotated[str, Meta(max_length=NAME_MAX, description="Only this type and its edges.")] | None = None
    branch: Branch | None = None
    at: Point | None = None
    budget_tokens: Annotated[int, Meta(ge=50, le=20_000, description="The largest size of the answer.")] | None = None


class GetInput(Request):
    """Arguments of `get`."""

    type: TypeName
    id: RowId
    branch: Branch | None = None
    at: Point | None = None


class QueryInput(Request):
    """Arguments of `query`."""

    query: QueryText
    params: Params | None = None
    name: QueryName | None = None
    branch: Branch | None = None
    at: Point | None = None
    limit: Limit | None = None
    after: After | None = None


class ExplainErrorInput(Request):
    """Arguments of `explain_error`."""

    code: Annotated[str, Meta(max_length=NAME_MAX, description="An error code, such as T7 or key_conflict.")] | None = (
        None
    )
    query: QueryText | None = None
    params: Params | None = None
    branch: Branch | None = None


class HistoryInput(Request):
    """Arguments of `history`."""

    type: TypeName
    id: RowId
    branch: Branch | None = None
    limit: Limit | None = None
    after: After | None = None


class DiffInput(Request):
    """Arguments of `diff`."""

    from_: Annotated[str, Meta(min_length=1, max_length=NAME_MAX, description="The older point.")] = field(name="from")
    to: Annotated[str, Meta(max_length=NAME_MAX, description="The newer point; by default main.")] | None = None
    types: Annotated[list[Text], Meta(max_length=100, description="Only these types.")] | None = None
    limit: Limit | None = None
    after: After | None = None


class BranchesInput(Request):
    """Arguments of `branches`."""

    prefix: Annotated[str, Meta(max_length=NAME_MAX, description="Only names that begin with it.")] | None = None
    limit: Limit | None = None
    after: After | None = None


class CommitsInput(Request):
    """Arguments of `commits`."""

    branch: Branch | None = None
    actor: Annotated[str, Meta(max_length=NAME_MAX, description="Only commits of this actor.")] | None = None
    limit: Limit | None = None
    after: After | None = None


def show_schema(session: Session, given: SchemaInput) -> Answer:
    """Return the compact schema, or one type."""
    snapshot = session.graph.snapshot(given.branch, point_of(given.at))
    catalog = session.graph.catalog(given.branch, point_of(given.at))
    most = session.settings.result_tokens // 2
    tokens = min(given.budget_tokens or SCHEMA_TOKENS, most)
    text, complete = (type_text(catalog, given.type), True) if given.type else schema_text(catalog, tokens)
    text = clip_text(text, int(tokens * 3.5))
    return Answer({"schema": text, "complete": complete, "commit": snapshot.commit_id}, text)


def get_row(session: Session, given: GetInput) -> Answer:
    """Return one node or edge."""
    row = session.graph.get(given.type, given.id, branch=given.branch, at=point_of(given.at))
    if row is None:
        raise _unknown_row(given.type, given.id)
    return item_answer(session, {"type": given.type, "data": row}, f"{given.type} {given.id}")


def run_query(session: Session, given: QueryInput) -> Answer:
    """Run a read query."""
    session.on_source(given.query)
    point = {"branch": given.branch, "at": point_of(given.at)}

    def fetch(rows: int | None, after: str | None) -> Result:
        # A cursor contains its commit, so later pages name no point in time.
        where = {"branch": given.branch} if after is not None else point
        return session.graph.query(
            source_text(given.query), given.name, given.params, limits=session.limits, page=rows, after=after, **where
        )

    return rows_answer(session, fetch, given.limit, given.after)


def explain_error(session: Session, given: ExplainErrorInput) -> Answer:
    """Explain an error code, or the errors of a query text with its correction."""
    if (given.code is None) is (given.query is None):
        raise InputError("give either 'code' or 'query'", code="bad_member")
    if given.code is not None:
        text = clip_text(explain_code(given.code), session.budget.bytes // 3)
        return Answer({"code": given.code, "explanation": text}, text)
    assert given.query is not None
    catalog, params = session.graph.catalog(given.branch), given.params or {}
    try:
        compile_text(catalog, given.query, params)
    except CompileError as error:
        corrected = corrected_text(catalog, given.query, params, error)
        text = clip_text(str(error), session.budget.bytes // 4)
        lines = [text, *(["corrected:", corrected] if corrected is not None else [])]
        more = {"corrected": corrected} if corrected is not None else {}
        return Answer({"valid": False, "errors": text, **more}, "\n".join(lines))
    return Answer({"valid": True}, "The query compiles against the schema.")


def row_history(session: Session, given: HistoryInput) -> Answer:
    """Return the changes of one row, newest first."""

    def fetch(count: int) -> Page[dict[str, Any]]:
        found = session.graph.history(given.type, given.id, branch=given.branch, after=given.after, **session.bounds)
        changes = (change.to_json(row_value) for change in found)
        items, next = first_items(changes, count, lambda change: str(change["graph_commit_id"]))
        return Page([_without_time(item) for item in items], next, {"type": given.type, "id": str(given.id)})

    answer = list_answer(session, "changes", given.limit, fetch)
    if not answer.structured["changes"] and given.after is None:
        raise _unknown_row(given.type, given.id)
    return answer


def _unknown_row(type_name: str, id: str | int) -> NotFound:
    return NotFound(
        f"there is no {type_name} '{id}'",
        code="entity_not_found",
        hint="the id of a node with a key is its key; 'query' finds rows by other properties",
    )


def show_diff(session: Session, given: DiffInput) -> Answer:
    """Return the rows that differ between two points."""

    def fetch(count: int) -> Page[dict[str, Any]]:
        found = session.graph.diff(
            point_of(given.from_), point_of(given.to), types=given.types, limit=count, after=given.after,
            **session.bounds,
        )  # fmt: skip
        items = [change.to_json(row_value) for change in found]
        older, newer = found.commits
        head = {"from": older, "to": newer, "schema_changes": list(found.schema_steps)}
        return Page([_without(_changed_members(item), "table_key", "endpoints") for item in items], found.next, head)

    return list_answer(session, "changes", given.limit, fetch)


def list_branches(session: Session, given: BranchesInput) -> Answer:
    """Return the branches that the caller may read, compared with main; main first, then by name."""
    found = [each for each in session.graph.branch_status() if each.name.startswith(given.prefix or "")]
    if given.after is not None:
        found = [each for each in found if each.name != MAIN and each.name > given.after]

    def fetch(count: int) -> Page[dict[str, Any]]:
        items = [
            {**branch_item(each.head), "ahead": each.ahead, "behind": each.behind, "message": each.commit.message or ""}
            for each in found[:count]
        ]
        return Page(items, items[-1]["name"] if len(found) > count else None, {})

    return list_answer(session, "branches", given.limit, fetch)


def branch_item(head: Head) -> dict[str, Any]:
    """Return a branch with its head commit, owner and expiry."""
    members = {
        "name": head.branch,
        "commit": head.commit_id,
        "owner": head.owner,
        "description": head.description,
        "expires_at": row_value(head.expires_at),
    }
    return {member: value for member, value in members.items() if value is not None}


def list_commits(session: Session, given: CommitsInput) -> Answer:
    """Return commits of a branch, newest first."""

    def fetch(count: int) -> Page[dict[str, Any]]:
        found = session.graph.commits(given.branch, count + 1, after=given.after, actor=given.actor)
        items = [commit_item(commit) for commit in islice(found, count)]
        return Page(items, items[-1]["commit"] if len(found) > count else None, {"branch": given.branch or "main"})

    return list_answer(session, "commits", given.limit, fetch)


def commit_item(commit: Any) -> dict[str, Any]:
    """Return a commit as tools show it."""
    members = {
        "commit": commit.id,
        "time": row_value(commit.created_at),
        "actor": commit.actor,
        "kind": commit.kind,
        "message": commit.message,
    }
    return {member: value for member, value in members.items() if value is not None}


def _without_time(change: dict[str, Any]) -> dict[str, Any]:
    """Return a change of a row under the names that other tools use."""
    names = {"graph_commit_id": "commit", "actor_id": "actor"}
    members = {names.get(name, name): value for name, value in change.items() if name != "created_at"}
    return _changed_members({name: value for name, value in members.items() if value is not None})


def _without(members: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in members.items() if name not in names}


def _changed_members(change: dict[str, Any]) -> dict[str, Any]:
    """Return a change; an update shows only the properties that differ."""
    before, after = change.get("before"), change.get("after")
    if not before or not after:
        return {name: value for name, value in change.items() if value is not None}
    changed = [name for name in after if before.get(name) != after[name]]
    images = {"before": {n: before.get(n) for n in changed}, "after": {n: after[n] for n in changed}}
    return {**change, **images}


READ_TOOLS: tuple[Tool, ...] = (
    make_tool(
        "schema",
        "Schema",
        "Show the types of the graph: properties, keys, text and vector marks, and edges as arrows. Call it first. A "
        "large schema shows names; 'type' shows one type completely.",
        SchemaInput,
        show_schema,
    ),
    make_tool(
        "get",
        "Get a row",
        f"Return one node or edge by its type and id. {DATA_NOTE}",
        GetInput,
        get_row,
    ),
    make_tool(
        "query",
        "Query",
        "Run a read query in the query language of the graph and return its rows. Read the schema and the resource "
        f"omnigraph://guide first. A failed query returns its error and, if known, the corrected text. {DATA_NOTE}",
        QueryInput,
        run_query,
    ),
    make_tool(
        "explain_error",
        "Explain an error",
        "Explain an error code, or check a query text against the schema without running it: every error with its "
        "place, a hint and the corrected text if it is known.",
        ExplainErrorInput,
        explain_error,
    ),
    make_tool(
        "history",
        "History of a row",
        f"Return the changes of one node or edge, newest first: commit, actor, old and new values. {DATA_NOTE}",
        HistoryInput,
        row_history,
    ),
    make_tool(
        "diff",
        "Difference",
        "Return the nodes and edges that differ between two points: branches, commits, tags or times. 'a...b' in "
        f"'from' compares b with the common ancestor. {DATA_NOTE}",
        DiffInput,
        show_diff,
    ),
    make_tool(
        "branches",
        "Branches",
        "List branches with head commit, owner, expiry, and the numbers of commits ahead of and behind main.",
        BranchesInput,
        list_branches,
    ),
    make_tool(
        "commits",
        "Commits",
        f"List the commits of a branch, newest first. {DATA_NOTE}",
        CommitsInput,
        list_commits,
    ),
)
