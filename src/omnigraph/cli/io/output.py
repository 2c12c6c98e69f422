"""Helpers for output: JSON documents on stdout, one-line notes on stderr, counts and times."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from omnigraph.cli.io.colours import colours
from omnigraph.cli.io.terminal_text import visible

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.versioning.model.manifest_objects import Commit
    from omnigraph.wire.commits import CommitDocument


def json_text(document: Any) -> str:
    """Format a JSON document, indented by two spaces."""
    from omnigraph.wire.document import plain

    return json.dumps(plain(document), indent=2, ensure_ascii=False)


def print_json(document: Any) -> None:
    """Print one JSON document and a newline."""
    print(json_text(document))


def remark(kind: str, text: str) -> None:
    """Print a line such as `note: …` or `warning: …` on stderr."""
    print(colours(sys.stderr).diagnostic(visible(f"{kind}: {text}")), file=sys.stderr)


def plural(count: int, word: str, plural_form: str | None = None) -> str:
    """Format a count with its noun: `1 query`, `2 queries`."""
    return f"{count} {word if count == 1 else plural_form or word + 's'}"


def utc(microseconds: int) -> str:
    """Format a commit time as RFC 3339 in UTC."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


def commit_note(commit: Commit) -> list[str]:
    """Return the actor of a commit, if any, and its message, else its kind."""
    return [part for part in (commit.actor, commit.message or commit.kind) if part]


def commit_document(graph: Graph, commit_id: str | None) -> CommitDocument | None:
    """Return the document of a commit; None if nothing was committed."""
    from omnigraph.wire.commits import CommitDocument

    return CommitDocument.of(graph.commit(commit_id).to_json()) if commit_id else None
