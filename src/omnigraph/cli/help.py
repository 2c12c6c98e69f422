"""Resolution and listing of commands."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from omnigraph.cli.errors import UsageFault
from omnigraph.cli.text_parameters import pass_text
from omnigraph.suggestions import did_you_mean

_ELSEWHERE = {
    "checkout": "every command takes the branch as --branch NAME; 'omnigraph branch create NAME' creates one",
    "switch": "every command takes the branch as --branch NAME; 'omnigraph branch create NAME' creates one",
    "commits": "'omnigraph log' shows the commits",
    "branches": "'omnigraph branch list' lists the branches",
    "tags": "'omnigraph tag list' lists the tags",
    "import": "'omnigraph load FILE --mode merge' loads files",
    "match": "'omnigraph read -e 'match { … } return { … }'' runs a query",
    "select": "'omnigraph read -e 'match { … } return { … }'' runs a query",
    "insert": "'omnigraph change -e 'insert …'' changes the graph",
    "update": "'omnigraph change -e 'update …'' changes the graph",
    "reset": "'omnigraph revert ID' undoes a commit",
}
"""Commands of other programs → the command to use."""


class UsageCommand(TyperCommand):
    """A command whose usage line shows its arguments as the reference does."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters and the option of the help."""
        return pass_text(super().get_params(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the options and the arguments of the usage line."""
        arguments = [parameter for parameter in self.get_params(ctx) if parameter.param_type_name == "argument"]
        return [self.options_metavar or "", *map(usage_word, arguments)]


def usage_word(parameter: Any) -> str:
    """Format an argument for a usage line; a metavar of several words is used unchanged."""
    name = parameter.metavar or parameter.name
    if " " in name:
        return str(name)
    name = name if parameter.required else f"[{name}]"
    return f"{name}..." if parameter.nargs == -1 else str(name)


def use_command_class(app: typer.Typer) -> None:
    """Give every command of a program the class `UsageCommand`."""
    for command in app.registered_commands:
        command.cls = UsageCommand
    for group in app.registered_groups:
        if group.typer_instance is not None:
            use_command_class(group.typer_instance)


def command_group(help: str) -> typer.Typer:
    """Return an empty group of commands, which shows its help if no command is given."""
    return typer.Typer(cls=Group, no_args_is_help=True, help=help, rich_markup_mode=None)


class Group(TyperGroup):
    """A group of commands whose error for an unknown command suggests the right one."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that the first argument names."""
        name = args[0]
        if not name.startswith("-") and not ctx.resilient_parsing and self.get_command(ctx, name) is None:
            raise UsageFault(f"there is no command '{ctx.command_path} {name}'", hint=self._hint(ctx, name), ctx=ctx)
        return super().resolve_command(ctx, args)

    def _hint(self, ctx: Any, name: str) -> str | None:
        found = {known: self.get_command(ctx, known) for known in self.list_commands(ctx)}
        visible = [known for known, command in found.items() if command is not None and not command.hidden]
        near = did_you_mean(name, visible)
        if near:
            return near
        if "create" in visible:
            return f"'{ctx.command_path} create {name}' creates one, '{ctx.command_path} list' lists them"
        if name in _ELSEWHERE and ctx.parent is None:
            return _ELSEWHERE[name]
        nested = [known for known in visible if name in getattr(found[known], "commands", ())]
        return "write " + " or ".join(f"'{ctx.command_path} {known} {name}'" for known in nested) if nested else None


class DefaultGroup(Group):
    """A group whose first command runs if no command is named: `mcp ./my.omni` is `mcp serve ./my.omni`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert the name of the first command, unless the arguments begin with a command or ask for help."""
        asks_help = bool(args) and args[0] in ctx.help_option_names
        if not asks_help and (not args or self.get_command(ctx, args[0]) is None):
            args = [self.list_commands(ctx)[0], *args]
        return super().parse_args(ctx, args)


class Program(Group):
    """The root group: commands in sections, and `query lint` as a synonym of `lint`."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters and the option of the help."""
        return pass_text(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolve `query lint` and `query check` to `lint`, any other `query` to `read`."""
        if args[:1] == ["query"] and args[1:2] in (["lint"], ["check"]):
            args = args[1:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write one list per section, in order of declaration."""
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
    """Return the first paragraph of the help text, not truncated."""
    return " ".join((command.short_help or command.help or "").split("\n\n")[0].split())
