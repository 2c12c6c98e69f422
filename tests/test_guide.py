"""Run the tutorial pages from top to bottom."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parent.parent / "docs"


@pytest.mark.parametrize(("page", "blocks_min"), [("guide.md", 9), ("review.md", 9)])
def test_page_runs(tmp_path, page, blocks_min):
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) >= blocks_min
    script = "\n".join(blocks)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
