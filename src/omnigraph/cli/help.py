"""How the program's commands are found and listed."""

from __future__ import annotations

from typing import Any

from typer.core import TyperGroup


class Program(TyperGroup):
    """The root: commands in sections, and `query lint` beside `query`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """`query lint` and `query check` mean `lint`; any other `query` is a read."""
        if args[:1] == ["query"] and args[1:2] in (["lint"], ["check"]):
            args = args[1:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """One list per section, in the order in which the commands were declared."""
        sections: dict[str, list[tuple[str, str]]] = {}
        width = max(len(name) for name in self.list_commands(ctx))
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if command is None or command.hidden:
                continue
            title = getattr(command, "rich_help_panel", None) or "Commands"
            sections.setdefault(title, []).append((name.ljust(width), _summary(command)))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)


def _summary(command: Any) -> str:
    """The first paragraph of a command's help, never truncated."""
    return " ".join((command.short_help or command.help or "").split("\n\n")[0].split())
