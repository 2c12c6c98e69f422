"""The query that a command runs: its text, its parameters and its graph, from options and aliases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli import completion
from omnigraph.cli.addresses import Address
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation, is_address
from omnigraph.cli.io.files import STDIN, read_text
from omnigraph.cli.io.params import gather
from omnigraph.config import Alias
from omnigraph.errors import InputError, ParameterError
from omnigraph.fast_dataclass import dataclass
from omnigraph.suggestions import listing

if TYPE_CHECKING:
    from omnigraph.query.syntax.ast import QueryDefinition

QueryFile = Annotated[
    str | None, typer.Option("--query", "-q", metavar="FILE", help="A file of queries (.gq); '-' reads stdin.")
]
QueryText = Annotated[
    str | None,
    typer.Option("-e", "--query-string", metavar="GQ", help="The query text; 'match { … } return { … }' is enough."),
]
AliasName = Annotated[
    str | None,
    typer.Option(
        "--alias",
        metavar="NAME",
        help="A query that omnigraph.yaml defines under this name.",
        autocompletion=completion.aliases,
    ),
]
QueryName = Annotated[
    str | None,
    typer.Option("--name", "-n", metavar="QUERY", help="The query to run; required if there are several."),
]
Params = Annotated[str | None, typer.Option("--params", metavar="JSON", help="The parameters, as a JSON object.")]
ParamsFile = Annotated[
    str | None,
    typer.Option("--params-file", metavar="FILE", help="The parameters, as a JSON file; '-' reads stdin."),
]
Assignments = Annotated[
    list[str] | None, typer.Option("-p", "--param", metavar="NAME=VALUE", help="One parameter; may be repeated.")
]
SchemaFile = Annotated[
    str | None, typer.Option("--schema", "-s", metavar="FILE", help="A schema (.pg), instead of a graph.")
]
PolicyBreakage = Annotated[
    bool, typer.Option("--allow-policy-breakage", help="Continue even if rules of the policy become invalid.")
]
QueryBreakage = Annotated[
    bool, typer.Option("--allow-query-breakage", help="Continue even if stored queries become invalid.")
]
DataLoss = Annotated[
    bool, typer.Option("--allow-data-loss", help="Permit drops of types and properties that have data.")
]
Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="NAME|URI|ARG",
        help="A stored query, if no other query is given, and the graph; with --alias, the arguments of the alias.",
    ),
]


@dataclass(frozen=True)
class QueryOptions:
    """The options that select a query and its parameters, as given."""

    file: str | None = None
    text: str | None = None
    alias: str | None = None
    name: str | None = None
    params: str | None = None
    params_file: str | None = None
    assignments: list[str] | None = None


@dataclass(frozen=True)
class QueryRequest:
    """A parsed query, its parameters and the address of its graph."""

    query: QueryDefinition
    source: str | Path
    params: dict[str, Any]
    address: Address
    alias: Alias | None

    @property
    def name(self) -> str:
        """The name of the query."""
        return self.query.name.text

    @property
    def format(self) -> str | None:
        """The format of the alias."""
        return self.alias.format if self.alias is not None else None


@dataclass(frozen=True)
class StoredRequest:
    """A stored query, its parameters and the address of its graph."""

    name: str
    params: dict[str, Any]
    address: Address
    alias: None = None
    format: None = None


def find_request(
    run: Invocation, options: QueryOptions, words: list[str] | None, *, changes: bool
) -> QueryRequest | StoredRequest:
    """Resolve the options of a command to a query, or to a stored query if no query is given; opens no graph."""
    if options.file is None and options.text is None and options.alias is None:
        _check_files(words or ())
        stored = _stored_request(run, options, list(words or ()))
        if stored is not None:
            return stored
    return find_query(run, options, words, changes=changes)


def _check_files(words: Iterable[str]) -> None:
    """Refuse a file of queries that is given as the name of a stored query."""
    for word in words:
        if word.endswith(".gq") and Path(word).is_file():
            raise UsageFault(f"'{word}' is a file of queries, not a stored query", hint=f"write -q {word}")


def _stored_request(run: Invocation, options: QueryOptions, words: list[str]) -> StoredRequest | None:
    """Return the request of the stored query that `--name` or the first argument names."""
    name = options.name
    if name is None and words and not is_address(words[0]) and not _is_assignment(words[0]):
        name = words.pop(0)
    if name is None:
        return None
    _take_address(run, words, None)
    # The types are those of the stored query: numbers keep their text until they are known.
    given = gather(
        {}, params=options.params, params_file=options.params_file, assignments=options.assignments or (), bare=True
    )
    return StoredRequest(name, given, run.address())


def find_query(run: Invocation, options: QueryOptions, words: list[str] | None, *, changes: bool) -> QueryRequest:
    """Resolve the options of a command to a query request; opens no graph."""
    words = list(words or ())
    if sum(given is not None for given in (options.file, options.text, options.alias)) != 1:
        raise UsageFault("give the NAME of a stored query, or exactly one of --query FILE, -e TEXT and --alias NAME")
    alias = _alias(run, options.alias, changes)
    _take_address(run, words, alias)
    file, name = (alias.query, alias.query_name or options.name) if alias else (options.file, options.name)
    source = _source(run, file, options.text)
    query = pick_from(source, name, changes=changes)
    declared = declared_types(query)
    given = gather(
        declared,
        params=options.params,
        params_file=options.params_file,
        assignments=options.assignments or (),
        alias=alias,
        words=words,
        bare=query.is_bare,
    )
    return QueryRequest(query, source, given, run.address(alias.graph if alias else None), alias)


def _alias(run: Invocation, name: str | None, changes: bool) -> Alias | None:
    alias = run.config.get_alias(name) if name is not None else None
    if alias is not None and alias.changes != changes:
        mine = "change" if changes else "read"
        raise InputError(
            f"alias '{alias.name}' is for '{alias.command}', not for '{mine}'",
            code="alias_command",
            hint=f"omnigraph {alias.command} --alias {alias.name}",
        )
    return alias


def _take_address(run: Invocation, words: list[str], alias: Alias | None) -> None:
    """Remove the address of the graph from the words, if it is among them."""
    if words and (alias is None or not (run.has_address or alias.graph)):
        run.uri = words.pop(0)
    if words and alias is None:
        raise UsageFault(f"unexpected argument '{words[0]}'; parameters are given as -p name=value")
    if run.uri is not None and alias is None and _is_assignment(run.uri):
        raise UsageFault(f"'{run.uri}' is not a graph; parameters are given as -p {run.uri}")


def _is_assignment(word: str) -> bool:
    """True if a word has the form NAME=VALUE."""
    return re.match(r"\$?[A-Za-z_]\w*=", word) is not None


def _source(run: Invocation, file: str | None, text: str | None) -> str | Path:
    """Return the text of the queries, or the path of their file."""
    if file is None:
        return text or ""
    return read_text(STDIN) if file == STDIN else run.config.find_query(file)


def pick_from(source: str | Path, name: str | None, *, changes: bool) -> QueryDefinition:
    """Return the named or only query of a text or file; it must be a mutation if `changes` is true, else a read."""
    from omnigraph.query.compile import pick_query
    from omnigraph.query.syntax.parser import parse_queries

    tree = parse_queries(source) if isinstance(source, str) else parse_queries(read_text(str(source)), str(source))
    if name is None and len(tree.queries) > 1:
        names = listing(query.name.text for query in tree.queries)
        raise InputError(
            f"there are several queries: {names}", code="query_name_needed", hint="choose one with --name NAME"
        )
    query = pick_query(tree, name)
    if query.is_mutation != changes:
        what, right = ("is a read query", "read") if changes else ("is a mutation query", "change")
        raise InputError(
            f"query '{query.name.text}' {what}", code="wrong_command", hint=f"run it with 'omnigraph {right}'"
        )
    return query


@contextmanager
def parameter_hints() -> Iterator[None]:
    """Add a hint on the syntax of parameters to parameter errors without a hint."""
    try:
        yield
    except ParameterError as error:
        error.hint = error.hint or "parameters are given as -p name=value, or all at once as --params '{…}'"
        raise


def declared_types(query: QueryDefinition) -> dict[str, str]:
    """Return the parameters of a query and their types as written."""
    return {param.name.text: _written_type(param) for param in query.params}


def _written_type(param: Any) -> str:
    name = f"[{param.type_name.text}]" if param.is_list else str(param.type_name.text)
    return f"{name}?" if param.nullable else name
