"""Prompts: short texts made from the live schema that start a conversation about the graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from omnigraph.errors import InputError
from omnigraph.mcp.budget import clip_text
from omnigraph.mcp.own_branches import default_branch
from omnigraph.mcp.schema_text import schema_text
from omnigraph.mcp.session import Session

_ARGUMENT_MAX = 2_000
_SCHEMA_TOKENS = 1_000


@dataclass(frozen=True)
class Prompt:
    """A prompt with one argument."""

    name: str
    description: str
    argument: str
    about: str
    required: bool
    make: Callable[[Session, str], str]
    writes: bool = False

    def text(self, session: Session, arguments: Mapping[str, str]) -> str:
        """Return the text; an unknown or missing argument is an `InputError`."""
        for name in arguments:
            if name != self.argument:
                raise InputError(f"the prompt '{self.name}' has no argument '{name[:60]}'", code="unknown_member")
        given = arguments.get(self.argument, "").strip()
        if self.required and not given:
            raise InputError(f"the prompt '{self.name}' needs the argument '{self.argument}'", code="bad_member")
        return self.make(session, clip_text(given, _ARGUMENT_MAX))


def _schema(session: Session) -> str:
    return schema_text(session.graph.catalog(), _SCHEMA_TOKENS)[0]


def _explore(session: Session, topic: str) -> str:
    about = f" Find what it contains about: {topic}." if topic else ""
    return (
        f"Explore the graph.{about} Work from the schema below: count the nodes of the important types, look at a few "
        "rows of each, follow edges, then summarise what you found and name the queries that you used.\n\n"
        f"{_schema(session)}"
    )


def _write_query(session: Session, question: str) -> str:
    return (
        f"Write a read query that answers: {question}\n\nRead the resource omnigraph://guide, use only types and "
        "properties of the schema below, run the query with the tool 'query', correct it by its error message if it "
        f"fails, and show the query and its rows.\n\n{_schema(session)}"
    )


def _propose_change(session: Session, change: str) -> str:
    branch = default_branch(session.graph.actor)
    return (
        f"Prepare this change of the graph: {change}\n\nUse the tools 'change' or 'load' on your own branch (by "
        f"default '{branch}'; 'branch' makes one for a topic), check the result with 'diff' from "
        f"'{session.graph.branch}' to the branch, and hand it in with 'propose'. Change nothing else.\n\n"
        f"{_schema(session)}"
    )


PROMPTS = (
    Prompt("explore", "Explore the graph, or what it says about a topic.", "topic", "The topic.", False, _explore),
    Prompt("write_query", "Write a query that answers a question.", "question", "The question.", True, _write_query),
    Prompt(
        "propose_change",
        "Prepare a change on a branch and propose it.",
        "change",
        "The change in words.",
        True,
        _propose_change,
        writes=True,
    ),
)


def session_prompts(session: Session) -> list[Prompt]:
    """Return the prompts of a session; those of changes only with `write`."""
    return [prompt for prompt in PROMPTS if session.settings.write or not prompt.writes]


def find_prompt(session: Session, name: str) -> Prompt | None:
    """Return the prompt of a name; None if the session has none."""
    return next((prompt for prompt in session_prompts(session) if prompt.name == name), None)
