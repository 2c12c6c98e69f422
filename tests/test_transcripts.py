"""Golden terminal sessions: the demonstration and common mistakes.

Each file in `cases/transcripts` is a session. To accept new wording, run the tests with `OMNIGRAPH_UPDATE_GOLDEN=1` and
read the difference.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from support.sessions import commands, play, with_signs

CASES = Path(__file__).parent / "cases" / "transcripts"
SESSIONS = sorted(CASES.glob("*.txt"))


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem)
def test_session(path, tmp_path, monkeypatch, clean_environment):
    monkeypatch.chdir(tmp_path)
    session = path.read_text(encoding="utf-8")
    lines = [command for command, _ in commands(session)]
    assert len(lines) >= 10
    played = "\n".join(f"$ {line}\n{with_signs(play(line), tmp_path)}" for line in lines)
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        path.write_text(played, encoding="utf-8")
    else:
        assert played == session


def test_demonstration_suggests_the_replayed_commands():
    session = (CASES / "demo.txt").read_text(encoding="utf-8")
    typed = [command for command, _ in commands(session)]
    proposed = re.findall(r"(?m)^  (cd .*?|omnigraph .*?)\s*(?:#.*)?$", session.split("try:\n")[1].split("\n\n")[0])
    assert proposed.pop() == "omnigraph shell"
    assert typed[1 : len(proposed) + 1] == proposed
