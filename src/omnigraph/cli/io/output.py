"""What goes to stdout, and the one-line remarks that go to stderr."""

from __future__ import annotations

import json
import sys
from typing import Any

from omnigraph.cli.io.colours import colours


def json_text(document: Any) -> str:
    """A JSON document, indented by two."""
    return json.dumps(document, indent=2, ensure_ascii=False)


def print_json(document: Any) -> None:
    """One JSON document and a newline."""
    print(json_text(document))


def remark(kind: str, text: str) -> None:
    """`note: …`, `warning: …`: never part of a result."""
    print(colours(sys.stderr).diagnostic(f"{kind}: {text}"), file=sys.stderr)


def plural(count: int, word: str, plural_form: str | None = None) -> str:
    """`1 query`, `2 queries`."""
    return f"{count} {word if count == 1 else plural_form or word + 's'}"


def utc(microseconds: int) -> str:
    """A commit's time as people and machines read it: RFC 3339, UTC."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(microseconds / 1_000_000, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"
