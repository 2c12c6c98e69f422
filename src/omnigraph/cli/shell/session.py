"""Execution of shell input: a query, a mutation, or a command that starts with a colon.

A session is independent of the terminal: text in, lines out. An error ends the current input, not the session.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from omnigraph.cli.io.change_output import change_lines, property_lines, shown
from omnigraph.cli.io.formats import ReadTarget, text_lines
from omnigraph.cli.io.output import commit_note, plural, utc
from omnigraph.cli.io.params import read_untyped
from omnigraph.cli.io.points import point
from omnigraph.cli.shell.statements import WORDS, is_word
from omnigraph.config_keys import FORMATS
from omnigraph.errors import CompileError, InputError, OmniGraphError, hint_for
from omnigraph.graph import Graph
from omnigraph.query.compile import pick_query
from omnigraph.query.inference import free_variables
from omnigraph.query.syntax.ast import QueryDefinition
from omnigraph.query.syntax.parser import parse_queries
from omnigraph.scalar_types.written_value import read_word
from omnigraph.schema.catalog import Catalog
from omnigraph.suggestions import did_you_mean
from omnigraph.text_table import TableStyle, cell

Lines = Iterator[str]
_DIFF_MOST = 200


class EndSession(Exception):
    """Raised to end the session."""


@dataclass
class Session:
    """A graph, the branch or point to read, and the output settings."""

    graph: Graph
    style: TableStyle = field(default_factory=TableStyle)
    format: str = "table"
    timing: bool = True
    at: str | None = None
    params: dict[str, Any] = field(default_factory=dict)
    file: Path | None = None
    failures: int = 0
    """The number of inputs that failed."""

    @property
    def prompt(self) -> str:
        """The prompt: the graph and the branch or point."""
        name = self.graph.uri.rstrip("/").rpartition("/")[2]
        return f"{name}:{self.at or self.graph.branch}> "

    @property
    def catalog(self) -> Catalog:
        """The schema at the current branch or point."""
        return self.graph.catalog(at=point(self.at))

    def queries(self) -> list[str]:
        """Return the names of the queries in the opened file."""
        return [query.name.text for query in self._read_file().queries] if self.file else []

    def run(self, text: str) -> Lines:
        """Run one input and yield its output lines."""
        text = text.strip()
        if not text.startswith(":"):
            text = text.rstrip("; \t\r\n")
        if not text:
            return
        try:
            if text.startswith(":"):
                yield from self._command(text[1:])
            elif is_word(text):
                yield from self._command(WORDS[text.lower()])
            else:
                yield from self._query(text, None)
        except CompileError as error:
            self.failures += 1
            yield from f"error: {error.render('shell')}".splitlines()
        except OmniGraphError as error:
            self.failures += 1
            yield f"error: {error.message}"
            hint = hint_for(error.hint, "shell")
            if hint:
                yield f"hint: {hint}"

    # -- queries ---------------------------------------------------------------------------------

    def _query(self, source: str | Path, name: str | None, given: Mapping[str, Any] | None = None) -> Lines:
        query = _pick(source, name)
        params = self._params(query) | dict(given or {})
        started = time.perf_counter()
        if query.is_mutation:
            yield from self._change(source, query.name.text, params)
        else:
            result = self.graph.query(source, query.name.text, params, at=point(self.at))
            target = ReadTarget(None, self.at) if self.at else ReadTarget(self.graph.branch)
            yield from text_lines(result, target, self.format, self.style)
        if self.timing:
            yield f"({(time.perf_counter() - started) * 1000:.0f} ms)"

    def _params(self, query: QueryDefinition) -> dict[str, Any]:
        """Return the values of `:set` for the parameters of a query."""
        names = free_variables(query) if query.is_bare else {param.name.text for param in query.params}
        return {name: value for name, value in self.params.items() if name in names}

    def _change(self, source: str | Path, name: str, params: Mapping[str, Any]) -> Lines:
        if self.at is not None:
            raise InputError("a past commit cannot be changed", hint="':at now' returns to the head of the branch")
        result = self.graph.mutate(source, name, dict(params))
        if result.rows.columns:
            yield from text_lines(result.rows, ReadTarget(self.graph.branch), self.format, self.style)
        counted = f"{plural(result.affected_nodes, 'node')}, {plural(result.affected_edges, 'edge')}"
        yield f"{counted} affected on {self.graph.branch}"
        if result.commit_id:
            yield f"commit {result.commit_id}"

    # -- commands --------------------------------------------------------------------------------

    def _command(self, line: str) -> Lines:
        name, _, rest = line.strip().partition(" ")
        command = COMMANDS.get(ABBREVIATIONS.get(name, name))
        if command is None:
            raise InputError(
                f"there is no command ':{name}'", hint=did_you_mean(name, COMMANDS, prefix=":") or "':help' lists them"
            )
        return command.run(self, rest.strip())

    def help_(self, _: str) -> Lines:
        yield "A query runs when its braces are closed and 'match { … }' has its 'return { … }'. 'insert …' runs too."
        yield "A blank line or ';' ends a query whose braces are closed. A line that starts with ':' ends any query."
        yield ""
        for name, command in COMMANDS.items():
            yield f"  {':' + name + ' ' + command.words:<28}{command.help}"

    def quit_(self, _: str) -> Lines:
        raise EndSession

    def branch(self, text: str) -> Lines:
        verb, words = _verb(text, ("create", "list", "delete"))
        if verb == "create":
            name, start = _words(words, ":branch create NAME [FROM]", least=1, most=2, default=self._here)
            if start in self.graph.branches():
                self.graph.branch_create(name, start)
            else:
                self.graph.branch_create(name, at=point(start))
            yield f"branch {name} created at {start}"
            text = name
        elif verb == "delete":
            (name,) = _exactly(words, ":branch delete NAME", 1)
            self.graph.branch_delete(name)
            yield f"branch {name} deleted"
            return
        if verb == "list" or not text:
            for known in self.graph.branches():
                yield f"{'*' if known == self.graph.branch and not self.at else ' '} {known}"
            return
        self.graph = self.graph.on(text)
        self.at = None
        yield f"on branch {text}"

    @property
    def _here(self) -> str:
        """The branch or point that queries read."""
        return self.at or self.graph.branch

    def at_(self, text: str) -> Lines:
        if text in ("", "now", "head"):
            self.at = None
            yield f"at the head of {self.graph.branch}"
            return
        snapshot = self.graph.snapshot(at=point(text))
        self.at = text
        yield f"at commit {snapshot.commit_id}, {utc(snapshot.commit.created_us)}; ':at now' returns to the branch"

    def diff(self, text: str) -> Lines:
        words = text.split()
        if not words or len(words) > 2:
            raise InputError("':diff' takes one point or two", hint="':diff main' compares main with the current point")
        before, after = words[0], words[1] if len(words) == 2 else self._here
        count = 0
        found = self.graph.diff(point(before), point(after))
        yield from (f"schema: {step}" for step in found.schema_steps)
        yield from (f"alias: {line}" for line in found.aliases)
        for change in islice(found, _DIFF_MOST + 1):
            count += 1
            if count > _DIFF_MOST:
                yield f"… more than {_DIFF_MOST} changes; 'omnigraph diff' shows them all"
                return
            yield from change_lines(change)
        yield plural(count, "change")

    def load(self, text: str) -> Lines:
        file, mode = _words(text, ":load FILE [merge|append|overwrite]", least=1, most=2, default="merge")
        if self.at is not None:
            raise InputError("a past commit cannot be changed", hint="':at now' returns to the head of the branch")
        result = self.graph.load(str(Path(file).expanduser()), mode=mode)
        for key, rows in sorted(result.tables):
            yield f"{key} {plural(rows, 'row')}"
        yield from result.notes
        yield f"commit {result.commit_id}" if result.commit_id else "nothing was loaded"

    def merge(self, text: str) -> Lines:
        source, into = _words(text, ":merge BRANCH [INTO]", least=1, most=2, default=self.graph.branch)
        result = self.graph.merge(source, into=into)
        yield f"{result.outcome}: {source} into {into}"
        yield from (f"schema: {step}" for step in result.schema_steps)

    def tag(self, text: str) -> Lines:
        verb, words = _verb(text, ("create", "list", "delete"))
        if verb == "delete":
            (name,) = _exactly(words, ":tag delete NAME", 1)
            self.graph.tag_delete(name)
            yield f"tag {name} deleted"
            return
        if verb == "list" or not text:
            for known in self.graph.tags():
                yield f"{known.name}  {known.commit_id}  {utc(known.created_us)}"
            return
        usage = ":tag create NAME [POINT]"
        name, at = _words(words if verb else text, usage, least=1, most=2, default=self._here)
        made = self.graph.tag_create(name, at=point(at))
        yield f"tag {made.name} at commit {made.commit_id}"

    def explain(self, text: str) -> Lines:
        source, name = self._named(text)
        yield from self.graph.explain(source, name, at=point(self.at)).splitlines()

    def profile(self, text: str) -> Lines:
        source, name = self._named(text)
        params = self._params(_pick(source, name))
        yield from self.graph.profile(source, name, params, at=point(self.at)).splitlines()

    def _named(self, text: str) -> tuple[str | Path, str | None]:
        """Return a query text, or the opened file and a query name."""
        if not text:
            raise InputError("no query was given", hint="give its text, or the name of a query in the opened file")
        if " " not in text and self.file is not None:
            return self.file, text
        return text, None

    def schema(self, name: str) -> Lines:
        if not name:
            yield from self.graph.snapshot(at=point(self.at)).schema.source.splitlines()
            return
        catalog = self.catalog
        found = catalog.nodes.get(name) or catalog.edges.get(name)
        if found is None:
            raise InputError(f"there is no type '{name}'", hint=did_you_mean(name, [*catalog.nodes, *catalog.edges]))
        edge = catalog.edges.get(name)
        yield f"{found.kind} {name}" + (f": {edge.from_type} -> {edge.to_type}" if edge else "")
        for property_ in found.properties.values():
            yield f"  {property_.name}: {property_.type}"
        for other in catalog.edges.values():
            if found.kind == "node" and name in (other.from_type, other.to_type):
                yield f"  {other.name}: {other.from_type} -> {other.to_type}"

    def tables(self, _: str) -> Lines:
        for key, table in self.graph.snapshot(at=point(self.at)).tables.items():
            yield f"{key:<30} {table.pin.row_count:>12,} rows"

    def commits(self, text: str) -> Lines:
        for commit in self.graph.commits(limit=_number(text or "10")):
            parts = [commit.id, utc(commit.created_us), f"{commit.branch}@{commit.manifest_version}"]
            yield "  ".join([*parts, *commit_note(commit)])

    def history(self, text: str) -> Lines:
        type_name, id_ = _two(text, ":history TYPE ID")
        for change in self.graph.history(type_name, id_, at=point(self.at)):
            parts = [change.commit.id, utc(change.commit.created_us), change.op]
            yield "  ".join([*parts, *commit_note(change.commit)])
            yield from (f"  {line}" for line in property_lines(change.before, change.after, change.properties))

    def blame(self, text: str) -> Lines:
        type_name, id_ = _two(text, ":blame TYPE ID")
        for blame in self.graph.blame(type_name, id_, at=point(self.at)):
            if blame.property == "id":
                continue
            value = shown({blame.property: blame.value}, blame.property)
            yield f"{blame.property:<16}  {blame.commit.id}  {blame.commit.actor or '-':<12}  {value}"

    def set_(self, text: str) -> Lines:
        for word in shlex.split(text):
            name, equals, value = word.partition("=")
            if not equals:
                raise InputError(f"'{word}' is not an assignment", hint="write ':set name=value'")
            self.params[name.removeprefix("$")] = read_untyped(value)
        for name, value in self.params.items():
            yield f"${name} = {cell(value)}"

    def open_(self, text: str) -> Lines:
        if not text:
            raise InputError("no file was given", hint="':open queries.gq'")
        path = Path(text).expanduser()
        if not path.is_file():
            raise InputError(f"there is no file '{text}'", code="no_such_file")
        self.file = path
        yield f"{text}: {', '.join(self.queries())}"

    def run_(self, text: str) -> Lines:
        words = shlex.split(text)
        if self.file is None or not words:
            raise InputError("no query was given", hint="':open queries.gq', then ':run NAME param=value …'")
        query = pick_query(self._read_file(), words[0])
        types = {param.name.text: param.type_name.text for param in query.params if not param.is_list}
        given = {}
        for word in words[1:]:
            name, equals, value = word.partition("=")
            if not equals:
                raise InputError(f"'{word}' is not an assignment", hint="write name=value")
            given[name] = read_word(value, types.get(name))
        yield from self._query(self.file, words[0], given)

    def _read_file(self) -> Any:
        assert self.file is not None
        return parse_queries(self.file.read_text(encoding="utf-8-sig"), str(self.file))

    def format_(self, text: str) -> Lines:
        if text not in FORMATS:
            raise InputError(f"there is no format '{text}'", hint=f"the formats are {', '.join(FORMATS)}")
        self.format = text
        yield f"output format: {text}"

    def timing_(self, text: str) -> Lines:
        self.timing = text == "on" if text in ("on", "off") else not self.timing
        yield f"timing is {'on' if self.timing else 'off'}"


def _pick(source: str | Path, name: str | None) -> QueryDefinition:
    text = source if isinstance(source, str) else source.read_text(encoding="utf-8-sig")
    return pick_query(parse_queries(text, str(source) if isinstance(source, Path) else "<shell>"), name)


def _number(text: str) -> int:
    if not text.isdecimal():
        raise InputError(f"'{text}' is not a number")
    return int(text)


def _words(text: str, usage: str, *, least: int, most: int, default: str) -> tuple[str, str]:
    words = shlex.split(text)
    if not least <= len(words) <= most:
        raise InputError(f"expected {least} or {most} arguments", hint=f"write '{usage}'")
    return words[0], words[1] if len(words) > 1 else default


def _exactly(text: str, usage: str, count: int) -> list[str]:
    words = shlex.split(text)
    if len(words) != count:
        raise InputError(f"expected {plural(count, 'argument')}, got {len(words)}", hint=f"write '{usage}'")
    return words


def _verb(text: str, verbs: Sequence[str]) -> tuple[str | None, str]:
    """Split a leading verb such as `create` from the remaining words."""
    first, _, rest = text.partition(" ")
    return (first, rest.strip()) if first in verbs else (None, text)


def _two(text: str, usage: str) -> tuple[str, str]:
    first, _, second = text.partition(" ")
    if not second.strip():
        raise InputError("expected 2 arguments", hint=f"write '{usage}'")
    return first, second.strip()


@dataclass(frozen=True)
class ShellCommand:
    """A command of the shell."""

    run: Callable[[Session, str], Lines]
    words: str
    help: str


COMMANDS: dict[str, ShellCommand] = {
    "help": ShellCommand(Session.help_, "", "show this list"),
    "branch": ShellCommand(
        Session.branch, "[NAME|create NAME]", "list the branches, switch to one, or create one here"
    ),
    "at": ShellCommand(Session.at_, "POINT", "read at a commit id, version or time; ':at now' returns to the branch"),
    "diff": ShellCommand(Session.diff, "FROM [TO]", "show the differences between two points"),
    "merge": ShellCommand(Session.merge, "BRANCH [INTO]", "merge a branch into the current one or another"),
    "load": ShellCommand(Session.load, "FILE [MODE]", "load a file: merge (default), append or overwrite"),
    "tag": ShellCommand(Session.tag, "[create NAME [POINT]]", "list the tags, or create one"),
    "commits": ShellCommand(Session.commits, "[N]", "show the newest commits"),
    "history": ShellCommand(Session.history, "TYPE ID", "show every change of a node or edge"),
    "blame": ShellCommand(Session.blame, "TYPE ID", "show which commit last set each property"),
    "schema": ShellCommand(Session.schema, "[TYPE]", "show the schema or one type"),
    "tables": ShellCommand(Session.tables, "", "show every table and its row count"),
    "explain": ShellCommand(Session.explain, "QUERY", "show the plan of a query"),
    "profile": ShellCommand(Session.profile, "QUERY", "run a query and report each step"),
    "open": ShellCommand(Session.open_, "FILE", "open a file of queries"),
    "run": ShellCommand(Session.run_, "NAME [P=V]…", "run a query of the opened file"),
    "set": ShellCommand(Session.set_, "NAME=VALUE…", "set parameters of later queries"),
    "format": ShellCommand(Session.format_, "FORMAT", ", ".join(FORMATS)),
    "timing": ShellCommand(Session.timing_, "[on|off]", "show the run time of queries"),
    "quit": ShellCommand(Session.quit_, "", "end the session (also Ctrl-D)"),
}
ABBREVIATIONS = {"h": "help", "?": "help", "b": "branch", "q": "quit", "exit": "quit", "branches": "branch"}


def lines_of(session: Session, inputs: Iterable[str]) -> Lines:
    """Run inputs in order until one ends the session."""
    for text in inputs:
        try:
            yield from session.run(text)
        except EndSession:
            return
