"""Resources: the schema, one type, stored queries, branches and the guide of the query language, as text."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote

from omnigraph.mcp.budget import clip_bytes
from omnigraph.mcp.guide import guide_text
from omnigraph.mcp.schema_text import schema_text, type_names, type_text
from omnigraph.mcp.session import Session

SCHEME = "omnigraph://"
TYPE_TEMPLATE = f"{SCHEME}schema/{{type}}"
_TYPE_PREFIX = f"{SCHEME}schema/"
_TEXT = "text/plain"
_MARKDOWN = "text/markdown"
_COMPLETED_MAX = 100
_BRANCHES_MAX = 200


@dataclass(frozen=True)
class Resource:
    """A resource in the list."""

    uri: str
    name: str
    description: str
    media_type: str


RESOURCES = (
    Resource(f"{SCHEME}schema", "schema", "The types of the graph, one line each.", _TEXT),
    Resource(f"{SCHEME}queries", "queries", "The stored queries that you may call, with their text.", _TEXT),
    Resource(f"{SCHEME}branches", "branches", "The branches with their head commits.", _TEXT),
    Resource(f"{SCHEME}guide", "guide", "The query language, with examples for this schema.", _MARKDOWN),
)


def session_resources() -> list[Resource]:
    """Return the resources of a graph."""
    return list(RESOURCES)


def read_resource(session: Session, uri: str) -> tuple[str, str] | None:
    """Return the media type and the text of a resource; None if there is none of this address."""
    if uri.startswith(_TYPE_PREFIX) and uri != _TYPE_PREFIX:
        text = type_text(session.graph.catalog(), unquote(uri.removeprefix(_TYPE_PREFIX)))
        return _TEXT, clip_bytes(text, session.budget.bytes)
    readers = {"schema": _schema, "queries": _queries, "branches": _branches, "guide": _guide}
    for resource in RESOURCES:
        if resource.uri == uri:
            text = readers[resource.name](session)
            return resource.media_type, clip_bytes(text, session.budget.bytes)
    return None


def complete_type(session: Session, beginning: str) -> list[str]:
    """Return the names of types that begin with a text."""
    names = type_names(session.graph.catalog())
    return [name for name in names if name.lower().startswith(beginning.lower())][:_COMPLETED_MAX]


def _schema(session: Session) -> str:
    return schema_text(session.graph.catalog(), session.settings.result_tokens)[0]


def _queries(session: Session) -> str:
    texts = [query.source for query in session.graph.queries() if query.is_exposed]
    return "\n\n".join(texts) or "There are no stored queries."


def _branches(session: Session) -> str:
    found = session.graph.branch_status()
    lines = [
        f"{each.name}  {each.head.commit_id}  {each.ahead} ahead, {each.behind} behind {each.base}"
        for each in found[:_BRANCHES_MAX]
    ]
    more = [f"… and {len(found) - _BRANCHES_MAX} more"] if len(found) > _BRANCHES_MAX else []
    return "\n".join([*lines, *more])


def _guide(session: Session) -> str:
    return guide_text(session.graph.catalog(), write=session.settings.write)
