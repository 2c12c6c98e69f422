"""Shell completion: the candidates that a completion script receives."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from omnigraph.cli.commands.admin.completion import SHELLS
from omnigraph.cli.completion import VARIABLE
from omnigraph.cli.main import run

SCHEMA = "node Person {\n    name: String @key\n}\n"
CONFIG = """
graphs: { lab: { uri: ./g.omni }, far: { uri: "s3://nowhere/x" } }
cli: { graph: lab }
aliases:
  people: { command: read, query: q.gq }
"""


@pytest.fixture
def proposed(tmp_path, monkeypatch, capsys, clean_environment):
    (tmp_path / "s.pg").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    assert run(["init", "--schema", "s.pg", "g.omni", "--no-scaffold"]) == 0
    assert run(["branch", "create", "review/x", "g.omni"]) == 0
    assert run(["tag", "create", "release-1", "g.omni"]) == 0
    Path("omnigraph.yaml").write_text(CONFIG)

    def ask(line: str) -> list[str]:
        capsys.readouterr()
        with monkeypatch.context() as asking:
            asking.setenv(VARIABLE, "complete_bash")
            asking.setenv("COMP_WORDS", line)
            asking.setenv("COMP_CWORD", str(len(line.split(" ")) - 1))
            assert run([]) == 0
        printed = capsys.readouterr()
        assert printed.err == ""
        return printed.out.split()

    return ask


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("omnigraph bra", ["branch"]),
        ("omnigraph branch ", ["create", "delete", "list", "merge", "show", "update"]),
        ("omnigraph branch merge r", ["review/x"]),
        ("omnigraph branch delete ", ["main", "review/x"]),
        ("omnigraph read --branch ", ["main", "review/x"]),
        ("omnigraph diff re", ["release-1", "review/x"]),
        ("omnigraph read --alias ", ["people"]),
        ("omnigraph snapshot --target ", ["far", "lab"]),
        ("omnigraph snapshot --target far --branch ", []),
        ("omnigraph load --mode m", ["merge"]),
        ("omnigraph read --format c", ["csv"]),
        ("omnigraph completion z", ["zsh"]),
        ("omnigraph cleanup --keep 3 --conf", ["--config", "--confirm"]),
    ],
)
def test_candidates(proposed, line, words):
    assert sorted(proposed(line)) == words


def test_names_of_the_operator_file(proposed, monkeypatch):
    home = Path("home")
    home.mkdir(exist_ok=True)
    monkeypatch.setenv("OMNIGRAPH_HOME", str(home.absolute()))
    (home / "config.yaml").write_text(
        "servers: { room: { url: 'https://graph.example' }, rest: { url: 'https://rest.example' } }\n"
        "profiles: { late: { server: room } }\naliases: { loans: { server: room, query: q } }\n"
    )
    assert sorted(proposed("omnigraph status --server r")) == ["rest", "room"]
    assert proposed("omnigraph login ro") == ["room"]
    assert proposed("omnigraph status --profile ") == ["late"]
    assert proposed("omnigraph alias ") == ["loans"]
    assert proposed("omnigraph read --server room --branch ") == [], "a server is not asked"


def test_unreadable_graph_gives_no_candidates(proposed):
    Path("omnigraph.yaml").write_text("cli: [")
    assert proposed("omnigraph read --branch ") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts(shell, capsys):
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert script.count(VARIABLE) >= 2
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True, timeout=20)
    assert run(["completion", "tcsh"]) == 2


@pytest.mark.skipif(not shutil.which("bash"), reason="needs bash")
def test_script_in_bash(proposed, tmp_path):
    """A real bash accepts the script."""
    program = f"{sys.executable} -m omnigraph"
    script = f"""
    omnigraph() {{ {program} "$@"; }}
    export -f omnigraph
    eval "$(omnigraph completion bash)"
    complete -p omnigraph
    """
    done = subprocess.run(["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert "complete -o default -F _omnigraph_completion omnigraph" in done.stdout
