"""The scripts of docs/recipes, run with the real tools in environments of their own (`make recipes`)."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in (ROOT / "docs" / "recipes").glob("*.md") if path.name != "README.md")
ENVIRONMENTS = ROOT / "build" / "recipes"
FILE = re.compile(r"(?ms)^```\w+ file=(\S+)\n(.*?)^```$")
COMMANDS = re.compile(r"(?ms)^```sh\n(.*?)^```$")
WAIT_S = 500


def commands(page: str) -> list[str]:
    """Return the commands of a page, except the installation."""
    lines = [line for block in COMMANDS.findall(page) for line in block.splitlines()]
    return [line for line in lines if not line.startswith("pip install ")]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_page_installs_the_tested_versions(path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    (install,) = re.findall(r"(?m)^pip install (.*)$", page)
    assert (ROOT / "tests" / "recipes" / f"{path.stem}.txt").read_text().split() == re.findall(
        r"'([\w-]+==[^']+)'", install
    )
    assert commands(page)
    for name, code in FILE.findall(page):
        if name.endswith(".py"):
            compile(code, name, "exec")
    assert f"[{path.stem}" in (path.parent / "README.md").read_text(encoding="utf-8").lower()


@pytest.mark.long
@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_recipe_runs(path: Path, tmp_path: Path) -> None:
    programs = ENVIRONMENTS / path.stem / "bin"
    if not programs.is_dir():
        pytest.skip(f"{programs.parent} does not exist: 'make recipes' creates it")
    page = path.read_text(encoding="utf-8")
    for name, text in FILE.findall(page):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    own = {"HOME": tmp_path, "AIRFLOW_HOME": tmp_path / "airflow", "DAGSTER_HOME": "", "DO_NOT_TRACK": "1"}
    off = {"RUNTIME__DLTHUB_TELEMETRY": "false", "DBT_SEND_ANONYMOUS_USAGE_STATS": "false"}
    off |= {"AIRFLOW__CORE__LOAD_EXAMPLES": "False", "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path)}
    places = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(tmp_path)}
    environment = {"LANG": "C.UTF-8", **{name: str(value) for name, value in own.items() if value}, **off, **places}
    for command in commands(page):
        done = subprocess.run(
            ["bash", "-ec", command],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WAIT_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
