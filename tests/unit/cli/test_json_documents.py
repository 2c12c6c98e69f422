"""Golden JSON documents of every command, compared byte for byte.

Ids, times, hashes, sizes and cursors are replaced by placeholders. To accept new documents, run with
`OMNIGRAPH_UPDATE_GOLDEN=1` and read the difference.
"""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from support.cli_session import FILES, SESSION, normalized
from support.commands import Cli

CASES = Path(__file__).parents[2] / "cases" / "documents"


def test_documents_are_unchanged(
    folder: Path, cli: Cli, clean_environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMNIGRAPH_EMBEDDINGS_MOCK", "1")
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8")
    printed = ""
    for line in SESSION.strip().splitlines():
        code, out, _ = cli(*shlex.split(line))
        assert out, line
        printed += f"$ omnigraph {line}\n{normalized(out)}" + (f"[{code}]\n" if code else "")
    path = CASES / "session.txt"
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        path.write_text(printed, encoding="utf-8")
    assert printed == path.read_text(encoding="utf-8")
