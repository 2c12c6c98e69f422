"""The reference of all commands, written from the program itself; `docs/cli.md` holds it, and a test compares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from omnigraph.cli.help import usage_word

START, END = "<!-- commands: written by the program -->", "<!-- end of commands -->"


def command_tree(command: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every command that is not hidden, with its words, groups before their members."""
    members = getattr(command, "commands", None)
    if path:
        yield path, command
    for name, member in (members or {}).items():
        if not member.hidden:
            yield from command_tree(member, (*path, name))


def reference() -> str:
    """The commands as Markdown, in the order of `omnigraph --help`."""
    from typer.main import get_command

    from omnigraph.cli.invocation import EVERYWHERE_OPTIONS
    from omnigraph.cli.main import app

    lines: list[str] = []
    for path, command in command_tree(get_command(app)):
        lines += _section(path, command, EVERYWHERE_OPTIONS)
    return "\n".join(lines) + "\n"


def _section(path: tuple[str, ...], command: Any, shared: frozenset[str]) -> list[str]:
    title = f"omnigraph {' '.join(path)}"
    help_ = [paragraph.strip() for paragraph in (command.help or "").split("\n\n")]
    lines = [f"### {title}", "", " ".join(help_[0].split()), ""]
    if getattr(command, "commands", None):
        return lines
    for paragraph in help_[1:]:
        if paragraph.startswith("omnigraph "):
            examples = [line.strip() for line in paragraph.splitlines()]
            lines += ["```sh", *examples, "```", ""]
        else:
            lines += [" ".join(paragraph.split()), ""]
    words = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    options = [parameter for parameter in command.params if parameter.param_type_name == "option"]
    usage = " ".join(usage_word(parameter) for parameter in words)
    lines += [f"`{title} [OPTIONS]{' ' + usage if usage else ''}`", ""]
    rows = [(f"`{usage_word(parameter)}`", parameter.help or "") for parameter in words]
    rows += [
        (", ".join(f"`{spelling}`" for spelling in _spellings(option)), option.help or "")
        for option in options
        if not option.hidden and not shared & set(option.opts) and "--help" not in option.opts
    ]
    if rows:
        lines += ["| | |", "|---|---|", *(f"| {_escaped(left)} | {_escaped(right)} |" for left, right in rows), ""]
    return lines


def _spellings(option: Any) -> list[str]:
    metavar = "" if option.is_flag else f" {option.metavar or option.name.upper()}"
    return [*(f"{name}{metavar}" for name in option.opts), *option.secondary_opts]


def _escaped(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", text)
