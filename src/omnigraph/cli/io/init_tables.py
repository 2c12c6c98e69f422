"""`omnigraph init --from`: infer a schema from tables, print it and ask, create the graph and load the tables."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from omnigraph.cli.addresses import Address
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.invocation import Invocation
from omnigraph.cli.io.files import read_text
from omnigraph.cli.io.output import plural, print_json, remark
from omnigraph.cli.io.progress import progress_bar
from omnigraph.errors import InputError
from omnigraph.redaction import redact_uri

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.operations.inference.draft import SchemaDraft
    from omnigraph.operations.load.load_result import LoadResult, Reject

SCHEMA_FILE = "schema.pg"
REJECTS_FILE = "rejects.jsonl"
_FROM = re.compile(r"(?:(?P<name>[A-Za-z][A-Za-z0-9_]*)=)?(?P<path>.+?)(?::(?P<ends>[^:>]+->[^:>]+))?", re.DOTALL)

Scaffold = Callable[[Address], Path | None]


@dataclass(frozen=True)
class TableInputs:
    """The options of `init` about tables."""

    files: tuple[str, ...]
    null: tuple[str, ...]
    delimiter: str | None
    date_format: str | None
    array_delimiter: str
    load: bool
    dry_run: bool
    merge_properties: str | None = None


def init_from_tables(
    run: Invocation,
    address: Address,
    schema: str | None,
    inputs: TableInputs,
    scaffold: Scaffold | None,
    *,
    as_json: bool,
) -> None:
    """Create a graph from tables. An inferred schema is written, printed and confirmed; a given one is used."""
    from omnigraph.graph_open import init
    from omnigraph.operations.inference.draft import SchemaDraft
    from omnigraph.schema.format import declare_merge

    draft = _infer(run, inputs)
    if schema is None and inputs.merge_properties is not None:
        declared = declare_merge(str(draft), inputs.merge_properties)
        draft = SchemaDraft(declared, draft.tables, draft.table_format, draft.graph_files)
    written: Path | None = None
    if schema is None:
        if inputs.dry_run:
            _show(draft, as_json=as_json)
            return
        written = _write_schema(address, draft)
        if not as_json:
            print(draft, flush=True)
        _confirm(run, address, written, as_json=as_json)
    elif inputs.dry_run:
        raise UsageFault("--dry-run prints an inferred schema; leave out the schema")
    text = str(draft) if schema is None else read_text(schema)
    if schema is not None and inputs.merge_properties is not None:
        text = declare_merge(text, inputs.merge_properties, schema)
    graph = init(address.uri, text, actor=run.actor, environ=run.environ)
    config = scaffold(address) if scaffold is not None else None
    result = _load(run, graph, draft, written, as_json=as_json) if inputs.load else None
    _report(address, written, config, result, as_json=as_json)


def _infer(run: Invocation, inputs: TableInputs) -> SchemaDraft:
    from omnigraph.operations.inference.graph_files import graph_inputs, infer_graph
    from omnigraph.operations.inference.infer import edges, infer_tables
    from omnigraph.operations.inference.table_files import tables_by_file
    from omnigraph.table_format import TableFormat

    format = TableFormat.of(inputs.delimiter, inputs.null, inputs.date_format, array_delimiter=inputs.array_delimiter)
    graph = graph_inputs(inputs.files)
    if graph is not None:
        return infer_graph(graph[1], graph[0], format, run.environ)
    found: dict[str, Any] = {}
    for text in inputs.files:
        name, path, ends = _parse(text)
        tables = {name: path} if name is not None else tables_by_file([path], run.environ)
        if ends is not None and len(tables) > 1:
            raise UsageFault(f"'{text}': the ends of edges belong to one file, and {len(tables)} files match")
        for one, data in tables.items():
            if one in found:
                raise UsageFault(f"two tables are named '{one}'; name one of them: --from NAME={path}")
            found[one] = data if ends is None else (data, ends)
    for name, given in found.items():
        if isinstance(given, tuple):
            (from_, src), (to, dst) = (_named_end(end, found) for end in given[1])
            found[name] = edges(given[0], src, dst, from_=from_, to=to)
    return infer_tables(found, format, run.environ)


def _parse(text: str) -> tuple[str | None, str, tuple[str, str] | None]:
    """Return the name, the file and the ends of `NAME=FILE:A->B`; a text that is the name of a file is that file."""
    match = _FROM.fullmatch(text)
    if match is None or Path(text).exists():
        return None, text, None
    source, _, target = (match["ends"] or "").partition("->")
    return match["name"], match["path"], (source.strip(), target.strip()) if match["ends"] else None


def _named_end(text: str, tables: Mapping[str, Any]) -> tuple[str | None, str]:
    """Return the table and the column of `TABLE.COLUMN`; a text without the name of a table is a column."""
    table, sign, column = text.partition(".")
    return (table, column) if sign and table in tables else (None, text)


def _write_schema(address: Address, draft: SchemaDraft) -> Path:
    """Write the draft beside a local graph, else to the current folder; another schema there is not replaced."""
    folder = Path(address.uri).parent if address.is_local and "://" not in address.uri else Path()
    path = folder / SCHEMA_FILE
    if path.exists() and path.read_text(encoding="utf-8") != str(draft):
        raise InputError(
            f"'{path}' exists and is another schema",
            code="file_exists",
            hint=f"use it: omnigraph init {path} {redact_uri(address.uri)} --from …; or move it",
        )
    try:
        path.write_text(str(draft), encoding="utf-8", newline="\n")
    except OSError as error:
        raise InputError(f"'{path}' cannot be written: {error.strerror}", code="unwritable_file") from None
    return path


def _show(draft: SchemaDraft, *, as_json: bool) -> None:
    if as_json:
        print_json({"schema": str(draft)})
    else:
        print(draft, end="")


def _confirm(run: Invocation, address: Address, path: Path, *, as_json: bool) -> None:
    """Require confirmation of an inferred schema."""
    if run.options.yes:
        return
    uri = redact_uri(address.uri)
    if not as_json and sys.stdin.isatty():
        print(f"Create {uri} with this schema ({path})? [yes/no] ", end="", file=sys.stderr, flush=True)
        if sys.stdin.readline().strip().lower() in ("y", "yes"):
            return
    raise InputError(
        f"the schema was not confirmed; it is in '{path}', and no graph was created",
        code="not_confirmed",
        hint=f"confirm with --yes, or edit the file and run: omnigraph init {path} {uri} --from …",
    )


def _load(run: Invocation, graph: Graph, draft: SchemaDraft, written: Path | None, *, as_json: bool) -> LoadResult:
    from omnigraph.engine_choice import keep_rejects
    from omnigraph.graph_frames import load_draft

    rejects: list[Reject] = []
    with progress_bar("loading tables", wanted=not (as_json or run.options.quiet)) as watch:
        result = load_draft(graph, draft, rejects=rejects, message="load tables", watch=watch)
    if rejects:
        path = (written.parent if written is not None else Path()) / REJECTS_FILE
        keep_rejects(rejects, path)
        remark("warning", f"{plural(len(rejects), 'invalid record')} set aside in {path}")
    return result


def _report(
    address: Address, schema: Path | None, config: Path | None, result: LoadResult | None, *, as_json: bool
) -> None:
    if as_json:
        document: dict[str, Any] = {"uri": address.uri, "config_path": str(config) if config else None}
        document |= {"config_created": config is not None, "schema_path": str(schema) if schema else None}
        print_json({**document, "load": None if result is None else result.to_json()})
        return
    print(f"created graph {address.uri}")
    for path in (schema, config):
        if path is not None:
            print(f"created {path}")
    for key, rows in result.tables if result is not None else ():
        print(f"loaded {plural(rows, 'row')} of {key}")
