"""`llms.txt` and the skills for coding agents: links lead to files, named commands exist, the front matter is valid.

`test_docs` compiles the code of the skills, `test_guides` replays their sessions.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from typer.main import get_command

from omnigraph.cli.program import build_program
from omnigraph.cli.reference import command_tree

ROOT = Path(__file__).parents[1]
INDEX = ROOT / "llms.txt"
SKILLS = sorted((ROOT / "skills").glob("*/SKILL.md"))
COMMANDS = {" ".join(path) for path, _ in command_tree(get_command(build_program()))}
GROUPS = {name.partition(" ")[0] for name in COMMANDS if " " in name}


def test_links_of_the_index_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)[^)]*\)", INDEX.read_text(encoding="utf-8"))
    assert len(links) > 20
    for link in links:
        assert (ROOT / link).is_file(), link


def test_the_index_has_the_form_of_llms_txt():
    lines = INDEX.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "# OmniGraph"
    assert lines[2].startswith("> ")
    for line in lines[lines.index("## Agents") :]:
        assert not line or line.startswith(("## ", "- [")), line


@pytest.mark.parametrize("path", [INDEX, *SKILLS], ids=lambda path: str(path.relative_to(ROOT)))
def test_named_commands_exist(path):
    found = re.findall(r"(?:`|\$ )omnigraph ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?", path.read_text(encoding="utf-8"))
    assert found
    for command, second in found:
        assert command in COMMANDS, command
        if command in GROUPS and f"{command} {second}" not in COMMANDS:
            # 'mcp GRAPH' is a command of a group with a default.
            assert command == "mcp", f"{command} {second}"


@pytest.mark.parametrize("path", SKILLS, ids=lambda path: path.parent.name)
def test_front_matter(path):
    head, rest = path.read_text(encoding="utf-8").removeprefix("---\n").split("\n---\n", 1)
    members = yaml.safe_load(head)
    assert members["name"] == path.parent.name
    assert re.fullmatch(r"[a-z][a-z0-9-]{0,63}", members["name"])
    assert 40 <= len(members["description"]) <= 1024
    assert len(rest.splitlines()) < 500
    for topic in ("schema", "lint", "branch", "merge", "policy"):
        assert topic in rest.lower()
