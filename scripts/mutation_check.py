"""Check that the tests notice faults: change one line of the source at a time and run them.

`python scripts/mutation_check.py --seed 7 --count 20` draws lines of the packages at random, replaces an operator, a
constant or a branch in each, and runs the tests of the changed package, then those of `make test`, then the rest, until
one fails. It works in a copy of the repository and prints a line per mutation with the first suite that fails.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/omnigraph")
PACKAGES = ("engine", "versioning", "operations", "policy")
COPIED = ("src", "tests", "scripts", "docs", "examples", "bench", "web", "pyproject.toml", "README.md", "CHANGELOG.md")
LIMIT_S = 3600
_COMPARISONS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}


@dataclass(frozen=True)
class Mutation:
    """A replacement within one line of a file."""

    path: Path
    line: int
    start: int
    end: int
    text: str

    def of(self, source: str) -> str:
        """Return the source with the replacement. Offsets count bytes, as those of `ast` do."""
        lines = source.encode().splitlines(keepends=True)
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.start] + self.text.encode() + line[self.end :]
        return b"".join(lines).decode()


def mutations(path: Path, source: str) -> Iterator[Mutation]:
    """Yield the mutations of a file: comparisons, `and` and `or`, `not`, whole numbers, truth values."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Compare(left=left, ops=[operator], comparators=[right]) if type(operator) in _COMPARISONS:
                if left.end_lineno == right.lineno and left.end_col_offset is not None:
                    text = f" {_COMPARISONS[type(operator)]} "
                    yield Mutation(path, right.lineno, left.end_col_offset, right.col_offset, text)
            case ast.BoolOp(op=operator, values=[left, right, *_]):
                if left.end_lineno == right.lineno and left.end_col_offset is not None:
                    text = " or " if isinstance(operator, ast.And) else " and "
                    yield Mutation(path, right.lineno, left.end_col_offset, right.col_offset, text)
            case ast.UnaryOp(op=ast.Not(), operand=operand) if node.lineno == operand.lineno:
                yield Mutation(path, node.lineno, node.col_offset, operand.col_offset, "")
            case ast.Constant(value=bool() | int() as value) if node.end_col_offset is not None:
                text = repr(not value) if isinstance(value, bool) else repr(value + 1)
                yield Mutation(path, node.lineno, node.col_offset, node.end_col_offset, text)


def drawn(seed: int, count: int) -> list[Mutation]:
    """Draw mutations: a file at random by its number of mutations, so that every line has the same chance."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / SOURCE / package).rglob("*.py"))]
    every = [each for path in paths for each in mutations(path.relative_to(ROOT), path.read_text(encoding="utf-8"))]
    random.Random(seed).shuffle(every)
    return [*islice(filter(is_change, every), count)]


def is_change(mutation: Mutation) -> bool:
    """True if the result is another program. Python 3.11 has wrong offsets in formatted strings."""
    source = (ROOT / mutation.path).read_text(encoding="utf-8")
    try:
        return ast.dump(ast.parse(mutation.of(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


def fails(folder: Path, *arguments: str) -> bool:
    """Run tests of a copy until one fails; return True if one does, or if they do not end."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "--dist", "loadgroup", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder / "src"), "CI": "true"}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=LIMIT_S, check=False)
    except subprocess.TimeoutExpired:
        return True
    return done.returncode not in (0, 5)


def first_failure(folder: Path, mutation: Mutation, *, rest: bool) -> str:
    """Return the first suite that notices a mutation."""
    file = folder / mutation.path
    source = file.read_text(encoding="utf-8")
    file.write_text(mutation.of(source), encoding="utf-8")
    try:
        mirrored = Path("tests/unit") / mutation.path.relative_to(SOURCE).parent
        if (folder / mirrored).is_dir() and fails(folder, "--suite", "core", str(mirrored)):
            return "package"
        if fails(folder, "--suite", "core"):
            return "core"
        return "rest" if rest and fails(folder, "--suite", "rest") else "none"
    finally:
        file.write_text(source, encoding="utf-8")


def main() -> None:
    """Run the check."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--rest", action="store_true", help="run the rest of the tests for survivors of 'make test'")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for entry in COPIED:
            if (ROOT / entry).is_dir():
                shutil.copytree(ROOT / entry, folder / entry, ignore=shutil.ignore_patterns("node_modules"))
            else:
                shutil.copy(ROOT / entry, folder)
        for mutation in drawn(arguments.seed, arguments.count):
            changed = mutation.of((ROOT / mutation.path).read_text(encoding="utf-8")).splitlines()[mutation.line - 1]
            suite = first_failure(folder, mutation, rest=arguments.rest)
            print(f"{suite:8} {mutation.path}:{mutation.line}: {changed.strip()}", flush=True)


if __name__ == "__main__":
    main()
