"""`omnigraph load`, `ingest`, `export` and `snapshot`: data in, data out, and what is there."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.ask import point
from omnigraph.cli.errors import UsageFault
from omnigraph.cli.files import STDIN, writing
from omnigraph.cli.invocation import Branch, Invocation, Json, Message, takes_graph
from omnigraph.cli.output import print_json, remark
from omnigraph.cli.progress import working
from omnigraph.errors import TypeNotFound
from omnigraph.names import did_you_mean

if TYPE_CHECKING:
    from omnigraph.graph import Graph
    from omnigraph.operations.load import LoadResult, Reject

MODES = ("overwrite", "append", "merge")

Data = Annotated[
    list[str],
    typer.Option(
        "--data",
        "-d",
        metavar="FILE",
        help="A .jsonl, .csv, .parquet or .arrow file, or a glob; '-' reads JSONL from stdin.",
    ),
]
Rejects = Annotated[
    str | None,
    typer.Option("--rejects", metavar="FILE", help="Set wrong records aside in this file and load the rest."),
]
Embed = Annotated[str, typer.Option("--embed", metavar="fill|off", help="Whether texts are embedded while loading.")]


@takes_graph
def load_command(
    run: Invocation,
    data: Data,
    mode: Annotated[
        str | None,
        typer.Option(
            "--mode", metavar="MODE", help="merge (add or replace), append (add only), overwrite (replace whole types)."
        ),
    ] = None,
    branch: Branch = None,
    from_branch: Annotated[
        str | None, typer.Option("--from", metavar="BASE", help="Create a missing branch from this one.")
    ] = None,
    rejects: Rejects = None,
    embed: Embed = "fill",
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Load files onto a branch as one commit: all of it or nothing.

    omnigraph load --data people.jsonl --mode merge ./my.omni
    """
    if mode is None:
        raise UsageFault("say how to load: --mode merge (add or replace), append (add only) or overwrite")
    _check_words(mode, embed)
    address = run.storage()
    on = run.branch(branch)
    if mode == "overwrite":
        run.consent(address, as_json=as_json)
    run.announce(address)
    graph = run.open(address)
    with _sources(data) as sources, working(f"loading onto {on}", wanted=_lively(run, as_json)):
        aside: list[Reject] | None = [] if rejects is not None else None
        fill = embed == "fill"
        if from_branch is None:
            result = graph.load(sources, mode=mode, branch=on, message=message, rejects=aside, embed=fill)
        else:
            result = graph.ingest(
                sources, branch=on, from_branch=from_branch, mode=mode, message=message, rejects=aside, embed=fill
            )
    _set_aside(rejects, aside)
    counts = _counts(result)
    if as_json:
        document = {"uri": address.uri, "branch": on, "mode": mode, **counts, **_common(run, graph, result)}
        print_json(document)
        return
    nodes = f"{counts['nodes_loaded']} nodes in {counts['node_types_loaded']} types"
    edges = f"{counts['edges_loaded']} edges in {counts['edge_types_loaded']} types"
    print(f"load {address.uri} branch={on} mode={mode}: {nodes}, {edges}")
    _remark_on(result)


@takes_graph
def ingest_command(
    run: Invocation,
    data: Data,
    branch: Branch = None,
    from_branch: Annotated[
        str | None, typer.Option("--from", metavar="BASE", help="Where a missing branch starts.")
    ] = None,
    mode: Annotated[str, typer.Option("--mode", metavar="MODE", help="merge, append or overwrite.")] = "merge",
    rejects: Rejects = None,
    embed: Embed = "fill",
    message: Message = None,
    as_json: Json = False,
) -> None:
    """Load files onto a branch that is created if it is missing.

    omnigraph ingest --data may.jsonl --branch intake/may ./my.omni
    """
    _check_words(mode, embed)
    address = run.storage()
    on, base = run.branch(branch), run.branch(from_branch)
    run.announce(address)
    graph = run.open(address)
    with _sources(data) as sources, working(f"loading onto {on}", wanted=_lively(run, as_json)):
        aside: list[Reject] | None = [] if rejects is not None else None
        result = graph.ingest(
            sources, branch=on, from_branch=base, mode=mode, message=message, rejects=aside, embed=embed == "fill"
        )
    _set_aside(rejects, aside)
    if as_json:
        tables = [{"table_key": key, "rows_loaded": rows} for key, rows in sorted(result.tables)]
        document = {"uri": address.uri, "branch": on, "base_branch": base, "branch_created": result.branch_created}
        print_json({**document, "mode": mode, "tables": tables, **_common(run, graph, result)})
        return
    life = "new branch" if result.branch_created else "existing branch"
    print(f"ingest {address.uri} branch={on} base={base} mode={mode} ({life})")
    for key, rows in sorted(result.tables):
        print(f"  {key} {rows} rows")
    if run.actor:
        print(f"actor: {run.actor}")
    _remark_on(result)


def _check_words(mode: str, embed: str) -> None:
    if mode not in MODES:
        raise UsageFault(f"there is no load mode '{mode}'; the modes are {', '.join(MODES)}")
    if embed not in ("fill", "off"):
        raise UsageFault("--embed is fill or off")


def _lively(run: Invocation, as_json: bool) -> bool:
    return not (as_json or run.options.quiet)


@contextmanager
def _sources(data: Sequence[str]) -> Iterator[list[str]]:
    """The files to load; what comes on stdin is kept in one, because a write may have to read it again."""
    if STDIN not in data:
        yield list(data)
        return
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "stdin.jsonl"
        with kept.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield [str(kept) if name == STDIN else name for name in data]


def _set_aside(path: str | None, rejects: Sequence[Reject] | None) -> None:
    if path is None or rejects is None:
        return
    with writing(path) as file:
        for reject in rejects:
            file.write(json.dumps(reject.to_json(), ensure_ascii=False).encode() + b"\n")
    if rejects:
        remark("warning", f"{len(rejects)} wrong records were set aside in {path}")


def _counts(result: LoadResult) -> dict[str, int]:
    counts: dict[str, int] = {}
    for kind in ("node", "edge"):
        rows = [rows for key, rows in result.tables if key.startswith(f"{kind}:")]
        counts[f"{kind}s_loaded"] = sum(rows)
        counts[f"{kind}_types_loaded"] = len(rows)
    return counts


def _common(run: Invocation, graph: Graph, result: LoadResult) -> dict[str, Any]:
    """What `load` and `ingest` both tell."""
    commit = graph.commit(result.commit_id).to_json() if result.commit_id else None
    data = {"actor_id": run.actor, "commit": commit, "rejected": len(result.rejected)}
    if any(node.embeds for node in graph.catalog(result.branch).nodes.values()):
        data["embedded_rows"] = result.embedded_rows
        data["pending_embeddings"] = result.pending_embeddings
    return data


def _remark_on(result: LoadResult) -> None:
    if result.pending_embeddings:
        remark(
            "warning",
            f"{result.pending_embeddings} rows wait for a vector: no embedding provider is configured "
            "(set GEMINI_API_KEY or OPENAI_API_KEY, or OMNIGRAPH_EMBED_PROVIDER=local for vectors made offline)",
        )


@takes_graph
def export_command(
    run: Invocation,
    branch: Branch = None,
    snapshot: Annotated[
        str | None, typer.Option("--snapshot", "--at", metavar="POINT", help="A commit id, manifest version or time.")
    ] = None,
    types: Annotated[
        list[str] | None, typer.Option("--type", metavar="NAME", help="Only this node or edge type; may be repeated.")
    ] = None,
    tables: Annotated[
        list[str] | None, typer.Option("--table", metavar="KEY", help="Only this table, as node:Name or edge:Name.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", "-o", metavar="FILE", help="Write to a file.")] = None,
    jsonl: Annotated[bool, typer.Option("--jsonl", hidden=True)] = False,
) -> None:
    """Write a snapshot as JSONL that loads back to the same graph.

    omnigraph export ./my.omni > everything.jsonl
    """
    if branch is not None and snapshot is not None:
        raise UsageFault("--branch and --snapshot exclude each other")
    if jsonl:
        remark("note", "--jsonl is not needed: an export always is JSONL")
    on = run.branch(branch)
    graph = run.open(branch=None if snapshot else on, read_only=True)
    at = point(snapshot)
    chosen = _chosen(graph.snapshot(at=at).tables, types or (), tables or ())
    names = None if chosen is None else sorted({key.partition(":")[2] for key in chosen})
    records = graph.export(types=names, at=at)
    assert not isinstance(records, int)
    with working("exporting", wanted=out is not None and not run.options.quiet), writing(out) as file:
        for record in records:
            kind = "edge" if "edge" in record else "node"
            if chosen is None or f"{kind}:{record.get('edge') or record['type']}" in chosen:
                file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def _chosen(known: Any, types: Sequence[str], tables: Sequence[str]) -> set[str] | None:
    """The table keys that were asked for; None is all of them."""
    if not types and not tables:
        return None
    chosen: set[str] = set()
    for name in types:
        found = {key for key in known if key.partition(":")[2] == name}
        if not found:
            names = {key.partition(":")[2] for key in known}
            raise TypeNotFound(f"there is no node or edge type '{name}'", hint=did_you_mean(name, names))
        chosen |= found
    for key in tables:
        if key not in known:
            raise TypeNotFound(
                f"there is no table '{key}'", hint=did_you_mean(key, known) or "write node:Name or edge:Name"
            )
        chosen.add(key)
    return chosen


@takes_graph
def snapshot_command(run: Invocation, branch: Branch = None, as_json: Json = False) -> None:
    """Show what a branch consists of: every table, its version and its rows."""
    on = run.branch(branch)
    graph = run.open(branch=on, read_only=True)
    document = graph.snapshot().to_json()
    if as_json:
        print_json(document)
        return
    version, format_ = document["manifest_version"], document["internal_schema_version"]
    print(f"branch {on}, manifest version {version}, storage format {format_}")
    for table in document["tables"]:
        parts = f"version={table['table_version']}  branch={table['table_branch'] or 'main'}  rows={table['row_count']}"
        print(f"{table['table_key']}  {parts}")
