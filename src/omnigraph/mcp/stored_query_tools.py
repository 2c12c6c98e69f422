"""One tool per exposed stored query. Its arguments are the parameters of the query."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from omnigraph.errors import InputError
from omnigraph.mcp.answers import ROWS_MAX, rows_answer, written_answer
from omnigraph.mcp.own_branches import writable_branch
from omnigraph.mcp.session import Session
from omnigraph.mcp.tool import DATA_NOTE, Answer, Arguments, JsonSchema, Tool
from omnigraph.suggestions import did_you_mean, listing

if TYPE_CHECKING:
    from omnigraph.engine.result.result import Result
    from omnigraph.operations.mutate import MutationResult
    from omnigraph.query.stored_queries import StoredQuery

_TOOL_NAME = re.compile(r"[A-Za-z0-9_.-]{1,128}")
"""The names that the protocol permits."""
_KINDS: dict[str, JsonSchema] = {
    "string": {"type": "string"},
    "bool": {"type": "boolean"},
    "int": {"type": "integer"},
    "bigint": {"anyOf": [{"type": "integer"}, {"type": "string", "pattern": r"^-?\d+$"}]},
    "float": {"type": "number"},
    "date": {"type": "string", "format": "date"},
    "datetime": {"type": "string", "format": "date-time"},
    "uuid": {"type": "string", "format": "uuid"},
    "blob": {"type": "string", "contentEncoding": "base64"},
}
_BRANCH: JsonSchema = {"type": "string", "description": "A branch; by default main."}
_OWN_BRANCH: JsonSchema = {"type": "string", "description": "The branch to change; by default your own draft branch."}
_LIMIT: JsonSchema = {"type": "integer", "minimum": 1, "maximum": ROWS_MAX}
_AFTER: JsonSchema = {"type": "string", "description": "'next' of the previous answer."}
_READ_OPTIONS = {"branch": _BRANCH, "limit": _LIMIT, "after": _AFTER}
_WRITE_OPTIONS = {"branch": _OWN_BRANCH, "message": {"type": "string", "description": "The message of the commit."}}


def stored_query_tools(queries: Iterable[StoredQuery], taken: Iterable[str], *, write: bool) -> Iterator[Tool]:
    """Yield the tools of exposed stored queries; changes only with `write`. A name that is taken is not used again."""
    names = set(taken)
    for query in queries:
        name = _name(query)
        if query.is_exposed and (write or not query.is_mutation) and name not in names:
            names.add(name)
            yield _tool(query, name)


def _name(query: StoredQuery) -> str:
    """Return the name of a tool: its tool name, or that of the query if the protocol does not permit the tool name."""
    return query.tool_name if _TOOL_NAME.fullmatch(query.tool_name) else query.name


def _tool(query: StoredQuery, name: str) -> Tool:
    options = _WRITE_OPTIONS if query.is_mutation else _READ_OPTIONS
    params = {param["name"]: param for param in query.to_json(source=False)["params"]}
    # A parameter of the query hides an option of the same name.
    own = {name: schema for name, schema in options.items() if name not in params}
    schema: JsonSchema = {
        "type": "object",
        "properties": {**{name: _schema(param) for name, param in params.items()}, **own},
        "additionalProperties": False,
    }
    required = [name for name, param in params.items() if not param["nullable"]]
    if required:
        schema["required"] = required

    def run(session: Session, arguments: Arguments) -> Answer:
        _check_names(arguments, schema["properties"])
        session.on_source(query.source)
        given = {name: value for name, value in arguments.items() if name in params}
        more = {name: value for name, value in arguments.items() if name in own and value is not None}
        return (_change if query.is_mutation else _read)(session, query, given, more)

    return Tool(
        name=name,
        title=query.name,
        description=_description(query),
        input_schema=schema,
        run=run,
        action="invoke_query",
        writes=query.is_mutation,
        destructive=query.is_mutation,
        idempotent=not query.is_mutation,
    )


def _read(session: Session, query: StoredQuery, params: Arguments, options: Arguments) -> Answer:
    branch = _text(options, "branch")

    def fetch(rows: int | None, after: str | None) -> Result:
        found = session.graph.invoke(
            query.name, params, branch=branch, expect_mutation=False, limits=session.limits, page=rows, after=after
        )
        return cast("Result", found)

    limit = options.get("limit")
    if limit is not None and (type(limit) is not int or not 1 <= limit <= ROWS_MAX):
        raise InputError(f"the argument 'limit' is an integer of 1 to {ROWS_MAX}", code="bad_member")
    return rows_answer(session, fetch, limit, _text(options, "after"))


def _change(session: Session, query: StoredQuery, params: Arguments, options: Arguments) -> Answer:
    branch = writable_branch(session, _text(options, "branch"))
    found = session.graph.invoke(
        query.name,
        params,
        branch=branch,
        expect_mutation=True,
        message=_text(options, "message"),
        if_commit=session.if_commit,
        idempotency_key=session.idempotency_key,
        limits=replace(session.limits, timeout_s=session.write_timeout_s),
    )
    return change_answer(session, branch, cast("MutationResult", found))


def change_answer(session: Session, branch: str, result: MutationResult) -> Answer:
    """Return the answer of a change."""
    members = {
        "branch": branch,
        "affected_nodes": result.affected_nodes,
        "affected_edges": result.affected_edges,
        "commit": result.commit_id,
    }
    head = (
        f"changed {result.affected_nodes} nodes and {result.affected_edges} edges on '{branch}'"
        if result.commit_id is not None
        else f"nothing changed on '{branch}'"
    )
    return written_answer(session, head, members, result.rows)


def _description(query: StoredQuery) -> str:
    kind = "Stored change" if query.is_mutation else "Stored query"
    parts = [query.description or f"{kind} '{query.name}'.", query.instruction or ""]
    target = "It changes your own branch, not main." if query.is_mutation else ""
    return " ".join(part.strip() for part in (*parts, target, DATA_NOTE) if part.strip())


def _schema(param: dict[str, Any]) -> JsonSchema:
    kind = param["kind"]
    if kind == "vector":
        size = param["vector_dim"]
        schema: JsonSchema = {"type": "array", "items": {"type": "number"}, "minItems": size, "maxItems": size}
    elif kind == "list":
        schema = {"type": "array", "items": _KINDS[param["item_kind"]]}
    else:
        schema = dict(_KINDS[kind])
    return {**schema, "description": param["type"]}


def _check_names(arguments: Arguments, known: Iterable[str]) -> None:
    for name in arguments:
        if name not in (known := list(known)):
            hint = did_you_mean(name, known) or (f"the names are {listing(known, most=20)}" if known else None)
            raise InputError(f"there is no argument '{name[:60]}'", code="unknown_member", hint=hint)


def _text(options: Arguments, name: str) -> str | None:
    value = options.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"the argument '{name}' is a string", code="bad_member")
    return value
