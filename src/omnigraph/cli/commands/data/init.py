"""`omnigraph init`: create a graph and a configuration file for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

from omnigraph.cli.addresses import Address
from omnigraph.cli.commands.model.schema import warn_of_annotations
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation, Json, takes_config
from omnigraph.cli.io.files import read_text
from omnigraph.cli.io.load_input import ArrayDelimiter, DateFormat, Delimiter, Null
from omnigraph.cli.io.output import print_json, remark
from omnigraph.config import FILE_NAME
from omnigraph.errors import InputError
from omnigraph.redaction import redact_uri

_SCAFFOLD = """\
project:
  name: {name}

graphs:
  local:
    uri: {uri}

cli:
  graph: local
  branch: main
  output_format: table
  table_max_column_width: 80
  table_cell_layout: truncate

query:
  roots: [queries, .]

# Named queries: 'omnigraph read --alias person Ana'
# aliases:
#   person:
#     command: read
#     query: people.gq
#     name: person_by_name
#     args: [name]

# A file of NAME=value lines, for API keys; the environment takes precedence.
# auth:
#   env_file: ./.env.omni
"""


@takes_config
def init_command(
    run: Invocation,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="[SCHEMA] URI", help="The schema (.pg), instead of --schema, and a folder or s3://bucket/prefix."
        ),
    ],
    schema: Annotated[
        str | None, typer.Option("--schema", "-s", metavar="FILE", help="The schema (.pg); '-' reads stdin.")
    ] = None,
    from_: Annotated[
        list[str] | None,
        typer.Option(
            "--from",
            metavar="[NAME=]FILE[:A->B]",
            help="Infer the schema from a table, and load it: a .csv, .tsv, .parquet or .arrow file, or a glob; may be "
            "repeated. A and B are the columns of the ends of a table of edges; TABLE.A names the table of its nodes. "
            "neo4j:DIR is a folder of Neo4j admin CSV, graphml:FILE a GraphML file.",
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the inferred schema; write nothing.")] = False,
    load: Annotated[bool, typer.Option("--load/--no-load", help="Load the tables of --from.")] = True,
    null: Null = None,
    delimiter: Delimiter = None,
    date_format: DateFormat = None,
    array_delimiter: ArrayDelimiter = ";",
    merge_properties: Annotated[
        Literal["conflict", "combine"] | None,
        typer.Option(
            "--merge-properties",
            metavar="conflict|combine",
            help="Declare in the schema whether edits of different properties of one row conflict in a merge, which is "
            "the default, or combine.",
        ),
    ] = None,
    scaffold: Annotated[
        bool, typer.Option("--scaffold/--no-scaffold", help=f"Write {FILE_NAME} if it does not exist.")
    ] = True,
    as_json: Json = False,
) -> None:
    """Create an empty graph from a schema, or a loaded one from tables.

    omnigraph init people.pg ./my.omni

    omnigraph init --from people.csv --from knows.csv:a->b ./my.omni

    omnigraph init --from neo4j:export/ ./my.omni
    """
    from omnigraph.graph_open import init
    from omnigraph.schema.format import declare_merge

    if from_:
        from omnigraph.cli.io.init_tables import TableInputs, init_from_tables

        given, uri = _optional_schema(words, schema)
        address = _storage(uri)
        words_of_null = tuple(null or ())
        tables = TableInputs(
            tuple(from_), words_of_null, delimiter, date_format, array_delimiter, load, dry_run, merge_properties
        )
        init_from_tables(run, address, given, tables, _scaffold if scaffold else None, as_json=as_json)
        return
    if dry_run or null or delimiter or date_format:
        raise UsageFault("--dry-run, --null, --delimiter and --date-format belong to --from FILE")
    schema, uri = _schema_and_address(words, schema)
    address = _storage(uri)
    text = read_text(schema)
    _check(text, schema)
    if merge_properties is not None:
        text = declare_merge(text, merge_properties, schema)
    init(uri, text, actor=run.actor, environ=run.environ)
    path = _scaffold(address) if scaffold else None
    if as_json:
        print_json({"uri": uri, "config_path": str(path) if path else None, "config_created": path is not None})
        return
    print(f"created graph {uri}")
    if path is not None:
        print(f"created {path}")
    elif scaffold:
        _remark_on_default(run, uri)


def _storage(uri: str) -> Address:
    address = Address(uri, "the URI")
    if address.is_server:
        raise InputError(
            f"a graph is created in storage; '{redact_uri(uri)}' is a server",
            code="needs_storage",
            hint="give a folder or s3://bucket/prefix",
        )
    return address


def _optional_schema(words: list[str], schema: str | None) -> tuple[str | None, str]:
    """Return the schema, if one is given beside tables, and the graph."""
    if schema is None and len(words) == 1 and not words[0].endswith(".pg"):
        return None, words[0]
    return _schema_and_address(words, schema)


def _schema_and_address(words: list[str], schema: str | None) -> tuple[str, str]:
    given = words if schema is None else [schema, *words]
    if len(given) != 2:
        raise UsageFault("give one schema and one graph: omnigraph init SCHEMA.pg URI, or --schema SCHEMA.pg URI")
    file, uri = given
    if schema is None and uri.endswith(".pg"):
        raise UsageFault(f"the graph comes last: omnigraph init {uri} {file}")
    return file, uri


def _remark_on_default(run: Invocation, uri: str) -> None:
    """Note that commands without an address still use another graph."""
    if run.has_address and not run.options.quiet:
        default = redact_uri(run.address().uri)
        remark("note", f"{FILE_NAME} is unchanged: commands without an address use {default}, not {redact_uri(uri)}")
        remark("note", f"give the address of the new graph in each command, or set 'cli.graph' in {FILE_NAME}")


def _check(text: str, name: str) -> None:
    """Compile the schema under its file name, for error positions; warn of annotations without effect."""
    from omnigraph.schema.check import compile_schema

    warn_of_annotations(compile_schema(text, name))


def _scaffold(address: Address) -> Path | None:
    """Write a configuration file for the new graph, unless one exists."""
    import yaml

    uri, folder = address.uri, Path()
    if address.is_local and "://" not in uri:
        graph = Path(uri)
        folder = graph.parent
        # The address is relative to the folder of the file.
        uri = uri if graph.is_absolute() or folder == Path() else f".{os.sep}{graph.name}"
    path = folder / FILE_NAME
    name = address.uri.rstrip("/").rpartition("/")[2].removesuffix(".omni") or "graph"
    text = _SCAFFOLD.format(name=_scalar(yaml.safe_dump(name)), uri=_scalar(yaml.safe_dump(uri)))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return None
    return path


def _scalar(document: str) -> str:
    return document.removesuffix("...\n").rstrip("\n")
