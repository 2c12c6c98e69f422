"""`omnigraph read` and `omnigraph change`: run one query of a file, a text or an alias."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import completion
from omnigraph.cli.config import Alias
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Address, Branch, Invocation, Json, Message, takes_graph_by_option
from omnigraph.cli.io.colours import PLAIN, colours
from omnigraph.cli.io.files import STDIN, read_text, writing
from omnigraph.cli.io.formats import ALL_FORMATS, BINARY_FORMATS, ReadTarget, text_lines, write_binary
from omnigraph.cli.io.output import json_text, plural, remark
from omnigraph.cli.io.pager import print_paged
from omnigraph.cli.io.params import gather
from omnigraph.cli.io.spark_options import Master, Remote, spark_options
from omnigraph.errors import InputError, ParameterError
from omnigraph.suggestions import closest, listing
from omnigraph.text_table import TableStyle, terminal_width

if TYPE_CHECKING:
    from omnigraph.engine.result.result import Result
    from omnigraph.query.syntax.ast import Query

File = Annotated[str | None, typer.Option("--query", "-q", metavar="FILE", help="The queries (.gq); '-' reads stdin.")]
Text = Annotated[
    str | None,
    typer.Option("-e", "--query-string", metavar="GQ", help="The query itself; 'match { … } return { … }' is enough."),
]
AliasName = Annotated[
    str | None,
    typer.Option(
        "--alias",
        metavar="NAME",
        help="A query with a short name in omnigraph.yaml.",
        autocompletion=completion.aliases,
    ),
]
Name = Annotated[
    str | None, typer.Option("--name", "-n", metavar="QUERY", help="Which query; needed when there are several.")
]
Params = Annotated[str | None, typer.Option("--params", metavar="JSON", help="The parameters, as a JSON object.")]
ParamsFile = Annotated[
    str | None, typer.Option("--params-file", metavar="FILE", help="The same from a file; '-' reads stdin.")
]
Assignments = Annotated[
    list[str] | None, typer.Option("-p", "--param", metavar="NAME=VALUE", help="One parameter; may be repeated.")
]
Words = Annotated[
    list[str] | None,
    typer.Argument(metavar="URI|ARG", help="The graph; behind --alias, the alias's arguments."),
]


Format = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="FORMAT",
        help=f"{', '.join(ALL_FORMATS)}.",
        autocompletion=completion.one_of(*ALL_FORMATS),
    ),
]
Out = Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="Write the rows to a file.")]


@dataclass(frozen=True)
class Asked:
    """One query, found and read, with its parameters and the graph it is for."""

    query: Query
    source: str | Path
    params: dict[str, Any]
    address: Address
    alias: Alias | None

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.query.name.text


@takes_graph_by_option
def read_command(
    run: Invocation,
    words: Words = None,
    query: File = None,
    text: Text = None,
    alias: AliasName = None,
    name: Name = None,
    params: Params = None,
    params_file: ParamsFile = None,
    assignments: Assignments = None,
    branch: Branch = None,
    snapshot: Annotated[
        str | None,
        typer.Option("--snapshot", "--at", metavar="POINT", help="A tag, commit id, version, time or branch."),
    ] = None,
    format_: Format = None,
    out: Out = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="ENGINE", help="memory, or spark for graphs larger than this machine.")
    ] = "memory",
    master: Master = None,
    remote: Remote = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.001, metavar="SECONDS", help="Give up after so long.")
    ] = None,
    page: Annotated[
        int | None, typer.Option("--page", min=1, metavar="N", help="Only so many rows, and the cursor of the next.")
    ] = None,
    after: Annotated[
        str | None, typer.Option("--after", metavar="CURSOR", help="With --page: go on behind an earlier page.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a read query and show its rows. 'query' is an equal name.

    omnigraph read -q people.gq -n adults -p age=18 ./my.omni
    """
    if branch is not None and snapshot is not None:
        raise UsageFault("--branch and --at (--snapshot) exclude each other")
    if after is not None and page is None:
        raise UsageFault("--after needs --page, which says how many rows")
    if engine not in ("memory", "spark"):
        raise UsageFault(f"there is no engine '{engine}'; the engines are memory and spark")
    asked = _ask(run, False, words, query, text, alias, name, params, params_file, assignments)
    chosen = _format(run, asked, format_, out, as_json)
    on = run.branch(branch, asked.alias.branch if asked.alias else None)
    where: dict[str, Any] = {"engine": engine, "spark": spark_options(engine, master, remote)}
    where |= {"page": page, "after": after}
    graph = run.open_to_ask(asked.address, branch=None if snapshot else on)
    with _hinting():
        result = graph.query(asked.source, asked.name, asked.params, at=point(snapshot), timeout=timeout, **where)
    target = ReadTarget(None, snapshot) if snapshot else ReadTarget(on)
    _write_rows(run, result, target, chosen, out)
    if result.next is not None and chosen not in ("json", "jsonl"):
        remark("next", result.next)


@takes_graph_by_option
def change_command(
    run: Invocation,
    words: Words = None,
    query: File = None,
    text: Text = None,
    alias: AliasName = None,
    name: Name = None,
    params: Params = None,
    params_file: ParamsFile = None,
    assignments: Assignments = None,
    branch: Branch = None,
    message: Message = None,
    if_commit: Annotated[
        str | None,
        typer.Option("--if-commit", metavar="ID", help="Only if the branch still is at this commit; else exit with 4."),
    ] = None,
    format_: Format = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Run a mutation query as one commit, and show the rows it returns. 'mutate' is an equal name.

    omnigraph change -q people.gq -n rename -p email=bo@x -p name=Bob ./my.omni
    """
    asked = _ask(run, True, words, query, text, alias, name, params, params_file, assignments)
    chosen = _format(run, asked, format_, out, as_json)
    on = run.branch(branch, asked.alias.branch if asked.alias else None)
    graph = run.open(asked.address, branch=on)
    with _hinting():
        result = graph.mutate(asked.source, asked.name, asked.params, message=message, if_commit=if_commit)
    returns = bool(result.rows.columns)
    if as_json or (returns and chosen == "json"):
        commit = graph.commit(result.commit_id).to_json() if result.commit_id else None
        counts = {"affected_nodes": result.affected_nodes, "affected_edges": result.affected_edges}
        rows = {"columns": result.rows.columns, "rows": result.rows.to_rows()} if returns else {}
        done = {"branch": on, "query_name": asked.name, **counts, "actor_id": run.actor, "commit": commit, **rows}
        with writing(out) as file:
            file.write(json_text(done).encode() + b"\n")
        return
    if returns:
        _write_rows(run, result.rows, ReadTarget(on), chosen, out)
    # Where rows are the answer, what else there is to say stands beside it.
    beside = sys.stderr if returns else sys.stdout
    counted = f"{plural(result.affected_nodes, 'node')}, {plural(result.affected_edges, 'edge')} affected"
    print(f"change {asked.name} branch={on}: {counted}", file=beside)
    if run.actor:
        print(f"actor: {run.actor}", file=beside)


def _format(run: Invocation, asked: Asked, format_: str | None, out: str | None, as_json: bool) -> str:
    """How rows are shown, and whether they can be."""
    if as_json and format_ is not None:
        raise UsageFault("--json and --format exclude each other")
    if format_ is not None and format_ not in ALL_FORMATS:
        raise UsageFault(f"there is no format '{format_}'; the formats are {', '.join(ALL_FORMATS)}")
    chosen: str = (
        "json" if as_json else format_ or (asked.alias and asked.alias.format) or run.config.get("cli.output_format")
    )
    if chosen in BINARY_FORMATS and out is None and sys.stdout.isatty():
        raise UsageFault(f"{chosen} is not for a terminal; add --out FILE or redirect stdout")
    return chosen


def _write_rows(run: Invocation, result: Result, target: ReadTarget, chosen: str, out: str | None) -> None:
    """The rows in the format that was chosen."""
    on_terminal = out is None and sys.stdout.isatty()
    lines = text_lines(result, target, chosen, table_style(run, on_terminal=on_terminal))
    if on_terminal and chosen not in BINARY_FORMATS:
        print_paged(lines)
        return
    with writing(out) as file:
        if chosen in BINARY_FORMATS:
            write_binary(result, chosen, file)
            return
        for line in lines:
            file.write(line.encode() + b"\n")


def table_style(run: Invocation, *, on_terminal: bool) -> TableStyle:
    """The layout of tables: the configured widths and, on a terminal, its width and colours."""
    paint = colours() if on_terminal else PLAIN
    return TableStyle(
        run.config.get("cli.table_max_column_width"),
        run.config.get("cli.table_cell_layout"),
        terminal_width() if on_terminal else None,
        paint.header,
        paint.muted,
    )


@contextmanager
def _hinting() -> Iterator[None]:
    """Say how a parameter is given, where the engine has no better idea."""
    try:
        yield
    except ParameterError as error:
        error.hint = error.hint or "parameters are given as -p name=value, or all at once as --params '{…}'"
        raise


def _ask(
    run: Invocation,
    changes: bool,
    words: list[str] | None,
    file: str | None,
    text: str | None,
    alias_name: str | None,
    name: str | None,
    params: str | None,
    params_file: str | None,
    assignments: list[str] | None,
) -> Asked:
    """Find the query and everything it needs; nothing is opened yet."""
    from omnigraph.query.inline import is_bare

    words = list(words or ())
    if sum(given is not None for given in (file, text, alias_name)) != 1:
        raise UsageFault("give exactly one of --query FILE, -e TEXT and --alias NAME")
    alias = run.config.get_alias(alias_name) if alias_name is not None else None
    if alias is not None and alias.changes != changes:
        mine = "change" if changes else "read"
        raise InputError(
            f"alias '{alias.name}' is for '{alias.command}', not for '{mine}'",
            code="alias_command",
            hint=f"omnigraph {alias.command} --alias {alias.name}",
        )
    if words and (alias is None or not (run.has_address or alias.graph)):
        run.uri = words.pop(0)
    if words and alias is None:
        raise UsageFault(f"'{words[0]}' is one word too many; parameters are given as -p name=value")
    if run.uri is not None and alias is None and _is_assignment(run.uri):
        raise UsageFault(f"'{run.uri}' is not a graph; parameters are given as -p {run.uri}")
    source, picked = _find_query(
        run, alias.query if alias else file, text, (alias and alias.query_name) or name, changes
    )
    declared = declared_types(picked)
    given = gather(
        declared,
        params=params,
        params_file=params_file,
        assignments=assignments or (),
        alias=alias,
        words=words,
        bare=picked.is_bare,
    )
    if is_bare(text or ""):
        _remark_on_unused(text or "", given)
        return Asked(picked, source, given, run.storage(alias.graph if alias else None), alias)
    for unknown in [name for name in given if name not in declared]:
        near = closest(unknown, declared)
        takes = f"it takes {listing(declared)}" if declared else "it takes none"
        remark(
            "warning",
            f"query '{picked.name.text}' has no parameter '{unknown}'; "
            + (f"did you mean '{near}'?" if near else takes),
        )
    return Asked(picked, source, given, run.storage(alias.graph if alias else None), alias)


def _is_assignment(word: str) -> bool:
    """True if a word has the form NAME=VALUE."""
    return re.match(r"\$?[A-Za-z_]\w*=", word) is not None


def _remark_on_unused(text: str, given: Mapping[str, Any]) -> None:
    """Warn of values that a query without a head does not mention; its parameters are the values that are given."""
    from omnigraph.lang.tokens import VAR, lex

    used = {token.text[1:] for token in lex(text).tokens if token.kind == VAR}
    for name in given:
        if name not in used:
            near = closest(name, used)
            remark("warning", f"the query does not use '${name}'" + (f"; did you mean '{near}'?" if near else ""))


def _find_query(
    run: Invocation, file: str | None, text: str | None, name: str | None, changes: bool
) -> tuple[str | Path, Query]:
    from omnigraph.query.compile import pick_query
    from omnigraph.query.syntax.parser import parse_queries

    source: str | Path
    if file is None or file == STDIN:
        source = read_text(STDIN) if file == STDIN else text or ""
        tree = parse_queries(source)
    else:
        source = run.config.find_query(file)
        tree = parse_queries(read_text(str(source)), str(source))
    if name is None and len(tree.queries) > 1:
        names = listing(query.name.text for query in tree.queries)
        raise InputError(
            f"there are several queries: {names}", code="query_name_needed", hint="say which one: --name NAME"
        )
    picked = pick_query(tree, name)
    if picked.is_mutation != changes:
        if changes:
            what, right = "reads and changes nothing", "read"
        else:
            what, right = "changes the graph", "change"
        raise InputError(
            f"query '{picked.name.text}' {what}", code="wrong_command", hint=f"run it with 'omnigraph {right}'"
        )
    return source, picked


def declared_types(query: Query) -> dict[str, str]:
    """The parameters of a query and their types, as they are written."""
    return {param.name.text: _written(param) for param in query.params}


def _written(param: Any) -> str:
    """The declared type of a parameter, as far as reading a word needs it."""
    name = f"[{param.type_name.text}]" if param.is_list else str(param.type_name.text)
    return f"{name}?" if param.nullable else name


def point(text: str | None) -> str | int | datetime | None:
    """A point in history as it is written: a version number, a time, or else an id or name."""
    if text is None:
        return None
    if text.isdecimal():
        return int(text)
    if len(text) >= 10 and text[4:5] == "-" and text[7:8] == "-":
        try:
            time = datetime.fromisoformat(text)
        except ValueError:
            return text
        return time if time.tzinfo else time.astimezone()
    return text


def commit_point(text: str) -> str | int | datetime:
    """A commit as it is written: its id or any other point."""
    found = point(text)
    assert found is not None
    return found
