"""The Python of the pages runs, from top to bottom; blocks with `file=` are written first."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from note_graphs import LOCAL

PACKAGE = Path(__file__).parents[1]
PAGES = [PACKAGE / "README.md", PACKAGE.parents[1] / "docs" / "guides" / "langchain.md"]
BLOCK = re.compile(r"(?ms)^```(\w*)([^\n]*)\n(.*?)^```$")


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.name)
def test_page_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in LOCAL.items():
        monkeypatch.setenv(name, value)
    text = page.read_text(encoding="utf-8")
    names: dict[str, object] = {"__name__": "page"}
    played = 0
    for match in BLOCK.finditer(text):
        language, options, body = match.groups()
        file = re.search(r"\bfile=(\S+)", options)
        if file:
            Path(file[1]).write_text(body, encoding="utf-8")
        elif language == "python":
            line = text[: match.start()].count("\n") + 1
            exec(compile("\n" * line + body, str(page), "exec"), names)
            played += 1
    assert played
