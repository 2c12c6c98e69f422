"""What a terminal shows, line by line: the demonstration as it proposes itself, and the first hour's mistakes.

Each file in `cases/transcripts` is a session: a line `$ command`, then all that is printed, then `[1]` if the exit code
is not 0. Ids, times and durations are written as signs. To accept new wording, run the tests with
`OMNIGRAPH_UPDATE_GOLDEN=1` and read the difference.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from omnigraph.cli.main import run

CASES = Path(__file__).parent / "cases" / "transcripts"
SESSIONS = sorted(CASES.glob("*.txt"))
SIGNS = (
    (re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"), "‹id›"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"), "‹time›"),
    (re.compile(r"in \d+\.\d s"), "in ‹n› s"),
)


def typed(session: str) -> list[str]:
    return [line[2:] for line in session.splitlines() if line.startswith("$ ")]


def shown(line: str, folder: Path) -> str:
    """What one command prints, both streams in order."""
    words = shlex.split(line, comments=True)
    if words[0] == "cd":
        os.chdir(words[1])
        return ""
    assert words[0] == "omnigraph"
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", newline="\n", write_through=True)
    with redirect_stdout(stream), redirect_stderr(stream):
        code = run(words[1:])
    text = raw.getvalue().decode().replace(str(folder), "‹here›")
    for pattern, sign in SIGNS:
        text = pattern.sub(sign, text)
    # Blanks at the end of a line do not survive editors.
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    return text + (f"[{code}]\n" if code else "")


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_session(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith(("OMNIGRAPH_", "OPENAI_", "GEMINI_", "OPENROUTER_")) and name != "OMNIGRAPH_UPDATE_GOLDEN":
            monkeypatch.delenv(name)
    session = path.read_text(encoding="utf-8")
    lines = typed(session)
    assert len(lines) >= 10
    played = "\n".join(f"$ {line}\n{shown(line, tmp_path)}" for line in lines)
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == session


def test_the_demonstration_proposes_what_the_session_plays():
    session = (CASES / "demo.txt").read_text(encoding="utf-8")
    proposed = re.findall(r"(?m)^  (cd .*?|omnigraph .*?)\s*(?:#.*)?$", session.split("try:\n")[1].split("\n\n")[0])
    assert proposed.pop() == "omnigraph shell"
    assert [line.split("#")[0].strip() for line in typed(session)[1 : len(proposed) + 1]] == proposed
