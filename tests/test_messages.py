"""Golden messages of common mistakes.

Each file in `cases/messages` holds one mistake; the file beside it holds the exact output. Queries are checked with the
library example. To accept new wording, run the tests with `OMNIGRAPH_UPDATE_GOLDEN=1` and read the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph.errors import CompileError
from omnigraph.query.compile import compile_query
from omnigraph.schema.check import compile_schema

CASES = Path(__file__).parent / "cases"
LIBRARY = compile_schema((CASES / "examples" / "library.pg").read_text())
MISTAKES = sorted(path for path in (CASES / "messages").iterdir() if path.suffix in (".pg", ".gq"))


def compile_case(path: Path) -> None:
    if path.suffix == ".pg":
        compile_schema(path.read_text(), path.name)
    else:
        compile_query(LIBRARY, path.read_text(), source_name=path.name)


def printed(path: Path) -> str:
    with pytest.raises(CompileError) as caught:
        compile_case(path)
    return f"{caught.value}\n"


@pytest.mark.parametrize("path", MISTAKES, ids=lambda path: path.name)
def test_message(path):
    expected = path.with_suffix(".expected.txt")
    if os.environ.get("OMNIGRAPH_UPDATE_GOLDEN"):
        expected.write_text(printed(path))
    assert printed(path) == expected.read_text()


def test_every_golden_file_has_a_case():
    expected = {path.name.removesuffix(".expected.txt") for path in (CASES / "messages").glob("*.expected.txt")}
    assert expected == {path.stem for path in MISTAKES}


def test_every_message_states_problem_and_position():
    for path in MISTAKES:
        for block in path.with_suffix(".expected.txt").read_text().split("\n\n"):
            headline, place, line, carets, *hint = block.rstrip("\n").split("\n")
            assert headline.split(" error: ")[0] in ("parse", "type", "catalog"), path.name
            assert place.startswith(f"  --> {path.name}:"), path.name
            assert " | " in line, path.name
            assert carets.strip(" |^") == "", path.name
            assert [one.split(": ")[0] for one in hint] in ([], ["hint"]), path.name
