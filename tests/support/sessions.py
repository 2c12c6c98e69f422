"""Sessions at a terminal, played: a line `$ command`, then all that it prints, then `[1]` if the exit code is not 0.

Ids, times and durations differ from run to run; both sides are compared with signs in their places. A line `…` in what
is expected stands for any lines.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from omnigraph.cli.main import run

SIGNS = (
    (re.compile(r"\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b"), "‹id›"),
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3,6}Z"), "‹time›"),
    (re.compile(r"in \d+\.\d s"), "in ‹n› s"),
    (re.compile(r"\(\d+ ms\)"), "(‹n› ms)"),
    (re.compile(r"(?m)^cursor: \S+$"), "cursor: ‹cursor›"),
    (re.compile(r"\bog_(?:[\w-]{40,}|…)"), "‹token›"),
    (re.compile(r'"elapsed_ms":[\d.]+'), '"elapsed_ms":‹n›'),
    (re.compile(r'"(next|cursor)":"[^"]+"'), r'"\1":"‹cursor›"'),
    (re.compile(r"(?m)^id: \S+$"), "id: ‹cursor›"),
    (re.compile(r'"(created|authored)_at":\d+'), r'"\1_at":‹time›'),
)
ANY = "…"


def commands(session: str) -> Iterator[tuple[str, str]]:
    """Each command of a session with its expected output; a backslash continues a command."""
    parts = re.split(r"(?m)^\$ ((?:.*\\\n)*.*)\n?", session)
    assert not parts[0].strip(), f"a session begins with a command, not with {parts[0]!r}"
    yield from zip(parts[1::2], parts[2::2], strict=True)


def with_signs(text: str, folder: Path | None = None) -> str:
    """The text with variable parts replaced by placeholders and trailing blanks removed."""
    if folder is not None:
        text = text.replace(str(folder), "‹here›")
    for pattern, sign in SIGNS:
        text = pattern.sub(sign, text)
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def play(command: str) -> str:
    """The output of one command, both streams in order."""
    words = shlex.split(command.replace("\\\n", " "), comments=True)
    if words[0] == "cd":
        os.chdir(words[1])
        return ""
    if words[0] == "export":
        name, _, value = words[1].partition("=")
        os.environ[name] = value
        return ""
    if words[0] == "cat":
        return Path(words[1]).read_text(encoding="utf-8")
    assert words[0] in ("omnigraph", "og"), command
    out: Path | None = None
    if len(words) > 2 and words[-2] == ">":
        out, words = Path(words[-1]), words[:-2]
    raw, stream = _stream()
    with redirect_stdout(stream), redirect_stderr(stream):
        code = run(words[1:])
    text = raw.getvalue().decode()
    if out is not None:
        out.write_text(text, encoding="utf-8")
        text = ""
    return text + (f"[{code}]\n" if code else "")


def streams(command: str) -> tuple[str, str]:
    """The stdout of one command without its line end, and its stderr."""
    raw, out = _stream()
    raw_errors, errors = _stream()
    with redirect_stdout(out), redirect_stderr(errors):
        code = run(shlex.split(command)[1:])
    assert code == 0, raw_errors.getvalue().decode()
    return raw.getvalue().decode().strip(), raw_errors.getvalue().decode()


def _stream() -> tuple[io.BytesIO, io.TextIOWrapper]:
    raw = io.BytesIO()
    return raw, io.TextIOWrapper(raw, encoding="utf-8", newline="\n", write_through=True)


def agrees(printed: str, expected: str) -> bool:
    """True if the output equals the expectation, in which `…` stands for any lines."""
    wanted = expected.strip("\n").split("\n")
    pattern = "".join(
        r"(?:.*\n)*" if line.strip() == ANY else re.escape(line) + r"\n" for line in wanted if line or len(wanted) > 1
    )
    return re.fullmatch(pattern, printed.strip("\n") + "\n" if printed.strip("\n") else "") is not None
