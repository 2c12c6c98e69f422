"""The code of the README runs as pasted."""

from __future__ import annotations

import re
import subprocess
import sys
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


def test_commands_are_make_targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for target in ("demo", "test"):
        assert f"make {target} " in readme
        assert re.search(rf"^{target}: ", makefile, re.MULTILINE)
