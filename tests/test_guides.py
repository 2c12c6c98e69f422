"""Run the pages: write files, replay sessions, execute Python, from top to bottom.

    ```pg file=people.pg         any block with `file=` is written into the folder of the page
    ```console                   a session; the output must equal the text (see support/sessions.py, terminal.py)
    ```python                    executed; blocks of a page share their names
    ```ipython                   a cell with magics, executed by IPython with the same names
    ```py                        a fragment; not executed

`docs/cli.md` also holds the generated command reference. To accept new output, run the tests with
`OMNIGRAPH_UPDATE_GOLDEN=1` and read the difference.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from typer.main import get_command

from omnigraph.cli.main import run
from omnigraph.cli.program import build_program
from omnigraph.cli.reference import END, START, command_tree, reference
from support.ipython_shell import ipython_shell
from support.sessions import agrees, commands, with_signs
from support.terminal import Terminal

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ELSEWHERE = {"guide.md", "review.md", "spark.md"}  # test_guide.py, spark/test_spark_page.py
ELSEWHERE |= {"guides/langchain.md", "guides/llamaindex.md"}  # packages/*/tests/test_pages.py
PLAYED = re.compile(r"(?m)^```(?:console|python|ipython)\b")
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "examples").glob("*/README.md")),
    *sorted((ROOT / "skills").rglob("*.md")),
    *sorted(
        DOCS / name
        for name in {str(p.relative_to(DOCS)) for p in DOCS.rglob("*.md")} - ELSEWHERE
        if PLAYED.search((DOCS / name).read_text(encoding="utf-8"))
    ),
]
BLOCK = re.compile(r"(?ms)^```(\w*)([^\n]*)\n(.*?)^```$")
UPDATE = bool(os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"))


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_page_runs(path, tmp_path, monkeypatch, clean_environment):
    monkeypatch.chdir(tmp_path)
    for name in ("OMNIGRAPH_EMBED_PROVIDER",):
        monkeypatch.setenv(name, "")
    if path.is_relative_to(ROOT / "examples"):  # the page uses the files beside it
        shutil.copytree(path.parent, tmp_path, dirs_exist_ok=True)
        monkeypatch.setenv("OMNIGRAPH_EMBED_PROVIDER", "local")
        monkeypatch.setenv("OMNIGRAPH_EMBED_MODEL", "local-hashed-ngrams-v1")
    page = ModuleType("__page__")
    monkeypatch.setitem(sys.modules, page.__name__, page)  # where classes look for the names of annotations
    names = vars(page)
    text = path.read_text(encoding="utf-8")
    terminal = Terminal(tmp_path)

    def one(match: re.Match[str]) -> str:
        language, options, body = match.groups()
        file = re.search(r"\bfile=(\S+)", options)
        if file:
            Path(file[1]).parent.mkdir(parents=True, exist_ok=True)
            Path(file[1]).write_text(body, encoding="utf-8")
        elif language == "python":
            body_here = terminal.with_addresses(body)
            exec(compile(body_here, f"{path.name}:{text[: match.start()].count(chr(10)) + 1}", "exec"), names)
        elif language == "ipython":
            cell(body, names)
        elif language == "console":
            body = session(body, terminal, tmp_path, f"{path.name}:{text[: match.start()].count(chr(10)) + 1}")
        return f"```{language}{options}\n{body}```"

    with terminal, ipython_shell() if "```ipython" in text else nullcontext():
        played = BLOCK.sub(one, text)
    if UPDATE and played != text:
        path.write_text(played, encoding="utf-8")


def cell(body: str, names: dict[str, Any]) -> None:
    """Run a cell with the names of the page."""
    shell = InteractiveShell.instance()
    shell.user_ns = names
    shell.run_cell(body).raise_error()


def session(body: str, terminal: Terminal, folder: Path, where: str) -> str:
    """Replay a session and return its text, in update mode with the actual output."""
    lines: list[str] = []
    for command, expected in commands(body):
        printed = terminal.play(command).replace(f"{folder}/", "")
        fits = agrees(with_signs(printed, folder), with_signs(expected, folder))
        if not UPDATE:
            assert fits, f"{where}: $ {command}\n--- printed\n{printed}--- expected\n{expected}"
        shown = expected.strip("\n") if fits else "\n".join(line.rstrip() for line in printed.strip("\n").splitlines())
        lines.append(f"$ {command}\n{shown}\n" if shown else f"$ {command}\n")
    return "\n".join(lines)


# -- the reference of commands -----------------------------------------------------------------------


def test_command_reference_is_current():
    path = DOCS / "cli.md"
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(START)
    held, after = rest.split(END)
    if UPDATE:
        path.write_text(f"{before}{START}\n\n{reference()}{END}{after}", encoding="utf-8")
    else:
        assert held.strip() == reference().strip()


TREE = list(command_tree(get_command(build_program())))
LEAVES = [(path, command) for path, command in TREE if not getattr(command, "commands", None)]


def test_reference_lists_all_commands():
    assert len(LEAVES) >= 30


@pytest.mark.parametrize("path", [path for path, _ in TREE], ids=" ".join)
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_every_command_has_help(path, flag, capsys):
    assert run([*path, flag]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith(f"Usage: omnigraph {' '.join(path)} ")
    assert printed.err == ""


@pytest.mark.parametrize(("path", "command"), LEAVES, ids=[" ".join(path) for path, _ in LEAVES])
def test_every_argument_has_help(path, command):
    assert command.help
    for parameter in command.params:
        if not parameter.hidden and parameter.name != "help":
            assert parameter.help, f"{' '.join(path)}: {parameter.name} is not explained"


def test_every_option_named_in_a_page_exists():
    """A flag in a session or a table must be an option of some command."""
    known = {spelling for _, command in LEAVES for p in command.params for spelling in (*p.opts, *p.secondary_opts)}
    known |= {"--version", "--help", "-h", "-v"}
    for path in [ROOT / "README.md", ROOT / "llms.txt", *(ROOT / "skills").rglob("*.md"), *DOCS.rglob("*.md")]:
        for line in path.read_text(encoding="utf-8").splitlines():
            for words in re.findall(r"(?:omnigraph|og) [a-z][^`#|]*", line):
                for flag in re.findall(r"(?<=\s)(--?[a-z][a-z-]*)", words):
                    assert flag in known, f"{path.name}: {flag} in '{words}'"
