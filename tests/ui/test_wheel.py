"""A wheel has the built page: `omnigraph ui` serves it from an installed package, without sources and without Node."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

import pytest

from omnigraph import ui
from support.language_server import session_answer

ROOT = Path(__file__).parents[2]
START = "import sys; from omnigraph.cli.entry import main; sys.exit(main())"
LINES_MAX = 20


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("OMNIGRAPH_WHEEL")
    if given:  # the wheel of a release
        return Path(given)
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, timeout=300, stdin=subprocess.DEVNULL)
    (found,) = folder.glob("*.whl")
    return found


def served(command: list[str], folder: Path, environment: dict[str, str]) -> Iterator[tuple[str, bytes]]:
    """Build the demo graph, serve it, and yield the name and content of each file of the page."""
    settings = {"PATH": "/usr/bin:/bin", "HOME": str(folder), **environment}
    demo = [*command, "demo", str(folder / "demo")]
    subprocess.run(demo, check=True, timeout=300, env=settings, cwd=folder, capture_output=True)
    start = [*command, "ui", str(folder / "demo" / "station.omni"), "--no-browser"]
    with subprocess.Popen(start, env=settings, cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            lines = (server.stdout.readline() for _ in range(LINES_MAX))
            address = next(found[0] for line in lines if (found := re.search(r"http://127\.0\.0\.1:\d+/ui/", line)))
            for name in ("", *sorted(path.name for path in ui.STATIC.iterdir() if path.name != ui.PAGE)):
                with urlopen(address + name, timeout=30) as answer:
                    yield name, answer.read()
        finally:
            server.terminate()


def check(files: Iterator[tuple[str, bytes]]) -> None:
    found = dict(files)
    assert b"<title>OmniGraph</title>" in found.pop("")
    assert found == {path.name: path.read_bytes() for path in ui.STATIC.iterdir() if path.name != ui.PAGE}


def test_an_unpacked_wheel_serves_the_page(wheel: Path, tmp_path: Path) -> None:
    with ZipFile(wheel) as packed:
        packed.extractall(tmp_path / "package")
    check(served([sys.executable, "-P", "-c", START], tmp_path, {"PYTHONPATH": str(tmp_path / "package")}))


@pytest.mark.long
def test_a_wheel_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    """The demo, the explorer and the language server of an installed wheel; the import time is printed."""
    venv.create(tmp_path / "env", with_pip=True)
    python = str(tmp_path / "env" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{wheel}[lsp]"], check=True, timeout=600)
    program = str(tmp_path / "env" / "bin" / "omnigraph")
    check(served([program], tmp_path, {}))
    assert "omnigraph" in session_answer([program, "lsp"], tmp_path)["serverInfo"]["name"].lower()
    seconds = [subprocess.check_output([python, "-c", IMPORT], text=True, cwd=tmp_path, timeout=60) for _ in range(3)]
    print(f"import omnigraph: {min(map(float, seconds)):.3f} s")  # noqa: T201 (a figure of the release)


IMPORT = "import time; t = time.perf_counter(); import omnigraph; print(time.perf_counter() - t)"
