"""Hints have a text for each interface that shows them."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.cli.main import run
from omnigraph.errors import Hint, OmniGraphError, hint_for

SCHEMA = "node Person {\n    name: String @key\n}\n"
SOURCE = Path(og.__file__).parent


def test_hint_has_a_text_for_each_interface():
    hint = Hint("commits() lists them", cli="'omnigraph commit list' lists them", in_shell="':commits' lists them")
    assert hint == "commits() lists them"
    assert hint_for(hint, "cli") == "'omnigraph commit list' lists them"
    assert hint_for(hint, "shell") == "':commits' lists them"
    assert hint_for(Hint("a", cli="b"), "shell") == "b"
    assert hint_for("plain", "cli") == "plain"
    assert hint_for(None, "cli") is None


def test_hint_can_be_pickled():
    error = pickle.loads(pickle.dumps(OmniGraphError("no", hint=Hint("a", cli="b"))))
    assert (error.hint, hint_for(error.hint, "cli")) == ("a", "b")


def test_python_and_command_line_show_their_own_hint(tmp_path, monkeypatch, capsys, clean_environment):
    monkeypatch.chdir(tmp_path)
    graph = og.init("g.omni", SCHEMA)
    with pytest.raises(og.errors.NotFound) as caught:
        graph.snapshot(at=99)
    assert caught.value.hint == "commits() lists them"
    assert run(["diff", "main", "99", "g.omni"]) == 1
    assert "hint: 'omnigraph commit list' lists them" in capsys.readouterr().err


def test_python_hints_name_no_commands():
    """A hint that names a command or an option has a text for Python, except in `cli` and in the server it starts."""
    found = []
    for path in SOURCE.rglob("*.py"):
        if path.relative_to(SOURCE).parts[0] in ("cli", "server", "version.py"):
            continue
        for line in path.read_text(encoding="utf-8").splitlines():
            if re.search(r"""hint=f?["'].*('omnigraph [a-z]+|\W--[a-z]+)""", line):
                found.append(f"{path.relative_to(SOURCE)}: {line.strip()}")
    assert found == []
