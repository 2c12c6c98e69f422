"""Completion of words of the shell: its commands, and queries through `query.complete`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from omnigraph.query.complete import complete as complete_query
from omnigraph.schema.catalog import Catalog


@dataclass(frozen=True)
class CompletionWords:
    """Candidates other than those of the schema."""

    commands: Sequence[str] = ()
    branches: Callable[[], Iterable[str]] = tuple
    formats: Sequence[str] = ()
    queries: Callable[[], Iterable[str]] = tuple
    points: frozenset[str] = field(default_factory=frozenset)
    """Commands whose arguments are branches."""


def complete(text: str, catalog: Catalog, words: CompletionWords) -> tuple[str, list[str]]:
    """Return the incomplete word before the cursor and its completions."""
    if text.lstrip().startswith(":"):
        return _command(text.lstrip(), catalog, words)
    found = complete_query(text, len(text), catalog)
    return text[found.start : found.end], [each.text for each in found.candidates]


def _matching(partial: str, proposals: Iterable[str]) -> list[str]:
    found = {word for word in proposals if word.lower().startswith(partial.lower()) and word != partial}
    return sorted(found)


def _command(text: str, catalog: Catalog, words: CompletionWords) -> tuple[str, list[str]]:
    name, blank, rest = text[1:].partition(" ")
    if not blank:
        return f":{name}", _matching(f":{name}", [f":{command}" for command in words.commands])
    partial = rest.rpartition(" ")[2]
    if name in words.points:
        proposals: Iterable[str] = words.branches()
    elif name == "format":
        proposals = words.formats
    elif name == "run":
        proposals = words.queries()
    elif name in ("schema", "history", "blame"):
        proposals = [*catalog.nodes, *catalog.edges]
    else:
        proposals = ()
    return partial, _matching(partial, proposals)
