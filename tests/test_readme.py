"""The code of the README runs as pasted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_python_block_runs(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    done = subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "song.title | artist.name |" in done.stdout
    assert "Tide       | Ada" in done.stdout
    assert "Dust" not in done.stdout.split("artists on the branch")[0]
    assert "3 artists on the branch, 2 on main" in done.stdout
    assert "rank    $song by nearest($song.feel, $feel), best first" in done.stdout


def test_graph_of_the_python_block_is_served(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    subprocess.run([sys.executable, "-c", block], cwd=tmp_path, capture_output=True, check=True)
    section = text.split("\n## Serve it\n")[1].split("\n## ")[0]
    serve, request = re.findall(r"```sh\n(.*?)```", section, re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {**os.environ, "PATH": path, "OMNIGRAPH_SERVER_BIND": "127.0.0.1:0"}
    with subprocess.Popen(
        ["bash", "-c", f"exec {serve}"], cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True
    ) as server:
        timer = threading.Timer(60, server.kill)
        timer.start()
        try:
            assert server.stdout is not None
            address, token, _ = (server.stdout.readline().strip() for _ in range(3))
            command = request.replace("127.0.0.1:8080", address.partition("=")[2])
            environ["TOKEN"] = token.removeprefix("token: ")
            done = subprocess.run(["bash", "-c", command], env=environ, capture_output=True, text=True, check=False)
        finally:
            timer.cancel()
            server.kill()
    assert '"rows":[{"a.name":"Ada"},{"a.name":"Ben"},{"a.name":"Cleo"}]' in done.stdout, done.stderr


def test_install_table_names_every_extra():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## Install\n")[1].split("\n## ")[0]
    named = set(re.findall(r"(?m)^\| `(\w+)` \|", section))
    assert named == set(project["optional-dependencies"]) - {"bench", "dev"}
    (contents,) = project["optional-dependencies"]["all"]
    (row,) = re.findall(r"(?m)^\| `all` \| (.*?) \|", section)
    assert set(re.findall(r"`(\w+)`", row)) == set(re.findall(r"\w+", contents)) - {"omnigraph"}


def test_commands_are_make_targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"make {target} " in readme
        assert re.search(rf"^{target}: ", makefile, re.MULTILINE)
